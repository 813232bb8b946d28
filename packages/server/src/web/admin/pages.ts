export { renderAllKeys, revokeKeys } from './keys.ts'
export { changeMails, renderMails } from './mails.ts'
export {
  disconnectAgent,
  renderAllAgents,
  renderAudit,
  renderConfirm,
  renderNodes,
  renderOverview,
} from './operation.ts'
export { renderPeople } from './people.ts'
export { changePerson, renderPerson } from './person.ts'
