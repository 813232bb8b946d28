import { html, raw } from 'hono/html'
import type { Instant } from '../../clock.ts'
import type { StatisticBucket } from '../../statistics/statistic.ts'
import type { ReportRequest } from '../../usage/range.ts'
import { UNIT_LENGTHS, type UsageUnit } from '../../usage/usage.ts'
import { chart, formatCount, type Series } from '../chart.ts'
import { day, type Html, time } from '../layout.ts'

/** The periods to choose from; each ends with the current bucket. */
const PERIODS = {
  day: { label: '24 hours', unit: 'hour', buckets: 24 },
  week: { label: '7 days', unit: 'day', buckets: 7 },
  month: { label: '30 days', unit: 'day', buckets: 30 },
  quarter: { label: '90 days', unit: 'day', buckets: 90 },
} as const satisfies Record<string, { label: string; unit: UsageUnit; buckets: number }>
export type Period = keyof typeof PERIODS

const texts = {
  period: 'Period',
  asTable: 'The numbers as a table',
  hour: 'Hour (UTC)',
  day: 'Day (UTC)',
  now: 'now',
  hourly: 'counted every hour',
  peak: (most: string) => `now, at most ${most} at once`,
  most: { hour: (most: string) => `at most ${most} an hour`, day: (most: string) => `at most ${most} a day` },
  unknown: 'not counted',
  nothing: 'Nothing yet',
  delay:
    'Counts of other nodes, of exchanges and of API calls are complete up to some seconds ago. Live agents are counted every minute.',
}

interface ChartedNumber {
  id: string
  title: string
  /** For a number that is measured, not summed: `now` shows its current value, `peak` also its maximum. */
  gauge?: 'now' | 'peak'
  kind: Series['kind']
  of(bucket: StatisticBucket): number | null
}

const countRefused = ({ refused }: StatisticBucket) =>
  Object.values(refused).reduce((sum, count) => sum + count, 0)

const CHARTED_NUMBERS: readonly ChartedNumber[] = [
  { id: 'people', title: 'People', gauge: 'now', kind: 'level', of: ({ people }) => people },
  { id: 'sign-ups', title: 'Sign-ups', kind: 'uses', of: ({ sign_ups }) => sign_ups },
  { id: 'sign-ins', title: 'Sign-ins', kind: 'uses', of: ({ sign_ins }) => sign_ins },
  { id: 'exchanges', title: 'Exchanges', kind: 'uses', of: ({ exchanges }) => exchanges },
  { id: 'calls', title: 'API calls', kind: 'uses', of: ({ api_calls }) => api_calls },
  {
    id: 'agents',
    title: 'Live agents',
    gauge: 'peak',
    kind: 'level',
    of: ({ live_agents }) => live_agents,
  },
  { id: 'mails', title: 'Mails sent', kind: 'uses', of: ({ mails_sent }) => mails_sent },
  { id: 'failed', title: 'Mails failed', kind: 'denied', of: ({ mails_failed }) => mails_failed },
  { id: 'refused', title: 'Refused requests', kind: 'denied', of: countRefused },
  { id: 'errors', title: 'Server errors', kind: 'denied', of: ({ errors }) => errors },
]

export function periodOf(text: string | undefined): Period {
  return (Object.keys(PERIODS) as Period[]).find(each => each === text) ?? 'month'
}

export function reportOf(period: Period, now: number): ReportRequest {
  const { unit, buckets } = PERIODS[period]
  return { bucket: unit, from: now - (buckets - 1) * UNIT_LENGTHS[unit] }
}

export function periodLinks(chosen: Period): Html {
  const links = (Object.keys(PERIODS) as Period[]).map(
    each =>
      html`<a href="/admin?period=${each}"${each === chosen ? raw(' aria-current="true"') : ''}>${PERIODS[each].label}</a>`,
  )
  return html`<nav class="filter" aria-label="${texts.period}">${links}</nav>`
}

/** `people` is null if there are too many accounts to count now; its last measured value is shown then. */
export interface CurrentValues {
  people: number | null
  agents: number
}

/** A chart for each number, and all of them as one table. */
export function statisticsCharts(
  measured: readonly StatisticBucket[],
  period: Period,
  { people, agents }: CurrentValues,
): Html {
  const { unit } = PERIODS[period]
  const lastBucket = measured.at(-1)!
  const currentBucket = {
    ...lastBucket,
    people: people ?? lastBucket.people,
    live_agents: Math.max(agents, lastBucket.live_agents ?? 0),
  }
  const buckets = [...measured.slice(0, -1), currentBucket]
  const [from, to] = [axisLabel(buckets[0]!.start, unit), axisLabel(buckets.at(-1)!.start, unit)]
  const charts = CHARTED_NUMBERS.map(({ id, title, gauge, kind, of }) => {
    const values = buckets.map(of)
    const { figure, note } = summaryOf(values, unit, gauge, { people, agents })
    const description = `${title}, ${PERIODS[period].label}: ${`${figure} ${note}`.trim()}.`
    return chart({ id, title, figure, note, description, series: [{ kind, values }], from, to })
  })
  return html`<div class="charts">${charts}</div>
<p class="hint spaced">${texts.delay}</p>
<details class="card flush"><summary class="card-head">${texts.asTable}</summary><section class="scroll" tabindex="0" aria-label="${texts.asTable}">${table(buckets, period)}</section></details>`
}

function summaryOf(
  values: readonly (number | null)[],
  unit: UsageUnit,
  gauge: ChartedNumber['gauge'],
  { people, agents }: CurrentValues,
) {
  const measuredValues = values.filter(value => value !== null)
  if (measuredValues.length === 0) return { figure: '–', note: texts.unknown }
  if (gauge === 'now')
    return { figure: formatCount(measuredValues.at(-1)!), note: people === null ? texts.hourly : texts.now }
  if (gauge === 'peak')
    return { figure: formatCount(agents), note: texts.peak(formatCount(Math.max(...measuredValues))) }
  const [sum, most] = [measuredValues.reduce((sum, value) => sum + value, 0), Math.max(...measuredValues)]
  return { figure: formatCount(sum), note: sum === 0 ? '' : texts.most[unit](formatCount(most)) }
}

/** A short label in UTC, since buckets start and end in UTC. */
function axisLabel(at: Instant, unit: UsageUnit): string {
  if (unit === 'hour') return `${new Date(at).toISOString().slice(11, 16)} UTC`
  return new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
}

/** A table of all buckets with activity, newest first. */
function table(buckets: readonly StatisticBucket[], period: Period): Html {
  const { unit } = PERIODS[period]
  const activeBuckets = buckets
    .filter(bucket => CHARTED_NUMBERS.some(({ of }) => (of(bucket) ?? 0) > 0))
    .toReversed()
  if (activeBuckets.length === 0) return html`<p class="card-foot quiet">${texts.nothing}</p>`
  const formatStart = unit === 'hour' ? time : day
  return html`<table><thead><tr><th scope="col">${texts[unit]}</th>${CHARTED_NUMBERS.map(({ title }) => html`<th scope="col" class="amount">${title}</th>`)}</tr></thead><tbody>
${activeBuckets.map(
  bucket => html`<tr><th scope="row">${formatStart(bucket.start)}</th>${CHARTED_NUMBERS.map(({ of }) => html`<td class="amount">${of(bucket) ?? '–'}</td>`)}</tr>
`,
)}</tbody></table>`
}
