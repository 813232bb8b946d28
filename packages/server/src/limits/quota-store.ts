import type { Instant } from '../clock.ts'
import type { Quota } from './limit.ts'

export interface QuotaLease {
  count: number
  /** The calls that remain in the row after the lease. */
  remaining: number
  /** The next refill, until which the calls may be consumed; null if the quota is never refilled. */
  refillsAt: Instant | null
}

/**
 * The remaining calls of quotas. A row's quota never changes: a changed quota gets a row with another id, so that
 * calls leased from the previous row do not count for it.
 */
export interface QuotaStore {
  /**
   * Inserts the row of a quota.
   * @param keyId the key whose deletion deletes the row
   */
  insert(quota: Quota, keyId: string, now: Instant): Promise<void>
  /** The remaining calls, without those leased by nodes, including a due refill. Unknown ids are absent. */
  remaining(ids: readonly string[], now: Instant): Promise<Map<string, number>>
  /**
   * Leases `most` calls, or as many as remain. Returns null, and leases nothing, if fewer than `least` remain, or there
   * is no such row. A due refill is made first.
   */
  lease(quota: Quota, least: number, most: number, now: Instant): Promise<QuotaLease | null>
  /**
   * Gives back leased calls that were not consumed. Does nothing if the period until `refillsAt`, for which they were
   * leased, has ended, or after `close`, `retire` or the deletion of the row.
   */
  giveBack(id: string, count: number, refillsAt: Instant | null, now: Instant): Promise<void>
  /**
   * Sets the remaining calls to zero and retires the row. Returns how many calls remained until then, including a due
   * refill: a successor quota starts with them. Returns 0 if there is no such row.
   */
  close(id: string, now: Instant): Promise<number>
  /** Assigns the rows of a rotated key to its successor, whose deletion then deletes them. */
  reassign(ids: readonly string[], successorId: string): Promise<void>
  /** Marks the row of a replaced quota, which a rotated key may still use: `prune` removes it after the overlap. */
  retire(id: string, now: Instant): Promise<void>
  /** Removes rows that were retired before `retiredBefore`, at most `batch`. Returns how many. */
  prune(retiredBefore: Instant, batch: number): Promise<number>
}
