import type { Hono } from 'hono'
import type { PageContext, PageKit, PageVariables } from './kit.ts'

type AdminPages = typeof import('./admin/pages.ts')

/** /admin: pages for administrators and support, loaded by the first request, since most people never open them. */
export function adminPages(app: Hono<PageVariables>, kit: PageKit): void {
  const load = () => import('./admin/pages.ts')
  const by = (
    pick: (pages: AdminPages) => (kit: PageKit, c: PageContext) => Response | Promise<Response>,
  ) => {
    return async (c: PageContext) => pick(await load())(kit, c)
  }
  app.get(
    '/admin',
    by(pages => pages.renderOverview),
  )
  app.get(
    '/admin/users',
    by(pages => pages.renderPeople),
  )
  app.get(
    '/admin/users/:id',
    by(pages => pages.renderPerson),
  )
  app.get(
    '/admin/users/:id/export',
    by(pages => pages.exportPerson),
  )
  app.get(
    '/admin/users/:id/revoke-keys',
    by(pages => pages.renderRevokeAllKeys),
  )
  app.post(
    '/admin/users/:id/:act',
    by(pages => pages.changePerson),
  )
  app.get(
    '/admin/keys',
    by(pages => pages.renderAllKeys),
  )
  app.get(
    '/admin/keys/revoke',
    by(pages => pages.renderRevokeKeys),
  )
  app.post(
    '/admin/keys/revoke',
    by(pages => pages.revokeKeys),
  )
  app.get(
    '/admin/keys/:id',
    by(pages => pages.renderAnyKey),
  )
  app.post(
    '/admin/keys/:id/:act',
    by(pages => pages.changeAnyKey),
  )
  app.get(
    '/admin/agents',
    by(pages => pages.renderAllAgents),
  )
  app.post(
    '/admin/agents/:id/disconnect',
    by(pages => pages.disconnectAgent),
  )
  app.get(
    '/admin/apps',
    by(pages => pages.renderApps),
  )
  app.post(
    '/admin/apps',
    by(pages => pages.registerApp),
  )
  app.get(
    '/admin/register-app',
    by(pages => pages.renderNewApp),
  )
  app.get(
    '/admin/apps/:id',
    by(pages => pages.renderApp),
  )
  app.get(
    '/admin/apps/:id/new-secret',
    by(pages => pages.renderNewSecret),
  )
  app.get(
    '/admin/apps/:id/remove-secret',
    by(pages => pages.renderRemoveSecret),
  )
  app.post(
    '/admin/apps/:id/:act',
    by(pages => pages.changeApp),
  )
  app.get(
    '/admin/mails',
    by(pages => pages.renderMails),
  )
  app.post(
    '/admin/mails/:act',
    by(pages => pages.changeMails),
  )
  app.get(
    '/admin/invitations',
    by(pages => pages.renderInvitations),
  )
  app.post(
    '/admin/invitations',
    by(pages => pages.invite),
  )
  app.post(
    '/admin/invitations/:id/revoke',
    by(pages => pages.revokeInvitation),
  )
  app.get(
    '/admin/policies',
    by(pages => pages.renderPolicies),
  )
  app.post(
    '/admin/policies',
    by(pages => pages.changePolicies),
  )
  app.get(
    '/admin/webhooks',
    by(pages => pages.renderWebhooks),
  )
  app.post(
    '/admin/webhooks',
    by(pages => pages.createWebhook),
  )
  app.get(
    '/admin/webhooks/:id',
    by(pages => pages.renderWebhook),
  )
  app.post(
    '/admin/webhooks/:id/:act',
    by(pages => pages.changeWebhook),
  )
  app.get(
    '/admin/nodes',
    by(pages => pages.renderNodes),
  )
  app.get(
    '/admin/nodes/rotate-signing-keys',
    by(pages => pages.renderRotateSigningKeys),
  )
  app.post(
    '/admin/nodes/rotate-signing-keys',
    by(pages => pages.rotateSigningKeys),
  )
  app.get(
    '/admin/audit',
    by(pages => pages.renderAudit),
  )
  app.get(
    '/admin/audit/:file',
    by(pages => pages.exportAudit),
  )
  app.get(
    '/admin/confirm',
    by(pages => pages.renderConfirm),
  )
}
