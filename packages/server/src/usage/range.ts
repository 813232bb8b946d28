import type { Instant } from '../clock.ts'
import { invalidRequest } from '../errors.ts'
import { bucketStart, oldestBucketStart, UNIT_LENGTHS, USAGE_KEPT_FOR, type UsageUnit } from './usage.ts'

/** Maximum number of buckets in a report: 41 days by the hour, or all days that are kept. */
export const MAX_BUCKETS = 1000
/** Number of buckets in a report without `from`, including the current one. */
export const DEFAULT_BUCKETS: Record<UsageUnit, number> = { hour: 24, day: 30 }

export interface ReportRequest {
  bucket?: UsageUnit
  /** An instant of the first bucket. By default the report has DEFAULT_BUCKETS buckets. */
  from?: Instant
  /** The end, exclusive; a bucket that starts before it is reported as a whole. By default now. */
  to?: Instant
}

/** The range of a report, widened to whole buckets. @throws KeywayError `invalid_request` */
export function rangeOf(
  request: ReportRequest,
  now: Instant,
): { unit: UsageUnit; from: Instant; to: Instant } {
  const unit = request.bucket ?? 'day'
  const length = UNIT_LENGTHS[unit]
  const end = request.to === undefined ? now + 1 : Math.min(request.to, now + 1)
  const to = bucketStart(unit, end - 1) + length
  const oldestStart = oldestBucketStart(unit, now)
  const from = bucketStart(unit, request.from ?? Math.max(oldestStart, to - DEFAULT_BUCKETS[unit] * length))
  if (request.from !== undefined && request.from > now)
    throw invalidField('from', 'must not be in the future')
  if (from < oldestStart) throw invalidField('from', retentionMessage(unit))
  if (end <= (request.from ?? from))
    throw invalidField('to', 'must be later than from, and not before what is kept')
  if ((to - from) / length > MAX_BUCKETS)
    throw invalidField(
      'from',
      `must be at most ${MAX_BUCKETS} buckets before to; ask for a shorter time or for days`,
    )
  return { unit, from, to }
}

function retentionMessage(unit: UsageUnit): string {
  const days = USAGE_KEPT_FOR[unit] / UNIT_LENGTHS.day
  const hint = unit === 'hour' ? '; ask for bucket=day for earlier ones' : ''
  return `must be within the last ${days} days, for which usage by the ${unit} is kept${hint}`
}

function invalidField(field: string, message: string) {
  return invalidRequest([{ field, message }])
}
