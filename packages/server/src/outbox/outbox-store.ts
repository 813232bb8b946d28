import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { OutboxMessage } from './message.ts'

export interface OutboxStore {
  /** False, and nothing written, when the id is there already (a retried transaction, a second welcome). */
  insert(message: OutboxMessage): Promise<boolean>
  /**
   * Leases up to `limit` due messages until `leasedUntil` by one conditional update: no two nodes get the same.
   * Counts the attempt. `nodeId` is who holds them; without it they are given back by time alone.
   */
  lease(now: Instant, leasedUntil: Instant, limit: number, nodeId?: string | null): Promise<OutboxMessage[]>
  /** Frees what nodes hold that were not seen since: they died on the way. Returns how many messages. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /** Frees what this node holds in the books and does not know of: the answer to a lease was lost. */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /** Settles what this lease held: state, time, error; the content is erased. Nothing when the lease was lost. */
  settle(
    id: string,
    leasedUntil: Instant,
    outcome: { state: 'sent' | 'failed' | 'expired'; at: Instant; error: string | null },
  ): Promise<boolean>
  /** Gives the lease back for a later attempt. */
  retryLater(id: string, leasedUntil: Instant, nextAttemptAt: Instant, error: string): Promise<boolean>
  /** When the next message is due (leases included), or null. */
  nextDue(): Promise<Instant | null>
  recentFor(recipient: EmailAddress, limit: number): Promise<OutboxMessage[]>
  /** Queued messages, and since when the oldest waits that is due or was tried in vain: a later try makes it no younger. */
  depth(now: Instant): Promise<{ queued: number; oldestDueAt: Instant | null }>
  /** Nothing more is sent to the address, and nothing tells what was. What is on its way just now may still arrive. */
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
  /** Keeps the newest of so many; the same id again changes nothing. */
  insert(mail: InboxMail, kept: number): Promise<void>
  /** Newest first, all or one recipient's. */
  list(recipient: EmailAddress | null, limit: number): Promise<InboxMail[]>
  find(id: string): Promise<InboxMail | null>
  forgetRecipient(recipient: EmailAddress): Promise<void>
  prune(before: Instant): Promise<number>
}
