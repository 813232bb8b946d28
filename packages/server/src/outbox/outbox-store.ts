import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { MessageKind, MessageState, OutboxMessage } from './message.ts'

export interface OutboxStore {
  /** Returns false, and writes nothing, if the id exists already (a retried transaction, or a second welcome mail). */
  insert(message: OutboxMessage): Promise<boolean>
  /**
   * Leases up to `limit` due messages until `leasedUntil` by conditional updates: no two nodes lease the same message.
   * Messages that expire, such as sign-in mails, are leased before others, in the order in which they expire, so that
   * they do not wait behind notices. Counts the attempt. `nodeId` owns the leases; without an owner they only end by
   * expiry.
   */
  lease(now: Instant, leasedUntil: Instant, limit: number, nodeId?: string | null): Promise<OutboxMessage[]>
  /** Releases the leases of nodes without a heartbeat since this instant. Returns the number of messages. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /**
   * Releases this node's leases on all messages except `knownIds`: the node does not know of a lease if the answer to
   * `lease` was lost.
   */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /**
   * Stores the outcome of a leased message, and erases its content if the mail was sent or is a sign-in mail. Returns
   * false, and writes nothing, if the lease was lost.
   */
  settle(
    id: string,
    leasedUntil: Instant,
    outcome: { state: 'sent' | 'failed' | 'expired'; at: Instant; error: string | null },
  ): Promise<boolean>
  /** Releases the lease and sets the time of the next attempt. Returns false if the lease was lost. */
  retryLater(id: string, leasedUntil: Instant, nextAttemptAt: Instant, error: string): Promise<boolean>
  /** When the next message is due, or the next lease expires; null if no message is queued. */
  nextDue(): Promise<Instant | null>
  recentFor(recipient: EmailAddress, limit: number): Promise<OutboxMessage[]>
  /** The messages in this state, or all messages if `state` is null; newest first. */
  list(state: MessageState | null, page: PageRequest): Promise<Slice<OutboxMessage>>
  find(id: string): Promise<OutboxMessage | null>
  /**
   * Queues a failed or expired message again, as if it had been created now. Returns false, and writes nothing, if it
   * is a sign-in mail, has another state, has no content any more, or is past its `sendBefore`.
   */
  requeue(id: string, now: Instant): Promise<boolean>
  /** The number of mails of this kind to this user that were queued since this instant, at most `atMost`. */
  countNotices(userId: string, kind: MessageKind, since: Instant, atMost: number): Promise<number>
  /**
   * The number of queued messages, and the creation time of the oldest that is due or was attempted before: while it
   * waits for a retry, it still counts as late.
   */
  depth(now: Instant): Promise<{ queued: number; oldestDueAt: Instant | null }>
  /** Deletes all messages to the address, queued ones too. A delivery that is in progress may still succeed. */
  forgetRecipient(recipient: EmailAddress): Promise<void>
  /** Like `forgetRecipient`, for all messages about an account, to any address. */
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
  /** Inserts a mail, unless its id exists, and deletes all but the newest `maxMails`. */
  insert(mail: InboxMail, maxMails: number): Promise<void>
  /** The mails to this recipient, or all mails if `recipient` is null; newest first. */
  list(recipient: EmailAddress | null, limit: number): Promise<InboxMail[]>
  find(id: string): Promise<InboxMail | null>
  forgetRecipient(recipient: EmailAddress): Promise<void>
  prune(before: Instant): Promise<number>
}
