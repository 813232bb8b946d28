import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { OutboxMessage } from './message.ts'

export interface OutboxStore {
  /** False, and nothing written, when the id is there already (a retried transaction, a second welcome). */
  insert(message: OutboxMessage): Promise<boolean>
  /**
   * Leases up to `limit` due messages until `leasedUntil` by one conditional update: no two nodes get the same.
   * Counts the attempt. `nodeId` owns the leases; without it they are released by expiry alone.
   */
  lease(now: Instant, leasedUntil: Instant, limit: number, nodeId?: string | null): Promise<OutboxMessage[]>
  /** Releases the leases of nodes that were not seen since. Returns how many messages. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /** Releases leases of this node that it does not know of, since the answer to a lease was lost. */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /** Settles what this lease held: state, time, error; the content is erased. Nothing when the lease was lost. */
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
  /** How many are queued, and the first due time of the oldest that is due or has failed; a retry does not change it. */
  depth(now: Instant): Promise<{ queued: number; oldestDueAt: Instant | null }>
  /** Erases the address: nothing more is sent to it, and no row names it. Mail being sent just now may still arrive. */
  forgetRecipient(recipient: EmailAddress): Promise<void>
  prune(settledBefore: Instant, batch: number): Promise<number>
}

/** A mail of the local inbox (`KEYWAY_MAIL_URL=inbox:`), sealed under `inbox` with its id as context. */
export interface InboxMail {
  id: string
  recipient: EmailAddress
  sealedMail: string
  createdAt: Instant
}

export interface InboxStore {
  /** Keeps the newest so many; the same id again changes nothing. */
  insert(mail: InboxMail, kept: number): Promise<void>
  /** Newest first, all or one recipient's. */
  list(recipient: EmailAddress | null, limit: number): Promise<InboxMail[]>
  find(id: string): Promise<InboxMail | null>
  forgetRecipient(recipient: EmailAddress): Promise<void>
  prune(before: Instant): Promise<number>
}
