import type { Clock } from '../clock.ts'
import type { Storage } from '../store.ts'
import { rangeOf, type WantedReport } from './range.ts'
import { noUsage, UNIT_LENGTHS, type UsageBucket } from './usage.ts'

/** Reports of stored usage, complete up to some seconds ago, since counts are stored in batches. */
export interface UsageReports {
  /**
   * Every bucket of the range, oldest first, including empty ones, up to the current one. The caller must check that
   * the key is the user's.
   *
   * @throws KeywayError `invalid_request` (a range that is empty, too long, or no longer kept)
   */
  ofKey(userId: string, keyId: string, wanted?: WantedReport): Promise<UsageBucket[]>
  /** As `ofKey` for a person: with all keys, including deleted ones, and without a key. */
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
