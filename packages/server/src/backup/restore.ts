import { type Clock, type Instant, MINUTE, toRfc3339 } from '../clock.ts'
import { type BackupHeader, BackupRefused, checkBackup, counted, type Row, readRows } from './backup-file.ts'
import type { BackupStore, RestoreTransaction } from './backup-store.ts'
import { instanceOf, type JournalEntry } from './journal-entry.ts'
import { JournalDamaged, readJournal } from './journal-reader.ts'

export interface RestoreReport {
  backupFrom: Instant
  counts: Record<string, number>
  sessionsEnded: number
  linksEnded: number
  keysRevoked: number
  /** Null without a journal. */
  journal: { applied: number; unknown: number } | null
}

export interface RestoreOptions {
  journalDir: string | null
  keepKeys: boolean
}

/** Transactions land late: what the journal noted this long before the backup may be missing in it. */
const LATE_COMMITS = MINUTE
const INSERT_BATCH = 500

export interface RestoreDeps {
  store: BackupStore
  clock: Clock
  /** Of every secret that is given. */
  fingerprints: readonly string[]
  /** Opens what tells whose a journal is. @throws SealError */
  openPepper(sealed: string): Buffer
  /** Told now and then how many rows are done. */
  progress?: (rows: number) => void
}

/**
 * Fills an empty database from a file, ends what must not live on, and replays what the journal has since.
 *
 * @throws BackupRefused, BackupDamaged
 */
export type Restore = (file: string, options: RestoreOptions) => Promise<RestoreReport>

export function createRestore({ store, clock, fingerprints, openPepper, progress }: RestoreDeps): Restore {
  return async (file, options) => {
    const { header, counts } = await checkBackup(file)
    refuseForeign(header, await store.migrations())
    if (!(await store.isEmpty())) throw new BackupRefused(NOT_EMPTY)
    if (await store.isServed(clock.now())) throw new BackupRefused(SERVED)
    const journal = options.journalDir === null ? null : await journalSince(options.journalDir, header)
    return store.write(async tx => {
      const now = clock.now()
      await tx.clear()
      await insertAll(tx, counted(readRows(file), progress))
      if (journal) refuseOthers(journal, await tx.sealedPepper())
      const ended = await tx.endSignIns(now)
      const applied = journal && (await applyAll(tx, journal.since))
      const keysRevoked = journal || options.keepKeys ? 0 : await tx.revokeAllKeys(now)
      return {
        backupFrom: header.created_at,
        counts,
        sessionsEnded: ended.sessions,
        linksEnded: ended.links,
        keysRevoked,
        journal: applied,
      }
    })
  }

  /** Another service's journal knows nothing of these keys, so that they would all be taken as unrevoked. */
  function refuseOthers({ folder, instances }: Journal, sealedPepper: string | null): void {
    const own = sealedPepper === null ? null : instanceOf(openPepper(sealedPepper))
    const other = instances.find(instance => instance !== own)
    if (own === null || other === undefined) return
    throw new BackupRefused(
      `The journal in ${folder} is of another service (${other}; the backup is of ${own}). Give the journal of the service that was backed up, or take the files of others out of it.`,
    )
  }

  function refuseForeign(header: BackupHeader, known: readonly string[]): void {
    if (!fingerprints.includes(header.secret_fingerprint))
      throw new BackupRefused(
        `The backup was sealed by the secret ${header.secret_fingerprint}, and KEYWAY_SECRET has ${fingerprints.join(', ')}. Restore with the secret that the backup was made with; it may stand behind a new one.`,
      )
    const newer = header.migrations.filter(name => !known.includes(name))
    if (newer.length > 0)
      throw new BackupRefused(
        `The backup is of version ${header.version}, which is newer (${newer.join(', ')}). Restore it with that version.`,
      )
  }
}

const NOT_EMPTY =
  'There are accounts in this database already, and a restore mixes with nothing. Point KEYWAY_DATABASE_URL (or KEYWAY_DATA_DIR) to an empty one.'
const SERVED = 'A server runs on this database. Stop it first.'

async function insertAll(
  tx: RestoreTransaction,
  rows: AsyncIterable<{ table: string; row: Row }>,
): Promise<void> {
  let table = ''
  let batch: Row[] = []
  const flush = async () => {
    if (batch.length > 0) await tx.insert(table, batch)
    batch = []
  }
  for await (const each of rows) {
    if (each.table !== table || batch.length === INSERT_BATCH) await flush()
    table = each.table
    batch.push(each.row)
  }
  await flush()
}

interface Journal {
  folder: string
  since: JournalEntry[]
  /** Whose it is, as far as its files say. */
  instances: string[]
}

/** @throws BackupRefused where the journal cannot know everything since the backup */
async function journalSince(folder: string, header: BackupHeader): Promise<Journal> {
  const entries = await readJournal(folder).catch(error => {
    if (error instanceof JournalDamaged) throw new BackupRefused(error.message)
    throw error
  })
  const first = entries[0]
  if (!first || first.at > header.created_at)
    throw new BackupRefused(
      `The journal in ${folder} begins ${first ? `at ${toRfc3339(first.at)}` : 'nowhere'}, after the backup of ${toRfc3339(header.created_at)}, so it cannot say what ended in between. Leave --journal out: then all keys are revoked.`,
    )
  return {
    folder,
    since: entries.filter(entry => entry.at >= header.created_at - LATE_COMMITS),
    instances: entries.flatMap(entry => (entry.type === 'opened' ? (entry.instance ?? []) : [])),
  }
}

/** A restore ends every session and link, so what the journal knows of them is not even counted. */
const ENDED_ANYWAY = new Set<JournalEntry['type']>(['opened', 'session', 'magic_link'])

async function applyAll(
  tx: RestoreTransaction,
  entries: readonly JournalEntry[],
): Promise<{ applied: number; unknown: number }> {
  let applied = 0
  let unknown = 0
  for (const entry of entries) {
    if (ENDED_ANYWAY.has(entry.type)) continue
    if (await tx.apply(entry)) applied++
    else unknown++
  }
  return { applied, unknown }
}
