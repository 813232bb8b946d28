import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { ErasedAddress } from '../users/erased-address.ts'
import type { MagicLink } from './magic-link.ts'

/** The times of those past sends of one bucket that decide whether its limits are reached. */
export interface SendHistory {
  bucket: string
  /** For each limit n, the time of the n-th last accepted send; null if there were fewer. */
  nthLast: Map<number, Instant | null>
}

export interface MagicLinkStore {
  insert(link: MagicLink): Promise<void>
  find(id: string): Promise<MagicLink | null>
  findByTokenHash(tokenHash: string): Promise<MagicLink | null>
  /** Counts one wrong code that was typed for the link; null, without counting, if `maxTries` were counted before. */
  countCodeTry(id: string, maxTries: number): Promise<MagicLink | null>
  /** The times of the n-th last sends of a bucket, for each n in `limits`. Takes no lock. */
  sendHistory(bucket: string, limits: readonly number[]): Promise<SendHistory>
  /**
   * Locks the buckets' rows in the order of their names until the transaction ends. Returns how many sends each bucket
   * has accepted. Sends are numbered from 1, so this is also the number of the bucket's last send.
   */
  lockSendBuckets(buckets: readonly string[]): Promise<Map<string, number>>
  /**
   * Sets times of sends that are in the future, since the clock stepped back, to `now`. Call `lockSendBuckets` first.
   */
  clampFutureSends(buckets: readonly string[], now: Instant): Promise<void>
  /** Like `sendHistory`, for several buckets: `limits` is by bucket name. `lastSendNumbers` is the result of `lockSendBuckets`. */
  sendHistories(
    lastSendNumbers: ReadonlyMap<string, number>,
    limits: ReadonlyMap<string, readonly number[]>,
  ): Promise<SendHistory[]>
  /** Records one accepted send in each bucket. Call it only after `lockSendBuckets` in the same transaction. */
  recordSend(buckets: readonly string[], at: Instant): Promise<void>
  /** Blocks sign-ins to the address and new links to it until the transaction ends. Must precede the account's lock. */
  lockAddress(email: EmailAddress): Promise<void>
  /**
   * Replaces the address by `erased` in its links. Deletes its buckets too, unless it has a `+tag` and so shares them
   * with other addresses (`ownBucketNamesOf`). Call it only after `lockAddress`.
   */
  forgetAddress(email: EmailAddress, erased: ErasedAddress): Promise<void>
  /** Times of a bucket's sends after `since`, newest first, at most `limit`. Takes no lock. */
  sendTimesOf(bucket: string, since: Instant, limit: number): Promise<Instant[]>
  clearSends(bucket: string): Promise<void>
  /**
   * Deletes links that expired, and sends that were accepted, before the given instants; at most `batch` of each.
   * Returns the sum of both numbers.
   */
  prune(linksBefore: Instant, sendsBefore: Instant, batch: number): Promise<number>
}

/** Changes of links. Their transaction also records them for the journal (endings/facts.ts). */
export interface MagicLinkChanges {
  /** Sets `usedAt` of a live link. Null for any other link, and so for all but one of concurrent callers. */
  consume(id: string, at: Instant): Promise<MagicLink | null>
  /** Ends the other live links of the address, which then count as used. Returns their ids. */
  consumeOthers(email: EmailAddress, exceptId: string, at: Instant): Promise<string[]>
  /**
   * Ends all live links of an address: its account was suspended or deleted, or changed its address. Returns their ids.
   */
  consumeAllOf(email: EmailAddress, at: Instant): Promise<string[]>
}
