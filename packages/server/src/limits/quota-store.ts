import type { Instant } from '../clock.ts'
import type { Quota } from './limit.ts'

/**
 * What is left of quotas. A row is never given other terms: a changed quota is another one with an id of its own, so
 * that calls that a node leased of the one before are not calls of it.
 */
export interface QuotaStore {
  /** @param keyId with which the row is deleted */
  insert(quota: Quota, keyId: string, now: Instant): Promise<void>
  /** What the rows have left, without what nodes have leased. A refill that is due counts. Unknown ids are absent. */
  remaining(ids: readonly string[], now: Instant): Promise<Map<string, number>>
  /** Takes all that is left, which another quota is to begin with. */
  close(id: string, now: Instant): Promise<number>
  /** Moves the rows to the successor of their key, with which they are deleted then. */
  handOn(ids: readonly string[], successorId: string): Promise<void>
  /** Of a key that has another quota now: the row is pruned once no replaced key can use it. */
  retire(id: string, now: Instant): Promise<void>
  /** Removes rows that were retired before this, at most `batch`. Returns how many. */
  prune(retiredBefore: Instant, batch: number): Promise<number>
}
