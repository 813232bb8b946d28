import { type Clock, DAY, type Instant, MINUTE, toRfc3339 } from '../clock.ts'
import { OperatorError } from '../operator-error.ts'
import type { FileSecrets, Trust } from './authentication.ts'
import {
  type BackupHeader,
  type CheckedBackup,
  checkBackup,
  type Row,
  readRows,
  withProgress,
} from './backup-file.ts'
import type { BackupStore, RestoreTransaction } from './backup-store.ts'
import { digestJournal, filesNeeded, isChange, type JournalDigest } from './journal-digest.ts'
import type { JournalEntry } from './journal-entry.ts'
import { journalFiles, readJournalLines } from './journal-reader.ts'

export interface RestoreReport {
  backupFrom: Instant
  counts: Record<string, number>
  sessionsEnded: number
  linksEnded: number
  keysRevoked: number
  /** Null if no journal was given. */
  journal: JournalReport | null
}

export interface JournalReport {
  applied: number
  /**
   * Number of entries that were not applied, since the backup lacks their key, account or app: usually because it was
   * created after the backup.
   */
  unknown: number
  /** Files whose last entries may be missing; see `JournalDigest`. */
  openEnds: JournalDigest['openEnds']
  /**
   * Names a missing or truncated file of a journal that the operator accepted as incomplete; null if it is complete.
   */
  missing: string | null
}

export interface RestoreOptions {
  journalDir: string | null
  keepKeys: boolean
  /** See `Trust`. */
  unauthenticated: boolean
}

/**
 * The longest expected time from an entry's instant to the commit of its transaction. Entries up to this much older
 * than the backup are applied too, since the backup may lack their changes.
 */
export const MAX_COMMIT_DELAY = MINUTE
const INSERT_BATCH = 500
/**
 * How long after a restore without a journal no requested deletion of an account is carried out: at least as long as
 * people otherwise have to cancel one (`DELETION_WAIT` in deletions.ts).
 */
const DELETION_WAIT_AFTER_RESTORE = 7 * DAY

export interface RestoreDeps {
  store: BackupStore
  clock: Clock
  secrets: FileSecrets
  /** Called after every 1000 rows of the backup, with the number of rows read so far. */
  progress?: (rows: number) => void
}

/**
 * Restores a backup into an empty database, and ends all sessions, links and invitations. With a journal it re-applies
 * the later entries; without one it postpones the deletion of accounts and, unless `keepKeys`, revokes all keys. Backup
 * and journal are verified completely before the database is changed, and again as the transaction that restores them
 * reads them.
 *
 * @throws OperatorError if the backup or the journal is refused, or the database is not empty or is in use
 */
export type Restore = (file: string, options: RestoreOptions) => Promise<RestoreReport>

export function createRestore({ store, clock, secrets, progress }: RestoreDeps): Restore {
  return async (file, options) => {
    const trust: Trust = { secrets, unauthenticated: options.unauthenticated }
    const backup = await checkBackup(file, trust)
    const { header, counts } = backup
    refuseNewerSchema(header, await store.migrations())
    if (!(await store.isEmpty())) throw new OperatorError(NOT_EMPTY_MESSAGE)
    if (await store.isServed(clock.now())) throw new OperatorError(IN_USE_MESSAGE)
    const journal =
      options.journalDir === null ? null : await verifyJournal(options.journalDir, header, trust)
    return store.write(async tx => {
      const now = clock.now()
      await tx.clear()
      await insertAll(tx, backup, progress)
      const endedCounts = await tx.endSignIns(now)
      const journalReport = journal && (await applyJournal(tx, journal, trust))
      // Without a journal it is unknown who cancelled the deletion of an account since the backup. The waiting time
      // begins again, so that these people can cancel it again.
      if (!journal) await tx.postponeDeletions(now + DELETION_WAIT_AFTER_RESTORE)
      const keysRevoked = journal || options.keepKeys ? 0 : await tx.revokeAllKeys(now)
      return {
        backupFrom: header.created_at,
        counts,
        sessionsEnded: endedCounts.sessions,
        linksEnded: endedCounts.links,
        keysRevoked,
        journal: journalReport,
      }
    })
  }
}

