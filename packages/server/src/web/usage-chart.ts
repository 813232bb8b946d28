import { html } from 'hono/html'
import { type Instant, MINUTE } from '../clock.ts'
import { localization, texts } from '../languages/current.ts'
import type { UsageBucket } from '../usage/usage.ts'
import { day, type Html } from './layout.ts'

/** SVG units: the width of a day including the gap, the width of a bar, and the height of the highest bar. */
const DAY_WIDTH = 10
const BAR_WIDTH = 8
const HEIGHT = 60

interface Bar {
  start: Instant
  uses: number
  refused: number
}

/** The longest time for which the counts may lack the last use: they are stored some seconds after it. */
const COUNTED_WITHIN = MINUTE

/** What the text for a period without uses depends on. */
interface UsageContext {
  /** Whether the key or account has ended, so that no more usage is added. */
  isOver?: boolean
  /** The last use of the key; null if it was never used. */
  lastUsedAt?: Instant | null
  /** The present, with which `lastUsedAt` is compared. */
  now?: Instant
}

/**
 * Uses and refusals per day as a bar chart, and as a table of the days that have any, which screen readers need. If
 * there are none, only a sentence that says so.
 */
export function usageChart(days: readonly UsageBucket[], context: UsageContext = {}): Html {
  const { usage } = texts
  const bars = days.map(toBar)
  const [uses, refused] = [sum(bars.map(bar => bar.uses)), sum(bars.map(bar => bar.refused))]
  const summary = usage.summary({
    count: days.length,
    uses: usage.uses({ count: uses }),
    refusals: usage.refusals({ count: refused }),
  })
  if (uses + refused === 0) return html`<p class="quiet">${sentenceWithoutUsage(days.length, context)}</p>`
  const highest = Math.max(...bars.map(bar => bar.uses + bar.refused))
  return html`<figure class="usage"><p class="axis" aria-hidden="true"><span>${localization().number(highest)}</span></p><svg viewBox="0 0 ${(bars.length - 1) * DAY_WIDTH + BAR_WIDTH} ${HEIGHT}" role="img" aria-label="${summary}" preserveAspectRatio="none">${bars.map((bar, index) => stackedBar(bar, index, highest))}</svg>${axis(days)}<figcaption class="quiet">${summary}</figcaption></figure>
<details><summary>${usage.asTable}</summary><section class="scroll" tabindex="0" aria-label="${usage.asTable}">${table(days)}</section></details>`
}

function sentenceWithoutUsage(count: number, { isOver, lastUsedAt, now }: UsageContext): string {
  const { none, delay, counting } = texts.usage
  if (lastUsedAt && now !== undefined && now - lastUsedAt < COUNTED_WITHIN) return counting
  return isOver ? none({ count }) : `${none({ count })} ${delay}`
}

/** The first and the last day, below the two ends of a chart. */
export function axis(days: readonly { start: Instant }[]): Html {
  const endDays = [days[0], days.at(-1)].filter(each => each !== undefined)
  return html`<p class="axis" aria-hidden="true">${endDays.map(({ start }) => html`<span>${day(start)}</span>`)}</p>`
}

function toBar({ start, exchanges, apiCalls, introspections, connections, refused }: UsageBucket): Bar {
  return {
    start,
    uses: exchanges + apiCalls + introspections + connections,
    refused: sum(Object.values(refused)),
  }
}

/** A bar with the refusals on top of the uses. Any number above 0 is at least one unit high. */
function stackedBar({ uses, refused }: Bar, index: number, highest: number): Html {
  const heightOf = (count: number) => (count === 0 ? 0 : Math.max(1, Math.round((count / highest) * HEIGHT)))
  const [usedHeight, deniedHeight] = [heightOf(uses), heightOf(refused)]
  const rect = (y: number, height: number, kind: string) =>
    height === 0
      ? ''
      : html`<rect class="${kind}" x="${index * DAY_WIDTH}" y="${Math.max(0, y)}" width="${BAR_WIDTH}" height="${height}"/>`
  return html`${rect(HEIGHT - usedHeight, usedHeight, 'uses')}${rect(HEIGHT - usedHeight - deniedHeight, deniedHeight, 'denied')}`
}

function table(days: readonly UsageBucket[]): Html {
  const { columns } = texts.usage
  const heads = [
    columns.exchanges,
    columns.apiCalls,
    columns.introspections,
    columns.connections,
    columns.messages,
    columns.refused,
  ]
  const activeDays = days.filter(each => toBar(each).uses + toBar(each).refused > 0).toReversed()
  return html`<table class="ledger"><thead><tr><th scope="col">${columns.day}</th>${heads.map(head => html`<th scope="col" class="amount">${head}</th>`)}</tr></thead><tbody>
${activeDays.map(row)}
</tbody></table>`
}

function row(each: UsageBucket): Html {
  const cells = [
    each.exchanges,
    each.apiCalls,
    each.introspections,
    each.connections,
    each.messagesSent + each.messagesReceived,
    sum(Object.values(each.refused)),
  ]
  return html`<tr><th scope="row">${day(each.start)}</th>${cells.map(cell => html`<td class="amount">${localization().number(cell)}</td>`)}</tr>`
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
