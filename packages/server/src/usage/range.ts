import type { Instant } from '../clock.ts'
import { invalidRequest } from '../errors.ts'
import { bucketStart, oldestKept, UNIT_LENGTHS, USAGE_KEPT_FOR, type UsageUnit } from './usage.ts'

/** Maximum number of buckets of a report: 41 days of hours, or all kept days. */
export const MAX_BUCKETS = 1000
/** Number of buckets of a report without `from`, including the current one. */
export const DEFAULT_BUCKETS: Record<UsageUnit, number> = { hour: 24, day: 30 }

export interface WantedReport {
  bucket?: UsageUnit
  /** The first bucket is the one that contains this instant. Default: DEFAULT_BUCKETS before `to`. */
  from?: Instant
  /** Exclusive; a bucket that starts before it is reported as a whole. Default: now. */
  to?: Instant
}

/** The range of a report; both ends are on the borders of buckets. @throws KeywayError `invalid_request` */
export function rangeOf(wanted: WantedReport, now: Instant): { unit: UsageUnit; from: Instant; to: Instant } {
  const unit = wanted.bucket ?? 'day'
  const length = UNIT_LENGTHS[unit]
  const end = wanted.to === undefined ? now + 1 : Math.min(wanted.to, now + 1)
  const to = bucketStart(unit, end - 1) + length
  const oldest = oldestKept(unit, now)
  const from = bucketStart(unit, wanted.from ?? Math.max(oldest, to - DEFAULT_BUCKETS[unit] * length))
  if (wanted.from !== undefined && wanted.from > now) throw wrong('from', 'must not be in the future')
  if (from < oldest) throw wrong('from', notKept(unit))
  if (end <= (wanted.from ?? from)) throw wrong('to', 'must be later than from, and not before what is kept')
  if ((to - from) / length > MAX_BUCKETS)
    throw wrong(
      'from',
      `must be at most ${MAX_BUCKETS} buckets before to; ask for a shorter time or for days`,
    )
  return { unit, from, to }
}

function notKept(unit: UsageUnit): string {
  const days = USAGE_KEPT_FOR[unit] / UNIT_LENGTHS.day
  const hint = unit === 'hour' ? '; ask for bucket=day for earlier ones' : ''
  return `must be within the last ${days} days, for which usage by the ${unit} is kept${hint}`
}

function wrong(field: string, message: string) {
  return invalidRequest([{ field, message }])
}
