import type { Instant } from '../clock.ts'
import type { Row } from './backup-file.ts'
import type { JournalEntry } from './journal-entry.ts'

export interface BackupStore {
  /** The migrations that this database has. */
  migrations(): Promise<string[]>
  /** What identifies the service; null before its first start. */
  sealedPepper(): Promise<string | null>
  /**
   * Reads every table that belongs into a backup, as all of them stood at one moment. Signing keys, live
   * connections, nodes and the local inbox do not: what is signed or connected does not survive a restore.
   */
  read<Outcome>(
    work: (rows: AsyncIterable<{ table: string; row: Row }>, at: Instant) => Promise<Outcome>,
  ): Promise<Outcome>
  /** Whether nobody has an account here. */
  isEmpty(): Promise<boolean>
  /** Whether a node of the service ran on it in the last ten seconds. */
  isServed(now: Instant): Promise<boolean>
  /** All of it in one transaction: a restore that fails leaves an empty database. */
  write<Outcome>(work: (tx: RestoreTransaction) => Promise<Outcome>): Promise<Outcome>
}

export interface RestoreTransaction {
  /** Takes out what a fresh database has by itself, signing keys included. */
  clear(): Promise<void>
  /** False, and nothing written, where no backup has rows of this table. */
  insert(table: string, rows: readonly Row[]): Promise<boolean>
  /** Ends every session and link, and drops mail that carries a link. Returns how many of each. */
  endSignIns(now: Instant): Promise<{ sessions: number; links: number }>
  /** Returns how many keys were not revoked before. */
  revokeAllKeys(now: Instant): Promise<number>
  /** Re-applies one entry. False where its subject was created after the backup. */
  apply(entry: JournalEntry): Promise<boolean>
}
