import type { Instant } from '../clock.ts'
import type { UsageRow, UsageUnit } from './usage.ts'

/** The start of the oldest bucket of each unit that is retained. */
export type RetentionStarts = Record<UsageUnit, Instant>

export interface UsageStore {
  /**
   * Records a flush in the transaction that adds its rows. Returns false if this flush, or a later one of the same
   * writer, was recorded before: then its rows must not be added again.
   */
  recordFlush(writer: string, sequence: number, at: Instant): Promise<boolean>
  /** The `sequence` of the writer's last recorded flush; 0 if there is none. */
  lastFlush(writer: string): Promise<number>
  /** Adds the counts to the stored rows. Must run in a transaction. */
  add(rows: readonly UsageRow[]): Promise<void>
  /**
   * The stored buckets of a key, or of everything that the user did (`keyId` null), that start at or after `from` and
   * before `to`, oldest first; empty ones are absent.
   */
  read(
    subject: { userId: string; keyId: string | null },
    unit: UsageUnit,
    from: Instant,
    to: Instant,
  ): Promise<UsageRow[]>
  /**
   * Deletes buckets from before `retentionStarts`, at most `batch` rows of each table and unit. Returns their number.
   */
  prune(retentionStarts: RetentionStarts, batch: number): Promise<number>
  /**
   * Deletes the buckets of accounts that were deleted before this instant, at most `batch` rows of each table. Returns
   * the number of deleted rows.
   */
  pruneOfDeletedOwners(deletedBefore: Instant, batch: number): Promise<number>
  /** Deletes the record of each writer's last flush if that was before this instant. Returns the number of records. */
  pruneFlushes(before: Instant, batch: number): Promise<number>
}
