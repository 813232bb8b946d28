import type { Hono } from 'hono'
import type { PageContext, PageKit, PageVariables } from './kit.ts'

type AdminPages = typeof import('./admin/pages.ts')

/** /admin: pages for administrators and support, loaded by the first request, since most people never open them. */
export function adminPages(app: Hono<PageVariables>, kit: PageKit): void {
  const load = () => import('./admin/pages.ts')
  const handler = (
    pick: (pages: AdminPages) => (kit: PageKit, c: PageContext) => Response | Promise<Response>,
  ) => {
    return async (c: PageContext) => pick(await load())(kit, c)
  }
  app.get(
    '/admin',
    handler(pages => pages.renderOverview),
  )
  app.get(
    '/admin/users',
    handler(pages => pages.renderPeople),
  )
  app.get(
    '/admin/users/:id',
    handler(pages => pages.renderPerson),
  )
  app.get(
    '/admin/users/:id/export',
    handler(pages => pages.exportPerson),
  )
  app.get(
    '/admin/users/:id/revoke-keys',
    handler(pages => pages.renderRevokeAllKeys),
  )
  app.post(
    '/admin/users/:id/:act',
    handler(pages => pages.changePerson),
  )
  app.get(
    '/admin/keys',
    handler(pages => pages.renderAllKeys),
  )
  app.get(
    '/admin/keys/revoke',
    handler(pages => pages.renderRevokeKeys),
  )
  app.post(
    '/admin/keys/revoke',
    handler(pages => pages.revokeKeys),
  )
  app.get(
    '/admin/keys/:id',
    handler(pages => pages.renderAnyKey),
  )
  app.post(
    '/admin/keys/:id/:act',
    handler(pages => pages.changeAnyKey),
  )
  app.get(
    '/admin/agents',
    handler(pages => pages.renderAllAgents),
  )
  app.post(
    '/admin/agents/:id/disconnect',
    handler(pages => pages.disconnectAgent),
  )
  app.get(
    '/admin/apps',
    handler(pages => pages.renderApps),
  )
  app.post(
    '/admin/apps',
    handler(pages => pages.registerApp),
  )
  app.get(
    '/admin/register-app',
    handler(pages => pages.renderNewApp),
  )
  app.get(
    '/admin/apps/:id',
    handler(pages => pages.renderApp),
  )
  app.get(
    '/admin/apps/:id/new-secret',
    handler(pages => pages.renderNewSecret),
  )
  app.get(
    '/admin/apps/:id/remove-secret',
    handler(pages => pages.renderRemoveSecret),
  )
  app.post(
    '/admin/apps/:id/:act',
    handler(pages => pages.changeApp),
  )
  app.get(
    '/admin/mails',
    handler(pages => pages.renderMails),
  )
  app.post(
    '/admin/mails/:act',
    handler(pages => pages.changeMails),
  )
  app.get(
    '/admin/invitations',
    handler(pages => pages.renderInvitations),
  )
  app.post(
    '/admin/invitations',
    handler(pages => pages.invite),
  )
  app.post(
    '/admin/invitations/:id/revoke',
    handler(pages => pages.revokeInvitation),
  )
  app.get(
    '/admin/policies',
    handler(pages => pages.renderPolicies),
  )
  app.post(
    '/admin/policies',
    handler(pages => pages.changePolicies),
  )
  app.get(
    '/admin/webhooks',
    handler(pages => pages.renderWebhooks),
  )
  app.post(
    '/admin/webhooks',
    handler(pages => pages.createWebhook),
  )
  app.get(
    '/admin/webhooks/:id',
    handler(pages => pages.renderWebhook),
  )
  app.post(
    '/admin/webhooks/:id/:act',
    handler(pages => pages.changeWebhook),
  )
  app.get(
    '/admin/nodes',
    handler(pages => pages.renderNodes),
  )
  app.get(
    '/admin/nodes/rotate-signing-keys',
    handler(pages => pages.renderRotateSigningKeys),
  )
  app.post(
    '/admin/nodes/rotate-signing-keys',
    handler(pages => pages.rotateSigningKeys),
  )
  app.get(
    '/admin/audit',
    handler(pages => pages.renderAudit),
  )
  app.get(
    '/admin/audit/:file',
    handler(pages => pages.exportAudit),
  )
  app.get(
    '/admin/confirm',
    handler(pages => pages.renderConfirm),
  )
}
