import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { ErasedAddress } from '../users/erased-address.ts'
import type { MagicLink } from './magic-link.ts'

/** The last sends of one bucket, as far as they matter to its limits. */
export interface SendHistory {
  bucket: string
  /** When the send that is `limit` sends back was accepted, for each asked limit; null where there is none. */
  nthLast: Map<number, Instant | null>
}

export interface MagicLinkStore {
  insert(link: MagicLink): Promise<void>
  find(id: string): Promise<MagicLink | null>
  findByTokenHash(tokenHash: string): Promise<MagicLink | null>
  /** Spends the link: sets `usedAt` where it is unset and the link has not expired at `at`. Null for all but one of any number of callers. */
  consume(id: string, at: Instant): Promise<MagicLink | null>
  /** Ends the other live links of the address; they answer as used. Returns their ids. */
  consumeOthers(email: EmailAddress, exceptId: string, at: Instant): Promise<string[]>
  /** Ends all live links of the address (an account was suspended or deleted). Returns their ids. */
  consumeAllOf(email: EmailAddress, at: Instant): Promise<string[]>
  /** Counts one try of the code where fewer than `maxTries` were made; null when none was left. */
  countCodeTry(id: string, maxTries: number): Promise<MagicLink | null>
  /** How far back the `limits`-th last sends of a bucket lie, without a lock. */
  sendHistory(bucket: string, limits: readonly number[]): Promise<SendHistory>
  /**
   * Locks the buckets' rows in the order of their names until the transaction ends. Returns how many sends each has
   * accepted so far, by its name; the next has this number plus one.
   */
  lockSendBuckets(buckets: readonly string[]): Promise<Map<string, number>>
  /** Moves the buckets' sends that were accepted after `now` to `now`. Only after `lockSendBuckets`. */
  pullBackSends(buckets: readonly string[], now: Instant): Promise<void>
  /** How far back the `limits`-th last sends of each bucket lie. `locked` is what `lockSendBuckets` returned. */
  sendHistories(
    locked: ReadonlyMap<string, number>,
    limits: ReadonlyMap<string, readonly number[]>,
  ): Promise<SendHistory[]>
  /** Records one accepted send in each bucket. Only after `lockSendBuckets` in the same transaction. */
  recordSend(buckets: readonly string[], at: Instant): Promise<void>
  /** Until the transaction ends no one signs in to the address and no link is sent to it. Before its account is locked. */
  lockAddress(email: EmailAddress): Promise<void>
  /**
   * Takes the address out of its links, which carry `mark` instead, and forgets its sends where no other address
   * shares them. After `lockAddress`.
   */
  forgetAddress(email: EmailAddress, mark: ErasedAddress): Promise<void>
  /** When the sends of a bucket after `since` were accepted, newest first, at most `limit`. Locks nothing. */
  sendTimes(bucket: string, since: Instant, limit: number): Promise<Instant[]>
  /** Forgets what a bucket counted. */
  clearSends(bucket: string): Promise<void>
  /** Removes links that ended before, and sends older than, the given instants; at most `batch` of each. Returns how many. */
  prune(linksBefore: Instant, sendsBefore: Instant, batch: number): Promise<number>
}
