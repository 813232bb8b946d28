import type { Hono } from 'hono'
import { html } from 'hono/html'
import { isAppId, isClientUrl } from '../apps/app.ts'
import type { ChargeAuthorization } from '../billing/charge-authorization.ts'
import type { NamedConsent } from '../consents/consent.ts'
import { texts } from '../languages/current.ts'
import { accountFrame } from './account-frame.ts'
import { scopeItem } from './consent.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { day, formToken, type Html } from './layout.ts'
import { notFound } from './problem.ts'

/** Maximum number of consents on the page; the API lists all of them. */
const CONSENT_ROWS = 100

/** /account/apps: the apps with access to the account and those that may charge it, with forms to withdraw either. */
export function accountAppPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/account/apps', c => renderApps(kit, c))
  app.post('/account/apps/:app/withdraw', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const appId = c.req.param('app')
    if (!isAppId(appId) && !isClientUrl(appId)) throw notFound()
    await kit.consents.withdraw(user.id, appId, kit.callerOf(c.req.raw, c.env))
    return c.redirect('/account/apps?done=consent_withdrawn', 303)
  })
  app.post('/account/charging/:app/:change{grant|withdraw}', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const isGrant = c.req.param('change') === 'grant'
    const appId = c.req.param('app')
    if (!isAppId(appId)) throw notFound()
    const change = isGrant ? kit.accounts.authorize : kit.accounts.withdraw
    await change(user.id, appId, kit.callerOf(c.req.raw, c.env))
    return c.redirect(`/account/apps?done=${isGrant ? 'granted' : 'withdrawn'}`, 303)
  })
}

async function renderApps(kit: PageKit, c: PageContext): Promise<Response> {
  const { account, apps } = texts
  const { user } = kit.requireSession(c)
  const [consents, { authorizations }] = await Promise.all([
    kit.consents.list(user.id, { limit: CONSENT_ROWS, after: null }),
    kit.accounts.get(user.id),
  ])
  const token = kit.forms.token(c)
  const consentList = consents.rows.length
    ? html`<ul class="list">${consents.rows.map(each => consentRow(each, token))}</ul>`
    : html`<p class="none">${account.appsNone}</p>`
  const body = html`<section class="card flush"><div class="card-head"><h2>${apps.account.title}</h2><p class="quiet">${apps.account.lead}</p></div>${consentList}</section>
<section class="card flush"><div class="card-head"><h2>${account.charging}</h2><p class="quiet">${account.chargingLead}</p></div><ul class="list">${authorizations.map(each => authorizationRow(each, token))}</ul></section>`
  const head = { title: account.apps, lead: account.appsLead }
  return kit.render(
    c,
    { title: account.apps, current: '/account' },
    accountFrame('/account/apps', head, body),
  )
}

function consentRow({ appId, name, scopes, grantedAt }: NamedConsent, token: string): Html {
  const { account } = texts.apps
  return html`<li class="item"><div class="what"><span class="name">${name}</span><ul class="quiet">${scopes.map(scopeItem)}</ul></div><p class="when">${account.since} ${day(grantedAt)}</p>
<form class="buttons" method="post" action="/account/apps/${encodeURIComponent(appId)}/withdraw">${formToken(token)}<button class="second small harm">${account.withdraw}<span class="unseen"> ${name}</span></button></form></li>`
}

function authorizationRow({ appId, name, grantedAt, revokedAt }: ChargeAuthorization, token: string): Html {
  const { account } = texts
  const isWithdrawn = revokedAt !== null
  const label = isWithdrawn ? account.grant : account.withdraw
  const since = isWithdrawn
    ? html`<span class="tag">${account.withdrawn}</span> ${day(revokedAt)}`
    : html`<span class="tag active">${account.granted}</span> ${texts.apps.account.since} ${day(grantedAt)}`
  return html`<li class="item"><div class="what"><span class="name">${name}</span></div><p class="when">${since}</p>
<form class="buttons" method="post" action="/account/charging/${appId}/${isWithdrawn ? 'grant' : 'withdraw'}">${formToken(token)}<button class="second small ${isWithdrawn ? '' : 'harm'}">${label}<span class="unseen"> ${name}</span></button></form></li>`
}
