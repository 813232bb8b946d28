import type { Clock } from '../clock.ts'
import type { Storage } from '../store.ts'
import { type ReportRequest, rangeOf } from './range.ts'
import { noUsage, UNIT_LENGTHS, type UsageBucket } from './usage.ts'

/** Reports of stored usage, complete up to some seconds ago, since counts are stored in batches. */
export interface UsageReports {
  /**
   * Every bucket of the range, oldest first, including empty ones, up to the current one. The caller must check that
   * the key is the user's.
   *
   * @throws KeywayError `invalid_request` (a range that is empty, too long, or no longer kept)
   */
  ofKey(userId: string, keyId: string, request?: ReportRequest): Promise<UsageBucket[]>
  /** Like `ofKey`, for everything that a person did: with all keys, including deleted ones, and without a key. */
  ofUser(userId: string, request?: ReportRequest): Promise<UsageBucket[]>
}

export function createUsageReports({ storage, clock }: { storage: Storage; clock: Clock }): UsageReports {
  return {
    ofKey: (userId, keyId, request) => report({ userId, keyId }, request),
    ofUser: (userId, request) => report({ userId, keyId: null }, request),
  }

  async function report(
    subject: { userId: string; keyId: string | null },
    request: ReportRequest = {},
  ): Promise<UsageBucket[]> {
    const { unit, from, to } = rangeOf(request, clock.now())
    const storedRows = await storage.store.usage.read(subject, unit, from, to)
    const rowsByStart = new Map(storedRows.map(row => [row.start, row]))
    const buckets: UsageBucket[] = []
    for (let start = from; start < to; start += UNIT_LENGTHS[unit])
      buckets.push({ ...(rowsByStart.get(start) ?? noUsage()), start })
    return buckets
  }
}
