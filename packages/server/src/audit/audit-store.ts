import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { AuditEvent, AuditType, NewAuditEvent } from './audit-event.ts'

/** Conditions for rows; an absent condition matches every row. */
export interface AuditFilter {
  /** The id of the acting user. */
  actor?: string
  /** The id of the subject, or of the person concerned. */
  subject?: string
  type?: AuditType
  /** Inclusive. */
  from?: Instant
  /** Exclusive. */
  to?: Instant
}

/** A position in the chain, authenticated under `KEYWAY_SECRET` (audit-seal.ts). */
export interface SealedPosition {
  sequence: number
  hash: string
  mac: string
}

/** The head of the chain, and its sealed positions. */
export interface AuditChain {
  /** The sequence of the last row; 0 if there never was one. */
  sequence: number
  hash: string
  /** The head when it was last sealed; null before the first time. */
  sealed: SealedPosition | null
  /** The last row that retention may remove; null before the first time. */
  pruned: SealedPosition | null
}

export interface AuditStore {
  chain(): Promise<AuditChain>
  /** Newest first; `at` of a cursor position is the sequence number of a row, not a time. */
  list(filter: AuditFilter, page: PageRequest): Promise<Slice<AuditEvent>>
  /** Matching rows after this sequence, in the order of the chain. */
  after(sequence: number, filter: AuditFilter, limit: number): Promise<AuditEvent[]>
  /** The last row before an instant, without the text of its reason; null if there is none. */
  lastBefore(at: Instant): Promise<AuditEvent | null>
  /** Stores the seal, unless a later position is sealed. */
  seal(position: SealedPosition): Promise<void>
  /** Erases the text of the reason in each row that concerns this person; the hashes of these reasons stay. */
  eraseReasons(userId: string): Promise<void>
  /**
   * Stores the position of the last row that retention may remove: the database refuses to delete later rows. Changes
   * nothing if the stored position is later.
   */
  markPruned(position: SealedPosition): Promise<void>
  /** Removes at most `batch` rows up to the position of `markPruned`. Returns how many. */
  prune(batch: number): Promise<number>
}

/**
 * Changes of the audit. Their transaction also stores the security events of the people concerned, and the rows are
 * logged (endings/facts.ts).
 */
export interface AuditChanges {
  /**
   * Appends rows to the chain. Locks its head until the transaction ends, so it must be the last thing that the
   * transaction does. `at` is made later where needed, so that rows sort by time as by sequence.
   */
  append(events: readonly NewAuditEvent[]): Promise<AuditEvent[]>
}
