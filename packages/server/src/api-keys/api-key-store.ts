import type { Instant } from '../clock.ts'
import type { Attribution } from '../endings/fact.ts'
import type { Limits } from '../limits/limit.ts'
import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Policies } from '../policies/policy.ts'
import type { ApiKey, ApiKeyStatus, OwnedApiKey, UsedFrom } from './api-key.ts'

/**
 * The conditions of an administrator's search for keys. All given ones must hold. Keys are sorted by prefix if one is
 * given; otherwise newest first, or soonest expiry first with `expiresBefore` and without an external id.
 */
export interface KeySearch {
  prefixBeginning?: string
  externalId?: string
  /** Active keys that were neither used nor created since this instant. */
  unusedSince?: Instant
  /** Active keys that expire before this instant. */
  expiresBefore?: Instant
  /** Active keys without an expiry. */
  neverExpires?: true
  /** Active keys that these policies would have refused when the keys were created. */
  violating?: Policies
}

export interface ApiKeyStore {
  /** Finds a key by its SHA-256, with the owner's status: one indexed read, never cached. */
  findByHash(keyHash: string): Promise<OwnedApiKey | null>
  /** Finds keys by id, with their owners' status, including revoked and expired ones. Unknown ids are absent. */
  findMany(ids: readonly string[]): Promise<OwnedApiKey[]>
  /** Null for an unknown key and for another user's. */
  findOwned(userId: string, id: string): Promise<ApiKey | null>
  /**
   * Like `findOwned`, and locks the row until the end of the transaction, so that the key cannot be revoked meanwhile.
   */
  lockOwned(userId: string, id: string): Promise<ApiKey | null>
  /**
   * One page of an owner's keys, newest first, of any status if `status` is null. Reads at most a few pages of rows,
   * however many keys the owner has, with two exceptions: a list of active keys reads all active keys with an expiry if
   * too many of the newest keys have expired, and a list of expired keys also reads newer keys that have not expired
   * yet. The limit of active keys bounds both.
   */
  list(userId: string, status: ApiKeyStatus | null, now: Instant, page: PageRequest): Promise<Slice<ApiKey>>
  /** Like `list`, for the keys with this external id, by a separate index. */
  listByExternalId(
    userId: string,
    externalId: string,
    status: ApiKeyStatus | null,
    now: Instant,
    page: PageRequest,
  ): Promise<Slice<ApiKey>>
  /**
   * Searches the keys of all people, for administrators. Reads one index, and filters its rows by the conditions that
   * the index does not cover. A page reads a bounded number of rows, so it may have fewer than `limit` keys, or none,
   * and still be followed by another page.
   */
  search(wanted: KeySearch, now: Instant, page: PageRequest): Promise<Slice<ApiKey>>
  /** The metadata of these keys as JSON; keys that have none are absent. */
  metadataOf(ids: readonly string[]): Promise<Map<string, string>>
  /** Numbers of keys by status, each at most `atMost`. */
  count(userId: string, now: Instant, atMost: number): Promise<Record<ApiKeyStatus, number>>
  /** Number of active keys, at most `atMost`. Exact only under `users.lock`. */
  countActive(userId: string, now: Instant, atMost: number): Promise<number>
  /**
   * Creation time of the n-th last key (1: the newest); null if there are fewer. Revoked and expired keys count.
   */
  nthLastCreation(userId: string, n: number): Promise<Instant | null>
  /** Whether any imported key exists, including revoked ones; one read of an index that contains only these. */
  hasImported(): Promise<boolean>
  /** The id and the owner of the key with each of these hashes, by hash; unknown hashes are absent. */
  findByHashes(hashes: readonly string[]): Promise<Map<string, Pick<ApiKey, 'id' | 'userId'>>>
  /**
   * Active keys of active owners, without a successor, for which an expiry notice is due: one of `thresholds` (days,
   * and the same in milliseconds) is reached, and neither its notice nor that of a smaller threshold is recorded yet. A
   * threshold longer than the key's whole lifetime does not apply. Soonest expiry first, at most `batch`.
   */
  listExpiring(
    now: Instant,
    thresholds: readonly { days: number; ms: number }[],
    batch: number,
  ): Promise<ApiKey[]>
  /**
   * Records that the expiry notice for `days` is sent. True for exactly one of concurrent callers; false for all if
   * this notice or one for fewer days was recorded before, or the key was revoked or replaced, or no longer expires at
   * `expiresAt`.
   */
  noteExpiryNotice(id: string, days: number, expiresAt: Instant): Promise<boolean>
  /** The subset of these keys that were last used (or created, if never used) at `unusedSince` or before. */
  listDormant(ids: readonly string[], unusedSince: Instant): Promise<ApiKey[]>
  /** Records a use if `lastUsedAt` is unchanged since it was read. True for exactly one of concurrent callers. */
  recordReuse(key: Pick<ApiKey, 'id' | 'lastUsedAt'>, use: RecordedUse): Promise<boolean>
  /** Removes keys that expired before `expiredBefore` and were not revoked, at most `batch`. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
  /** Removes keys of accounts that were deleted before `deletedBefore`, at most `batch`. Returns how many. */
  pruneOfDeletedOwners(deletedBefore: Instant, batch: number): Promise<number>
  /** Removes the metadata of at most `batch` keys that ended before `endedBefore`. Returns how many. */
  pruneMetadata(endedBefore: Instant, batch: number): Promise<number>
  /** Sets `lastUsedAt` and `lastUsedFrom` of each key, if its use is later than the stored one. `uses` is by key id. */
  recordUse(uses: ReadonlyMap<string, RecordedUse>): Promise<void>
}

export interface RecordedUse {
  at: Instant
  from: UsedFrom
}

/**
 * Changes of keys. Their transaction also announces each one to webhooks, and records for other nodes, the owner and
 * the journal what ends or restricts a key (endings/facts.ts).
 */
export interface ApiKeyChanges {
  /** @param metadata JSON; its length becomes `metadataBytes` */
  insert(key: ApiKey, metadata?: string | null): Promise<void>
  /** Inserts a key of another system. Returns false and writes nothing if a key with this hash exists. */
  insertImported(key: ApiKey): Promise<boolean>
  /** Null for an unknown key and for another user's. */
  update(
    userId: string,
    id: string,
    change: {
      name?: string | null
      allowedNetworks?: string[]
      externalId?: string | null
      /** JSON; null removes the metadata. */
      metadata?: string | null
      limits?: Limits
      operatorLimits?: Limits
    },
    now: Instant,
  ): Promise<ApiKey | null>
  /** Sets `revokedAt` where it is unset; null for an unknown or revoked key. */
  revoke(id: string, at: Instant, by: Attribution): Promise<ApiKey | null>
  /**
   * Revokes all of a user's active keys; returns their ids. Expired ones stay expired: there may be many, and each
   * ending costs an event, a row and a line of the journal.
   */
  revokeAllOf(userId: string, at: Instant): Promise<string[]>
  /**
   * Sets the successor, and moves the expiry to `expiresAt` if that is earlier; if `expiresAt` is not after `now`, also
   * revokes the key. Returns null and writes nothing unless the key is active and has no successor: of concurrent
   * rotations one wins.
   */
  replace(
    id: string,
    successorId: string,
    expiresAt: Instant,
    now: Instant,
    caller: Caller | null,
  ): Promise<ApiKey | null>
}
