import { html, raw } from 'hono/html'
import type { DayBalance } from '../billing/accounts.ts'
import { formatMoney, type MicroDollars } from '../billing/money.ts'
import { localization, texts } from '../languages/current.ts'
import { day, type Html } from './layout.ts'

/** SVG units: the width of a day, and the height of the highest balance. */
const DAY_WIDTH = 10
const HEIGHT = 60

/** The balance at the end of each day as a level, and as a table with the same numbers for screen readers. */
export function balanceChart(days: readonly DayBalance[]): Html {
  const { summary: summaryOf, columns } = texts.balanceHistory
  const balances = days.map(({ balance }) => balance)
  const highest = Math.max(...balances)
  const summary = summaryOf({
    from: dollars(balances[0] ?? 0),
    to: dollars(balances.at(-1) ?? 0),
    lowest: dollars(Math.min(...balances)),
    highest: dollars(highest),
  })
  const changed = days.filter(({ change }) => change !== 0).toReversed()
  return html`<figure class="usage"><svg viewBox="0 0 ${days.length * DAY_WIDTH} ${HEIGHT}" role="img" aria-label="${summary}" preserveAspectRatio="none"><path class="level" d="${raw(levels(balances, highest))}"/></svg><figcaption class="quiet">${summary}</figcaption></figure>
${
  changed.length === 0
    ? ''
    : html`<details><summary>${texts.usage.asTable}</summary><table class="ledger"><thead><tr><th scope="col">${columns.day}</th><th scope="col" class="amount">${columns.change}</th><th scope="col" class="amount">${columns.balance}</th></tr></thead><tbody>
${changed.map(each => html`<tr><th scope="row">${day(each.start)}</th><td class="amount">${dollars(each.change, 'change')}</td><td class="amount">${dollars(each.balance)}</td></tr>`)}
</tbody></table></details>`
}`
}

/** Any balance above zero is at least one unit high. */
function levels(balances: readonly MicroDollars[], highest: MicroDollars): string {
  return balances
    .map((balance, at) => {
      const height = balance > 0 ? Math.max(1, Math.round((balance / highest) * HEIGHT)) : 0
      return height === 0 ? '' : `M${at * DAY_WIDTH} ${HEIGHT - height}h${DAY_WIDTH}v${height}h-${DAY_WIDTH}z`
    })
    .join('')
}

export function dollars(amount: MicroDollars, kind?: 'change'): string {
  return localization().dollars(formatMoney(amount), kind)
}
