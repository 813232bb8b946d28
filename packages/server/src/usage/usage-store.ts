import type { Instant } from '../clock.ts'
import type { UsageRow, UsageUnit } from './usage.ts'

/** The limits of a deletion: buckets of each unit that start before its instant. */
export type Outdated = Record<UsageUnit, Instant>

export interface UsageStore {
  /**
   * Records the flush of a writer in the transaction that adds its rows. False if this flush, or a later one of the
   * writer, was recorded before: its rows must not be added again.
   */
  recordFlush(writer: string, sequence: number, at: Instant): Promise<boolean>
  /** The writer's last recorded flush; 0 if there is none. */
  lastFlush(writer: string): Promise<number>
  /** Adds the counts to the stored rows. Must run in a transaction. */
  add(rows: readonly UsageRow[]): Promise<void>
  /**
   * Stored buckets of a key, or of all use of the user (`keyId` null), that start at or after `from` and before `to`,
   * oldest first; empty ones are absent.
   */
  read(
    of: { userId: string; keyId: string | null },
    unit: UsageUnit,
    from: Instant,
    to: Instant,
  ): Promise<UsageRow[]>
  /** Deletes outdated buckets, at most `batch` of each kind. Returns how many. */
  prune(outdated: Outdated, batch: number): Promise<number>
  /** Deletes buckets, at most `batch` of each kind, of accounts that were deleted before this. Returns how many. */
  pruneOfDeletedOwners(deletedBefore: Instant, batch: number): Promise<number>
  /** Deletes writers whose last flush was before this. Returns their number. */
  pruneFlushes(before: Instant, batch: number): Promise<number>
}
