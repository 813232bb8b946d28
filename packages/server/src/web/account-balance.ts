import { html } from 'hono/html'
import { BALANCE_DAYS } from '../billing/accounts.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import { texts } from '../languages/current.ts'
import { decodeCursor, encodeCursor, type Slice } from '../paging.ts'
import { accountFrame } from './account-frame.ts'
import { balanceChart, dollars } from './balance-chart.ts'
import type { PageContext, PageKit } from './kit.ts'
import { day, type Html } from './layout.ts'
import { richText } from './rich.ts'

const LEDGER_ROWS = 20

/** /account/balance: the current balance, its history, and the ledger. */
export async function renderBalance(kit: PageKit, c: PageContext): Promise<Response> {
  const { account, balanceHistory } = texts
  const { user } = kit.requireSession(c)
  const after = decodeCursor(c.req.query('cursor') ?? '')
  const [{ balance, subscription }, ledger, balances] = await Promise.all([
    kit.accounts.get(user.id),
    kit.accounts.ledger(user.id, { limit: LEDGER_ROWS, after }),
    kit.accounts.balanceHistory(user.id),
  ])
  const lead = richText(account.planIs, { plan: subscription.plan, date: day(subscription.startedAt) })
  const body = html`<section class="card"><p class="figure">${dollars(balance)}</p>
<h2 class="below">${balanceHistory.title({ days: BALANCE_DAYS })}</h2>${balanceChart(balances)}</section>
<section class="card flush"><div class="card-head"><h2>${account.ledger}</h2></div>${ledgerTable(ledger.rows)}${olderLink(ledger)}</section>`
  const head = { title: account.balance, lead }
  return kit.render(
    c,
    { title: account.balance, current: '/account' },
    accountFrame('/account/balance', head, body),
  )
}

export function ledgerTable(entries: readonly LedgerEntry[]): Html {
  const { columns } = texts.account
  return html`<table class="ledger"><thead><tr><th scope="col">${columns.when}</th><th scope="col">${columns.what}</th><th scope="col" class="amount">${columns.amount}</th><th scope="col" class="amount">${columns.balance}</th></tr></thead><tbody>
${entries.map(entry => html`<tr><td>${day(entry.createdAt)}</td><td><bdi>${entry.kind === 'trial_credit' ? texts.account.trialCredit : entry.description}</bdi>${entry.appId ? html` <code>${entry.appId}</code>` : ''}</td><td class="amount">${dollars(entry.amount, 'change')}</td><td class="amount">${dollars(entry.balanceAfter)}</td></tr>`)}
</tbody></table>`
}

function olderLink({ next }: Slice<LedgerEntry>): Html | '' {
  if (!next) return ''
  return html`<p class="card-foot"><a href="/account/balance?cursor=${encodeCursor(next)}">${texts.account.older}</a></p>`
}
