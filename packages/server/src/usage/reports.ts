import type { Clock, Instant } from '../clock.ts'
import { invalidRequest } from '../errors.ts'
import type { Storage } from '../store.ts'
import {
  bucketStart,
  noUsage,
  oldestKept,
  UNIT_LENGTHS,
  USAGE_KEPT_FOR,
  type UsageBucket,
  type UsageUnit,
} from './usage.ts'

/** Maximum number of buckets of a report: 41 days of hours, or all kept days. */
export const MAX_BUCKETS = 1000
/** Number of buckets of a report without `from`, including the current one. */
export const DEFAULT_BUCKETS: Record<UsageUnit, number> = { hour: 24, day: 30 }

export interface WantedReport {
  bucket?: UsageUnit
  /** The first bucket is the one that contains this. Default: DEFAULT_BUCKETS before `to`. */
  from?: Instant
  /** Exclusive; a bucket that begins before it is reported whole. Default: now. */
  to?: Instant
}

/** Reports of stored usage, complete up to some seconds ago, since counts are stored in batches. */
export interface UsageReports {
  /**
   * Every bucket of the range, oldest first, empty ones included, none after the present one. The caller has checked
   * that the key is the user's.
   *
   * @throws KeywayError `invalid_request` (a range that is empty, too long, or no longer kept)
   */
  ofKey(userId: string, keyId: string, wanted?: WantedReport): Promise<UsageBucket[]>
  /** The same for a person, with all keys (including deleted ones) and without key. */
  ofUser(userId: string, wanted?: WantedReport): Promise<UsageBucket[]>
}

export function createUsageReports({ storage, clock }: { storage: Storage; clock: Clock }): UsageReports {
  return {
    ofKey: (userId, keyId, wanted) => report({ userId, keyId }, wanted),
    ofUser: (userId, wanted) => report({ userId, keyId: null }, wanted),
  }

  async function report(
    of: { userId: string; keyId: string | null },
    wanted: WantedReport = {},
  ): Promise<UsageBucket[]> {
    const { unit, from, to } = rangeOf(wanted, clock.now())
    const stored = await storage.store.usage.read(of, unit, from, to)
    const byStart = new Map(stored.map(row => [row.start, row]))
    const buckets: UsageBucket[] = []
    for (let start = from; start < to; start += UNIT_LENGTHS[unit])
      buckets.push({ ...(byStart.get(start) ?? noUsage()), start })
    return buckets
  }
}

/** Both on the borders of buckets. @throws KeywayError `invalid_request` */
function rangeOf(wanted: WantedReport, now: Instant): { unit: UsageUnit; from: Instant; to: Instant } {
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
