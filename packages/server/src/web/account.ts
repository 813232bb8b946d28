import type { Hono } from 'hono'
import { html } from 'hono/html'
import { isAppId } from '../apps/app.ts'
import { BALANCE_DAYS } from '../billing/accounts.ts'
import type { ChargeAuthorization } from '../billing/charge-authorizations.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import { texts } from '../languages/current.ts'
import { decodeCursor, encodeCursor, type Slice } from '../paging.ts'
import { isFresh } from '../sessions/reauthentication.ts'
import { MAX_USER_NAME_LENGTH, type User } from '../users/user.ts'
import { accountChangePages, addressCard, deletionCard, type RefusedAccountForm } from './account-changes.ts'
import { balanceChart, dollars } from './balance-chart.ts'
import { consentSection, withdrawConsent } from './consents.ts'
import { eventPages, eventRows } from './events.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { languageField } from './language-choice.ts'
import { day, formToken, type Html, pageHead } from './layout.ts'
import { notFound } from './problem.ts'
import { rich } from './rich.ts'
import { usageChart } from './usage-chart.ts'

const LEDGER_ROWS = 20
const EVENT_ROWS = 10
/** The API lists all of them in pages. */
const CONSENT_ROWS = 100

/** /account: profile, balance, plan, charge authorisations, ledger, security events. */
export function accountPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/account', c => renderAccount(kit, c))
  eventPages(app, kit)
  accountChangePages(app, kit, (c, refused) => renderAccount(kit, c, refused))
  app.post('/account/name', async c => {
    const { user } = kit.requireSession(c)
    const name = (kit.forms.read(c).get('name') ?? '').replace(/\p{Cc}/gu, ' ').trim()
    await kit.users.rename(user.id, name ? [...name].slice(0, MAX_USER_NAME_LENGTH).join('') : null)
    return c.redirect('/account?done=saved', 303)
  })
  app.post('/account/charging/:app/:change{grant|withdraw}', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const isGrant = c.req.param('change') === 'grant'
    const appId = c.req.param('app')
    if (!isAppId(appId)) throw notFound()
    const verb = isGrant ? kit.accounts.authorize : kit.accounts.withdraw
    await verb(user.id, appId, kit.callerOf(c.req.raw, c.env))
    return c.redirect(`/account?done=${isGrant ? 'granted' : 'withdrawn'}`, 303)
  })
  app.get('/account/export', c => {
    const { user, session } = kit.requireSession(c)
    if (!isFresh(session, kit.clock.now())) {
      kit.cookies.rememberDestination(c, '/account')
      return c.redirect('/sign-in?again=1', 303)
    }
    return download(c, user, kit.exportOf(user, 'person'))
  })
  app.post('/account/apps/:app/withdraw', c => withdrawConsent(kit, c, c.req.param('app')))
}

/** A file of one person's data. */
export function download(c: PageContext, { id }: User, body: ReadableStream): Response {
  return c.body(body, 200, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Disposition': `attachment; filename="keyway-${id}.json"`,
  })
}

