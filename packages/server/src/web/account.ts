import type { Hono } from 'hono'
import { html } from 'hono/html'
import type { ChargeAuthorization } from '../billing/ledger.ts'
import { formatMoney } from '../billing/money.ts'
import { decodeCursor, encodeCursor } from '../paging.ts'
import { MAX_USER_NAME_LENGTH } from '../users/user.ts'
import { formToken, type Html, time } from './layout.ts'
import type { PageContext, PageKit, PageVariables } from './pages.ts'
import { describeClient } from './sessions.ts'
import { words } from './words.ts'

/** /account: profile, balance, plan, which apps may charge, ledger, what happened. */
export function accountPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/account', c => renderAccount(kit, c))
  app.post('/account/name', async c => {
    const { user } = kit.requireSession(c)
    const name = ((await kit.forms.read(c)).get('name') ?? '').replace(/\p{Cc}/gu, ' ').trim()
    const kept = name ? [...name].slice(0, MAX_USER_NAME_LENGTH).join('') : null
    await kit.users.rename(user.id, kept)
    c.set('notice', words.account.saved)
    return renderAccount(kit, c)
  })
  app.post('/account/charging/:app/:change', async c => {
    const { user } = kit.requireSession(c)
    await kit.forms.read(c)
    const verb = c.req.param('change') === 'grant' ? kit.accounts.authorize : kit.accounts.withdraw
    await verb(user.id, c.req.param('app'), kit.callerOf(c.req.raw, c.env))
    c.set('notice', words.account.saved)
    return renderAccount(kit, c)
  })
}

const EVENT_NAMES: Record<string, string> = {
  sign_in: 'Signed in',
  account_created: 'Account created',
  refresh_token_reused: 'A session was ended because one of its tokens was used twice',
  session_ended: 'Session ended',
  api_key_created: 'Key created',
  api_key_rotated: 'Key rotated',
  api_key_revoked: 'Key revoked',
  charge_authorization_granted: 'Charging allowed',
  charge_authorization_withdrawn: 'Charging withdrawn',
  account_suspended: 'Account suspended',
  account_activated: 'Account activated',
}

async function renderAccount(kit: PageKit, c: PageContext): Promise<Response> {
  const { account } = words
  const { user: signedIn } = kit.requireSession(c)
  const user = (await kit.users.get(signedIn.id)) ?? signedIn
  const [held, ledger, events] = await Promise.all([
    kit.accounts.get(user.id),
    kit.accounts.ledger(user.id, { limit: 25, after: decodeCursor(c.req.query('cursor') ?? '') }),
    kit.securityEvents.list(user.id, { limit: 20, after: null }),
  ])
  const token = kit.forms.token(c)
  const body = html`<h1>${account.title}</h1>
<div class="columns">
<section class="card"><h2>${account.profile}</h2><p class="quiet-text">${user.email}</p>
<form method="post" action="/account/name">${formToken(token)}<div class="field"><label for="name">${account.name}</label><input id="name" name="name" maxlength="${MAX_USER_NAME_LENGTH}" autocomplete="name" value="${user.name ?? ''}"></div><button>${account.save}</button></form></section>
<section class="card"><h2>${account.balance}</h2><p class="big-number">$${formatMoney(held.balance)}</p><h2>${account.plan}</h2><p><span class="tag active">${held.subscription.plan}</span> <span class="quiet-text">${time(held.subscription.startedAt)}</span></p></section>
</div>
<section class="card"><h2>${account.charging}</h2><ul class="list">${held.authorizations.map(authorization => authorizationRow(authorization, token))}</ul></section>
<section class="card"><h2>${account.ledger}</h2><div class="scroll"><table><thead><tr><th scope="col">${account.columns.when}</th><th scope="col">${account.columns.what}</th><th scope="col" class="amount">${account.columns.amount}</th><th scope="col" class="amount">${account.columns.balance}</th></tr></thead><tbody>
${ledger.rows.map(entry => html`<tr><td>${time(entry.createdAt)}</td><td>${entry.description}</td><td class="amount">${formatMoney(entry.amount)}</td><td class="amount">${formatMoney(entry.balanceAfter)}</td></tr>`)}
</tbody></table></div>${ledger.next ? html`<p><a href="/account?cursor=${encodeCursor(ledger.next)}">${account.older}</a></p>` : ''}</section>
<section class="card"><h2>${account.events}</h2><ul class="list">${events.rows.map(event => html`<li class="item"><span>${EVENT_NAMES[event.type] ?? event.type}</span><span class="quiet-text">${event.client ? describeClient(event.client) : ''} ${event.network ?? ''}</span><span>${time(event.at)}</span></li>`)}</ul></section>`
  return kit.render(c, { title: account.title, current: '/account', user }, body)
}

function authorizationRow(authorization: ChargeAuthorization, token: string): Html {
  const { account } = words
  const withdrawn = authorization.revokedAt !== null
  const label = withdrawn ? account.grant : account.withdraw
  return html`<li class="item"><span class="name">${authorization.name}</span><span class="quiet-text">${
    authorization.revokedAt !== null
      ? account.withdrawn(new Date(authorization.revokedAt).toISOString().slice(0, 10))
      : account.granted(new Date(authorization.grantedAt).toISOString().slice(0, 10))
  }</span><form class="actions" method="post" action="/account/charging/${authorization.appId}/${withdrawn ? 'grant' : 'withdraw'}">${formToken(token)}<button class="quiet" aria-label="${label}: ${authorization.name}">${label}</button></form></li>`
}
