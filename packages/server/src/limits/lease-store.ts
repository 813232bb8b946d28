import type { Instant } from '../clock.ts'

/** The shared state of one subject; lease-state.ts says what is in it. */
export interface LeaseRow {
  /** Changes with every write. */
  version: number
  state: string
  wantedAt: Instant | null
}

export interface LeaseWrite {
  state: string
  /** When a node last wanted more than there was room for; null: none does. */
  wantedAt: Instant | null
  /** When the row no longer says anything. */
  prunableAt: Instant
}

export interface LeaseStore {
  read(subject: string): Promise<LeaseRow | null>
  /**
   * Replaces what was read, or inserts where nothing was. False, and nothing written, if another node wrote since: the
   * caller reads again.
   */
  write(subject: string, read: LeaseRow | null, next: LeaseWrite, now: Instant): Promise<boolean>
  /** Until when each of these holders may use what it holds. Unknown ones are absent. */
  holders(ids: readonly string[]): Promise<Map<string, Instant>>
  /** Only forward. */
  renewHolder(id: string, until: Instant): Promise<void>
  removeHolder(id: string): Promise<void>
  /** Subjects of which a node wanted more since then, at most `most`. */
  wantedSince(at: Instant, most: number): Promise<string[]>
  /** Removes rows that say nothing any more, and holders that lapsed before. Returns how many. */
  prune(now: Instant, lapsedBefore: Instant, batch: number): Promise<number>
}
