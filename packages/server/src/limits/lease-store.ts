import type { Instant } from '../clock.ts'

/** The stored state of one subject; see lease-state.ts. */
export interface LeaseRow {
  /** Changes with every write. */
  version: number
  state: string
  /** See `LeaseWrite`. */
  wantedAt: Instant | null
}

export interface LeaseWrite {
  state: string
  /**
   * When a node last wanted a larger share of the subject's request limit than was free, because other nodes held
   * shares; null if that never happened.
   */
  wantedAt: Instant | null
  /** The row is obsolete from this time on. */
  prunableAt: Instant
}

export interface LeaseStore {
  read(subject: string): Promise<LeaseRow | null>
  /**
   * Replaces the row that was read, or inserts it if there was none. Returns false, and writes nothing, if another node
   * has written since; the caller then reads again.
   */
  write(subject: string, read: LeaseRow | null, next: LeaseWrite, now: Instant): Promise<boolean>
  /** The end of the lease of each holder, which is a node with shares (lease-state.ts). Unknown holders are absent. */
  holders(ids: readonly string[]): Promise<Map<string, Instant>>
  /** Extends a holder's lease; never shortens it. */
  renewHolder(id: string, until: Instant): Promise<void>
  removeHolder(id: string): Promise<void>
  /** At most `limit` subjects whose `wantedAt` is `since` or later. */
  openClaims(since: Instant, limit: number): Promise<string[]>
  /**
   * Removes at most `batch` rows whose `prunableAt` has passed, and all holders whose lease ended before
   * `lapsedBefore`. Returns how many rows and holders together.
   */
  prune(now: Instant, lapsedBefore: Instant, batch: number): Promise<number>
}