async function renderAccount(
  kit: PageKit,
  c: PageContext,
  refused: RefusedAccountForm | null = null,
): Promise<Response> {
  const { account } = texts
  const { user } = kit.requireSession(c)
  const after = decodeCursor(c.req.query('cursor') ?? '')
  const [held, ledger, events, usage, consents, balances, change] = await Promise.all([
    kit.accounts.get(user.id),
    kit.accounts.ledger(user.id, { limit: LEDGER_ROWS, after }),
    kit.securityEvents.list(user.id, { limit: EVENT_ROWS, after: null }),
    kit.usage.ofUser(user.id),
    kit.consents.list(user.id, { limit: CONSENT_ROWS, after: null }),
    kit.accounts.balanceHistory(user.id),
    kit.emailChanges.pending(user.id),
  ])
  const typed = c.req.query('new_email') ?? ''
  const token = kit.forms.token(c)
  const body = html`${pageHead(account.title, account.lead)}
<div class="columns">
<section class="card"><h2>${account.profile}</h2>${profile(user, token)}</section>
<section class="card"><h2>${account.balance}</h2><p class="figure">${dollars(held.balance)}</p><p class="quiet">${rich(account.planIs, { plan: held.subscription.plan, date: day(held.subscription.startedAt) })}</p></section>
</div>
${addressCard(change, token, refused, typed)}
<section class="card"><h2>${texts.balanceHistory.title({ days: BALANCE_DAYS })}</h2>${balanceChart(balances)}</section>
<section class="card"><h2>${texts.usage.title}</h2>${usageChart(usage)}</section>
${consentSection(consents.rows, token)}
<section class="card flush"><div class="card-head"><h2>${account.charging}</h2><p class="quiet">${account.chargingLead}</p></div><ul class="list">${held.authorizations.map(each => authorizationRow(each, token))}</ul></section>
<section class="card flush"><div class="card-head"><h2>${account.ledger}</h2></div>${ledgerTable(ledger.rows)}${olderLink(ledger)}</section>
<section class="card flush"><div class="card-head"><h2>${account.events}</h2></div><ul class="list">${await eventRows(kit, user.id, events.rows)}</ul><p class="card-foot"><a href="/account/events">${texts.eventList.all}</a></p></section>
<section class="card spread"><div><h2>${account.export}</h2><p class="quiet">${account.exportLead}</p></div><a class="button second" href="/account/export" download>${account.exportSubmit}</a></section>
${deletionCard(user, token)}`
  const options = {
    title: account.title,
    current: '/account',
    isRefused: refused !== null,
    formAt: '/account',
  }
  return kit.render(c, options, body, refused ? 400 : 200)
}

function profile(user: User, token: string): Html {
  const { account } = texts
  return html`<p class="quiet">${rich(account.signsInAs, { email: html`<strong>${user.email}</strong>` })}</p>
<form method="post" action="/account/name" class="inline">${formToken(token)}<div class="field"><label for="name">${account.name}</label><input id="name" name="name" maxlength="${MAX_USER_NAME_LENGTH}" autocomplete="name" value="${user.name ?? ''}"></div><button class="second">${account.save}</button></form>
${languageField(formToken(token))}`
}

function authorizationRow({ appId, name, grantedAt, revokedAt }: ChargeAuthorization, token: string): Html {
  const { account } = texts
  const isWithdrawn = revokedAt !== null
  const label = isWithdrawn ? account.grant : account.withdraw
  const since = isWithdrawn
    ? html`<span class="tag">${account.withdrawn}</span> ${day(revokedAt)}`
    : html`<span class="tag active">${account.granted}</span> ${day(grantedAt)}`
  return html`<li class="item"><div class="what"><span class="name">${name}</span></div><p class="when">${since}</p>
<form class="buttons" method="post" action="/account/charging/${appId}/${isWithdrawn ? 'grant' : 'withdraw'}">${formToken(token)}<button class="second small ${isWithdrawn ? '' : 'harm'}">${label}<span class="unseen"> ${name}</span></button></form></li>`
}

function ledgerTable(entries: readonly LedgerEntry[]): Html {
  const { columns } = texts.account
  return html`<table class="ledger"><thead><tr><th scope="col">${columns.when}</th><th scope="col">${columns.what}</th><th scope="col" class="amount">${columns.amount}</th><th scope="col" class="amount">${columns.balance}</th></tr></thead><tbody>
${entries.map(entry => html`<tr><td>${day(entry.createdAt)}</td><td><bdi>${entry.kind === 'trial_credit' ? texts.account.trialCredit : entry.description}</bdi>${entry.appId ? html` <code>${entry.appId}</code>` : ''}</td><td class="amount">${dollars(entry.amount, 'change')}</td><td class="amount">${dollars(entry.balanceAfter)}</td></tr>`)}
</tbody></table>`
}

function olderLink({ next }: Slice<LedgerEntry>): Html | '' {
  if (!next) return ''
  return html`<p class="card-foot"><a href="/account?cursor=${encodeCursor(next)}">${texts.account.older}</a></p>`
}
