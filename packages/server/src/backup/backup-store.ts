import type { Instant } from '../clock.ts'
import type { Row } from './backup-file.ts'
import type { JournalEntry } from './journal-entry.ts'

export interface BackupStore {
  /** The migrations that were applied to this database. */
  migrations(): Promise<string[]>
  /** The sealed address pepper, from which the service's id is derived; null before the service's first start. */
  sealedPepper(): Promise<string | null>
  /**
   * Reads every table that belongs in a backup, in one snapshot; `at` is the database's time before the snapshot. What
   * does not survive a restore does not belong in a backup, such as signing keys, connections, nodes, unfinished
   * authorizations and the local inbox.
   */
  read<Outcome>(
    work: (rows: AsyncIterable<{ table: string; row: Row }>, at: Instant) => Promise<Outcome>,
  ): Promise<Outcome>
  /** Whether the database has no accounts. */
  isEmpty(): Promise<boolean>
  /** Whether a node used this database in the last ten seconds. */
  isServed(now: Instant): Promise<boolean>
  /** Restores in one transaction, so that a failed restore leaves an empty database. */
  write<Outcome>(work: (tx: RestoreTransaction) => Promise<Outcome>): Promise<Outcome>
}

export interface RestoreTransaction {
  /** Deletes the initial rows of a new database, including signing keys. */
  clear(): Promise<void>
  /** Returns false and writes nothing if the table does not belong in backups. */
  insert(table: string, rows: readonly Row[]): Promise<boolean>
  /**
   * Ends every session, link and invitation, and expires queued mail that contains a link. Returns the numbers of ended
   * sessions and links.
   */
  endSignIns(now: Instant): Promise<{ sessions: number; links: number }>
  /** Postpones every requested account deletion that is due before this instant to this instant. */
  postponeDeletions(until: Instant): Promise<void>
  /** Returns the number of revoked keys. */
  revokeAllKeys(now: Instant): Promise<number>
  /**
   * Re-applies one journal entry. False if the backup lacks the entry's key, account or app, usually because it was
   * created later.
   */
  apply(entry: JournalEntry): Promise<boolean>
}
