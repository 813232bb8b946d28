import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { ApiKey, ApiKeyStatus, OwnedApiKey } from './api-key.ts'

export interface ApiKeyStore {
  /** By the SHA-256 of the whole key, with the owner's status: one indexed read, never cached. */
  findByHash(keyHash: string): Promise<OwnedApiKey | null>
  /** Also for many at once: what the hub asks about the keys it holds. Unknown ids are absent. */
  findMany(ids: readonly string[]): Promise<OwnedApiKey[]>
  /** Another user's key is null like an unknown one. */
  findOwned(userId: string, id: string): Promise<ApiKey | null>
  /**
   * Reads as many rows as it answers, however many the owner has; the active ones that expire are read all, which
   * the limit of active keys bounds.
   */
  list(userId: string, status: ApiKeyStatus | null, now: Instant, page: PageRequest): Promise<Slice<ApiKey>>
  /** Active ones, counted no further than `atMost`. Counts truly only behind `users.lock`. */
  countActive(userId: string, now: Instant, atMost: number): Promise<number>
  /** When the key was made that lies `n` back (1: the newest); null where there are fewer. Dead keys count. */
  nthLastCreation(userId: string, n: number): Promise<Instant | null>
  insert(key: ApiKey): Promise<void>
  update(
    userId: string,
    id: string,
    change: { name?: string | null; allowedNetworks?: string[] },
  ): Promise<ApiKey | null>
  /** Sets `revokedAt` where it is unset. Null when there was nothing to revoke. */
  revoke(id: string, at: Instant): Promise<ApiKey | null>
  /** Revokes all of a user's keys that are not revoked; returns their ids. */
  revokeAllOf(userId: string, at: Instant): Promise<string[]>
  /**
   * Names the successor and brings the expiry forward to `expiresAt` (never back). Null, and nothing written,
   * unless the key is active now and has no successor: two rotations at once have one winner.
   */
  replace(id: string, successorId: string, expiresAt: Instant, now: Instant): Promise<ApiKey | null>
  /**
   * Active keys of active owners, without a successor, that a warning of their expiry is due for: of `thresholds`
   * (days and the same in milliseconds) one is reached that was not noted yet. Soonest first, at most `batch`.
   */
  listExpiring(
    now: Instant,
    thresholds: readonly { days: number; ms: number }[],
    batch: number,
  ): Promise<ApiKey[]>
  /** Notes a warning. True for one of any number of callers, while the key stands as it was listed. */
  noteExpiryNotice(id: string, days: number, expiresAt: Instant): Promise<boolean>
  /** Of these keys those that were last used (or made, when never used) at `unusedSince` or before. */
  listResting(ids: readonly string[], unusedSince: Instant): Promise<ApiKey[]>
  /** Sets `lastUsedAt` if it is still what was read. True for one of any number of callers. */
  wake(key: Pick<ApiKey, 'id' | 'lastUsedAt'>, at: Instant): Promise<boolean>
  /** Removes keys that expired before this and were not revoked. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
  /** Removes keys, at most `batch`, of accounts that were deleted before this. Returns how many. */
  pruneOfDeletedOwners(deletedBefore: Instant, batch: number): Promise<number>
  /** Only `lastUsedAt`, and only forward. */
  recordUse(uses: ReadonlyMap<string, Instant>): Promise<void>
}
