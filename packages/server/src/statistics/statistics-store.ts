import type { Instant } from '../clock.ts'
import type { UsageUnit } from '../usage/usage.ts'
import type { RetentionStarts } from '../usage/usage-store.ts'
import type { StatisticRow } from './statistic.ts'

export interface StatisticsStore {
  /** Adds totals to the stored ones, and raises stored gauges to higher new values. Must run in a transaction. */
  add(rows: readonly StatisticRow[]): Promise<void>
  /** The stored values of buckets that start at or after `from` and before `to`, oldest first. */
  read(unit: UsageUnit, from: Instant, to: Instant): Promise<StatisticRow[]>
  /** The number of accounts that are not deleted. Scans an index of all accounts. */
  countPeople(): Promise<number>
  /** Like `countPeople`, but null if there are more than `atMost` accounts, deleted ones included. */
  countFewPeople(atMost: number): Promise<number | null>
  /**
   * Deletes values from before `retentionStarts`, at most `batch` of each unit. Returns the number of deleted values.
   */
  prune(retentionStarts: RetentionStarts, batch: number): Promise<number>
}
