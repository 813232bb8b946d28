import type { Instant } from '../clock.ts'
import type { Quota } from './limit.ts'

export interface QuotaLease {
  count: number
  /** What the row has left after it. */
  remaining: number
  /** Until when the calls may be consumed, which is when the quota is refilled; null: for good. */
  refillsAt: Instant | null
}

/**
 * What is left of quotas. A row is never given other terms: a changed quota is another one with an id of its own, so
 * that calls that a node leased of the one before are not calls of it.
 */
export interface QuotaStore {
  /** @param keyId with which the row is deleted */
  insert(quota: Quota, keyId: string, now: Instant): Promise<void>
  /** What the rows have left, without what nodes have leased. A refill that is due counts. Unknown ids are absent. */
  remaining(ids: readonly string[], now: Instant): Promise<Map<string, number>>
  /**
   * Takes `most` calls, or as many as are left. Null, and nothing taken, if fewer than `least` are, or there is no such
   * row. A refill that is due is made first.
   */
  lease(quota: Quota, least: number, most: number, now: Instant): Promise<QuotaLease | null>
  /** Gives back calls that were leased until then and not consumed. Nothing if they are of a period that ended. */
  giveBack(id: string, count: number, refillsAt: Instant | null, now: Instant): Promise<void>
  /** Takes all that is left, which another quota is to begin with. */
  close(id: string, now: Instant): Promise<number>
  /** Moves the rows to the successor of their key, with which they are deleted then. */
  handOn(ids: readonly string[], successorId: string): Promise<void>
  /** Of a key that has another quota now: the row is pruned once no replaced key can use it. */
  retire(id: string, now: Instant): Promise<void>
  /** Removes rows that were retired before this, at most `batch`. Returns how many. */
  prune(retiredBefore: Instant, batch: number): Promise<number>
}
