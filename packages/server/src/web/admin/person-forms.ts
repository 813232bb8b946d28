import { html, raw } from 'hono/html'
import { MAX_USER_NAME_LENGTH, USER_ROLES, type User } from '../../users/user.ts'
import { formToken, type Html } from '../layout.ts'
import { reasonField } from './acting.ts'
import type { DangerousAct } from './danger.ts'
import { adminTexts } from './texts.ts'

export const MAX_DESCRIPTION_LENGTH = 200

/** @param creditId identifies the credit that the form adds, so that sending the form twice adds it once */
export function supportCard(user: User, token: string, creditId: string): Html {
  const { person } = adminTexts
  const form = (name: string, title: string, fields: Html) =>
    html`<form method="post" action="${pathOf(user, name)}" class="act"><h3>${title}</h3>${formToken(token)}${fields}<button class="second">${title}</button></form>`
  const creditFields = html`<input type="hidden" name="once" value="${creditId}">${field('amount', 'amount', person.amount, 'inputmode="decimal" required maxlength="16" placeholder="5.00"')}${field('description', 'description', person.description, `required maxlength="${MAX_DESCRIPTION_LENGTH}"`)}`
  const nameField = html`<div class="field"><label for="name">${person.name}</label><input id="name" name="name" autocomplete="off" value="${user.name ?? ''}" maxlength="${MAX_USER_NAME_LENGTH}"></div>`
  return html`<section class="card"><h2>${person.support}</h2><div class="acts">
${form('credit', person.credit, creditFields)}
${form('rename', person.rename, nameField)}
</div></section>`
}

/**
 * The acts that remove something from the person, or give rights; on the reader's own page (`isSelf`) only the
 * revocation of all keys.
 *
 * @param hasKeys whether any key is active
 */
export function dangerousActsOf(user: User, isSelf: boolean, hasKeys: boolean): DangerousAct[] {
  const { person, roles } = adminTexts
  const act = (name: string, title: string, lead: string, fields: Html, isFinal = false) => ({
    action: pathOf(user, name),
    ...{ title, lead, fields, isFinal },
  })
  const options = USER_ROLES.map(
    role =>
      html`<option value="${role}"${role === user.role ? raw(' selected') : ''}>${roles[role]}</option>`,
  )
  const roleField = html`<div class="field"><label for="role">${person.role}</label><select id="role" name="role">${options}</select></div>`
  const confirmField = field(
    'confirm',
    'confirm',
    person.typeAddress(user.email ?? ''),
    'required spellcheck="false"',
  )
  const revocation = {
    action: pathOf(user, 'revoke-keys'),
    ...{ title: person.revokeKeys, lead: person.revokeKeysLead, fields: '' as const },
    ...{ isFinal: true, asksFirst: true },
  }
  const revocations = hasKeys ? [revocation] : []
  if (isSelf) return revocations
  return [
    act('role', person.setRole, person.gains, html`${roleField}${reasonField('role-reason', true)}`),
    ...revocations,
    ...(user.status === 'suspended'
      ? []
      : [act('suspend', person.suspend, person.suspendLead, reasonField('suspend-reason', true))]),
    act(
      'delete',
      person.delete,
      person.deleteLead,
      html`${confirmField}${reasonField('delete-reason', true)}`,
      true,
    ),
  ]
}

/** A card on an administrator's own page, in place of the acts that would lock them out. */
export function selfCard(): Html {
  const { person } = adminTexts
  return html`<section class="card"><h2>${person.self}</h2><p class="quiet">${person.selfLead}</p><p class="buttons below"><a class="button second small" href="/sessions">${person.ownSessions}</a> <a class="button second small" href="/account">${person.ownAccount}</a></p></section>`
}

/**
 * A card that says why the account is suspended, with the form that activates it.
 *
 * @param suspension who suspended the account, when and why; null if the audit has no record of it
 * @param token the form token; null for no form
 */
export function suspensionCard(user: User, suspension: Html | null, token: string | null): Html {
  const { person } = adminTexts
  const activateForm = token
    ? html`<form method="post" action="${pathOf(user, 'activate')}" class="inline">${formToken(token)}${reasonField('activate-reason')}<button class="second">${person.activate}</button></form>`
    : ''
  return html`<section class="card"><h2>${person.isSuspended}</h2><p class="quiet">${person.isSuspendedLead}</p>${suspension ? html`<p class="quiet">${person.suspendedBy} ${suspension}</p>` : ''}${activateForm}</section>`
}

function field(id: string, name: string, label: string, attributes: string): Html {
  return html`<div class="field"><label for="${id}">${label}</label><input id="${id}" name="${name}" autocomplete="off" ${raw(attributes)}></div>`
}

function pathOf({ id }: User, act: string): string {
  return `/admin/users/${id}/${act}`
}
