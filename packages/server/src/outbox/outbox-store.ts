import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { MessageKind, MessageState, OutboxMessage } from './message.ts'

export interface OutboxStore {
  /** False, and nothing written, if the id exists already (a retried transaction, or a second welcome mail). */
  insert(message: OutboxMessage): Promise<boolean>
  /**
   * Leases up to `limit` due messages until `leasedUntil` by conditional updates: no two nodes get the same. First those
   * that expire (sign-in mails), the earliest first, however many notices are queued before them. Counts the attempt. `nodeId` owns the leases; without it they are only released by expiry.
   */
  lease(now: Instant, leasedUntil: Instant, limit: number, nodeId?: string | null): Promise<OutboxMessage[]>
  /** Releases the leases of nodes that were not seen since. Returns how many messages. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /**
   * Releases this node's leases on all but the known messages: the answer to the statement that leased them was lost.
   */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /** Stores the outcome of a leased message and erases its content, except of a notice that failed. False, and nothing written, if the lease was lost. */
  settle(
    id: string,
    leasedUntil: Instant,
    outcome: { state: 'sent' | 'failed' | 'expired'; at: Instant; error: string | null },
  ): Promise<boolean>
  /** Releases the lease for a later attempt. */
  retryLater(id: string, leasedUntil: Instant, nextAttemptAt: Instant, error: string): Promise<boolean>
  /** When the next message is due (leases included), or null. */
  nextDue(): Promise<Instant | null>
  recentFor(recipient: EmailAddress, limit: number): Promise<OutboxMessage[]>
  /** Newest first, of one state or of all. */
  list(state: MessageState | null, page: PageRequest): Promise<Slice<OutboxMessage>>
  find(id: string): Promise<OutboxMessage | null>
  /**
   * Queues a failed or expired notice again. False, and nothing written, if the message is no notice, has another
   * state, or its content is erased.
   */
  requeue(id: string, now: Instant): Promise<boolean>
  /** The number of mails of this kind to this user that were queued since, at most `most`. */
  countNotices(userId: string, kind: MessageKind, since: Instant, most: number): Promise<number>
  /** The number of queued messages, and the first due time of the oldest that is due or failed; retries do not move it. */
  depth(now: Instant): Promise<{ queued: number; oldestDueAt: Instant | null }>
  /** Erases the address from all rows and cancels its mail. A delivery that is in progress may still succeed. */
  forgetRecipient(recipient: EmailAddress): Promise<void>
  /** As `forgetRecipient`, for all mail about an account, to any address. */
  forgetUser(userId: string): Promise<void>
  prune(settledBefore: Instant, batch: number): Promise<number>
}

/** A mail of the local inbox (`KEYWAY_MAIL_URL=inbox:`), sealed with purpose `inbox` and its id as context. */
export interface InboxMail {
  id: string
  recipient: EmailAddress
  sealedMail: string
  createdAt: Instant
}

export interface InboxStore {
  /** Inserts a mail and keeps the newest `kept`; inserting the same id again changes nothing. */
  insert(mail: InboxMail, kept: number): Promise<void>
  /** Newest first, all or one recipient's. */
  list(recipient: EmailAddress | null, limit: number): Promise<InboxMail[]>
  find(id: string): Promise<InboxMail | null>
  forgetRecipient(recipient: EmailAddress): Promise<void>
  prune(before: Instant): Promise<number>
}
