import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Instant } from '../clock.ts'
import { bucketStart, type UsageUnit } from '../usage/usage.ts'

/**
 * Totals of the whole service. `sign_ins` counts sign-ins by link or code, `mails_failed` also expired mails, `errors`
 * responses with a 5xx status.
 */
export const TOTALS = [
  'sign_ups',
  'sign_ins',
  'exchanges',
  'api_calls',
  'mails_sent',
  'mails_failed',
  'errors',
] as const
export type Total = (typeof TOTALS)[number]

/** Gauges, measured at intervals; a bucket keeps the highest value. `people` are accounts that are not deleted. */
export const GAUGES = ['people', 'live_agents'] as const
export type Gauge = (typeof GAUGES)[number]

/** The totals of refused requests, one for each error code; responses with a 5xx status count as `errors` instead. */
export type Refusal = `refused:${ErrorCode}`
const REFUSAL_PREFIX = 'refused:'

export type StatisticName = Total | Gauge | Refusal

/** A stored value of an hour or a day. */
export interface StatisticRow {
  unit: UsageUnit
  start: Instant
  name: StatisticName
  value: number
}

/** The values of one hour or day in a report. A gauge is null if it was not measured. */
export type StatisticBucket = { start: Instant; refused: Record<string, number> } & Record<Total, number> &
  Record<Gauge, number | null>

/** The rows of the hour and of the day to which values of one hour are added. */
export function statisticRows(hour: Instant, values: ReadonlyMap<StatisticName, number>): StatisticRow[] {
  return (['day', 'hour'] as const).flatMap(unit =>
    [...values].map(([name, value]) => ({ unit, start: bucketStart(unit, hour), name, value })),
  )
}

export function isGauge(name: StatisticName): name is Gauge {
  return (GAUGES as readonly string[]).includes(name)
}

export function emptyBucket(start: Instant): StatisticBucket {
  const totals = Object.fromEntries(TOTALS.map(name => [name, 0])) as Record<Total, number>
  return { start, people: null, live_agents: null, ...totals, refused: {} }
}

/** Sets a stored value in its bucket, and ignores a name that only a newer version knows. */
export function setInBucket(bucket: StatisticBucket, { name, value }: StatisticRow): void {
  if (name.startsWith(REFUSAL_PREFIX)) bucket.refused[name.slice(REFUSAL_PREFIX.length)] = value
  else if (name in bucket) bucket[name as Total | Gauge] = value
}
