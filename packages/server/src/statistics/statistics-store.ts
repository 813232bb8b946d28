import type { Instant } from '../clock.ts'
import type { UsageUnit } from '../usage/usage.ts'
import type { Outdated } from '../usage/usage-store.ts'
import type { StatisticRow } from './statistic.ts'

export interface StatisticsStore {
  /** Adds totals to the stored ones, and keeps the higher of a stored level and a new one. Must run in a transaction. */
  add(rows: readonly StatisticRow[]): Promise<void>
  /** Stored values that start at or after `from` and before `to`, oldest first. */
  read(unit: UsageUnit, from: Instant, to: Instant): Promise<StatisticRow[]>
  /** The number of accounts that are not deleted, by an index of all of them. */
  countPeople(): Promise<number>
  /** As `countPeople` if there are at most `atMost` accounts, deleted ones included; null: there are more. */
  countFewPeople(atMost: number): Promise<number | null>
  /** Deletes outdated values, at most `batch` of each unit. Returns how many. */
  prune(outdated: Outdated, batch: number): Promise<number>
}
