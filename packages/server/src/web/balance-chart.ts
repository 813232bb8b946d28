import { html, raw } from 'hono/html'
import type { DayBalance } from '../billing/accounts.ts'
import { formatMoney, type MicroDollars } from '../billing/money.ts'
import { localization, texts } from '../languages/current.ts'
import { day, type Html } from './layout.ts'
import { axis } from './usage-chart.ts'

/** SVG units: the width of a day, and the height of the highest balance. */
const DAY_WIDTH = 10
const HEIGHT = 60

/** A chart of the balance of each day, and a table of the days on which it changed, which screen readers need. */
export function balanceChart(days: readonly DayBalance[]): Html {
  const { columns } = texts.balanceHistory
  const balances = days.map(({ balance }) => balance)
  const highest = Math.max(...balances)
  const summary = summaryOf(balances)
  const daysWithChange = days.filter(({ change }) => change !== 0).toReversed()
  return html`<figure class="usage"><svg viewBox="0 0 ${days.length * DAY_WIDTH} ${HEIGHT}" role="img" aria-label="${summary}" preserveAspectRatio="none"><path class="level" d="${raw(levelPath(balances, highest))}"/></svg>${axis(days)}<figcaption class="quiet">${summary}</figcaption></figure>
${
  daysWithChange.length === 0
    ? ''
    : html`<details><summary>${texts.usage.asTable}</summary><table class="ledger"><thead><tr><th scope="col">${columns.day}</th><th scope="col" class="amount">${columns.change}</th><th scope="col" class="amount">${columns.balance}</th></tr></thead><tbody>
${daysWithChange.map(each => html`<tr><th scope="row">${day(each.start)}</th><td class="amount">${dollars(each.change, 'change')}</td><td class="amount">${dollars(each.balance)}</td></tr>`)}
</tbody></table></details>`
}`
}

/** The chart in words. It names the lowest and the highest balance unless they are the first and the last. */
function summaryOf(balances: readonly MicroDollars[]): string {
  const { summary, change, same } = texts.balanceHistory
  const [from, to] = [balances[0] ?? 0, balances.at(-1) ?? 0]
  const [lowest, highest] = [Math.min(...balances), Math.max(...balances)]
  if (lowest === highest) return same({ balance: dollars(to) })
  const ends = { from: dollars(from), to: dollars(to) }
  if (lowest === Math.min(from, to) && highest === Math.max(from, to)) return change(ends)
  return summary({ ...ends, lowest: dollars(lowest), highest: dollars(highest) })
}

/** An SVG path with a column for each balance; one for a balance above zero is at least one unit high. */
function levelPath(balances: readonly MicroDollars[], highest: MicroDollars): string {
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
