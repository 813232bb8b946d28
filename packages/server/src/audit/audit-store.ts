import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { AuditEvent, AuditType, NewAuditEvent } from './audit-event.ts'

/** Each absent condition matches every row. */
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

/** A place in the chain, authenticated under `KEYWAY_SECRET` (audit-seal.ts). */
export interface SealedPosition {
  sequence: number
  hash: string
  mac: string
}

/** The ends of the chain. */
export interface AuditChain {
  /** The sequence of the last row; 0 if there never was one. */
  sequence: number
  hash: string
  /** The head when it was last sealed; null before the first time. */
  sealed: SealedPosition | null
  /** The last row that retention removed; null before the first time. */
  pruned: SealedPosition | null
}

export interface AuditStore {
  chain(): Promise<AuditChain>
  /** Newest first; `at` of a cursor position is the sequence. Reads the rows of one index, at most. */
  list(filter: AuditFilter, page: PageRequest): Promise<Slice<AuditEvent>>
  /** Matching rows after this sequence, in the order of the chain. */
  after(sequence: number, filter: AuditFilter, limit: number): Promise<AuditEvent[]>
  /** The last row before an instant; null if there is none. */
  lastBefore(at: Instant): Promise<AuditEvent | null>
  /** Stores the seal, unless a later place is sealed. */
  seal(place: SealedPosition): Promise<void>
  /** Erases the texts of the reasons that concern a person; their hashes stay. */
  eraseReasons(userId: string): Promise<void>
  /** Stores up to where retention has removed rows; the engine refuses to delete any other. Only moves forward. */
  markPruned(place: SealedPosition): Promise<void>
  /** Removes rows up to the mark. Returns how many. */
  prune(batch: number): Promise<number>
}

/** Operations that must leave facts; endings/facts.ts records these in the same transaction. */
export interface AuditChanges {
  /**
   * Appends rows to the chain. Locks its head until the transaction ends, so it must be the last thing that the
   * transaction does. `at` is moved forward where needed, so that rows sort by time as by sequence.
   */
  append(events: readonly NewAuditEvent[]): Promise<AuditEvent[]>
}