function refuseNewerSchema(header: BackupHeader, appliedMigrations: readonly string[]): void {
  const newerMigrations = header.migrations.filter(name => !appliedMigrations.includes(name))
  if (newerMigrations.length > 0)
    throw new OperatorError(
      `The backup is of version ${header.version}, which is newer (${newerMigrations.join(', ')}). Restore it with that version.`,
    )
}

const NOT_EMPTY_MESSAGE =
  'This database has accounts already; a restore needs an empty one. Set KEYWAY_DATABASE_URL (or KEYWAY_DATA_DIR) accordingly.'
const IN_USE_MESSAGE = 'A server runs on this database. Stop it first.'

async function insertAll(
  tx: RestoreTransaction,
  backup: CheckedBackup,
  progress?: (rows: number) => void,
): Promise<void> {
  let table = ''
  let batch: Row[] = []
  const flush = async () => {
    if (batch.length > 0 && !(await tx.insert(table, batch)))
      throw new OperatorError(
        `The backup has rows of ${JSON.stringify(table)}, which does not belong in backups.`,
      )
    batch = []
  }
  for await (const each of withProgress(readRows(backup), progress)) {
    if (each.table !== table || batch.length === INSERT_BATCH) await flush()
    table = each.table
    batch.push(each.row)
  }
  await flush()
}

interface VerifiedJournal {
  files: string[]
  since: Instant
  digest: JournalDigest
}

/** @throws OperatorError if `digestJournal` refuses the journal, or the journal begins after the backup */
async function verifyJournal(folder: string, header: BackupHeader, trust: Trust): Promise<VerifiedJournal> {
  const since = header.created_at - MAX_COMMIT_DELAY
  const files = filesNeeded(await journalFiles(folder), since, trust)
  const digest = await digestJournal(files, { trust, serviceId: header.service ?? null, since })
  const { beginsAt } = digest
  if (beginsAt === null || beginsAt > header.created_at)
    throw new OperatorError(
      `The journal in ${folder} begins ${beginsAt === null ? 'at an unknown time' : `at ${toRfc3339(beginsAt)}`}, after the backup of ${toRfc3339(header.created_at)}, so it lacks the changes in between. Omit --journal: then all keys are revoked.`,
    )
  return { files, since, digest }
}

/**
 * Types of which every entry is applied, since no later one replaces it. Of other types only the final state is applied
 * (`finalStates`); entries of sessions, links and invitations are ignored, since a restore ends all of them.
 */
const SINGLE_ENTRY_TYPES = new Set<JournalEntry['type']>(['ledger', 'trial_credit'])

async function applyJournal(
  tx: RestoreTransaction,
  { files, since, digest }: VerifiedJournal,
  trust: Trust,
): Promise<JournalReport> {
  const report = { applied: 0, unknown: 0, openEnds: digest.openEnds, missing: digest.missing }
  const apply = async (entry: JournalEntry) => {
    if (await tx.apply(entry)) report.applied++
    else report.unknown++
  }
  for (const entry of finalStates(digest)) await apply(entry)
  let entryCount = 0
  for await (const { entry } of readJournalLines(files, trust)) {
    if (!isChange(entry, since)) continue
    entryCount++
    if (SINGLE_ENTRY_TYPES.has(entry.type)) await apply(entry)
  }
  if (entryCount < digest.entries) throw new OperatorError('The journal was truncated while it was read.')
  return report
}

function* finalStates(digest: JournalDigest): Generator<JournalEntry> {
  const { keys, users, appSecrets, authorizations, consents, policies } = digest
  for (const [id, { revokedAt, expiresAt, allowedNetworks, at }] of keys) {
    yield {
      type: 'api_key',
      at,
      id,
      revoked_at: revokedAt,
      expires_at: expiresAt,
      allowed_networks: allowedNetworks,
    }
  }
  for (const [id, { status, at, role, deletion }] of users)
    yield {
      type: 'user',
      at,
      id,
      status,
      ...(role && { role: role.role }),
      ...(deletion && { deletes_at: deletion.deletesAt }),
    }
  yield* appSecrets.values()
  yield* authorizations.values()
  yield* consents.values()
  if (policies) yield policies
}
