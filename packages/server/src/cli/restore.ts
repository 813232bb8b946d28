import type { RestoreReport } from '../backup/restore.ts'
import { type Instant, toRfc3339 } from '../clock.ts'
import type { Config } from '../config.ts'
import { OperatorError } from '../operator-error.ts'
import { lockDataDir } from '../storage/data-dir-lock.ts'
import { countsText, withBackups } from './backup-services.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'restore',
    args: ['FILE'],
    createsDatabase: true,
    options: {
      journal: { value: 'DIR', meaning: 're-apply everything that this journal has since the backup' },
      unauthenticated: {
        meaning:
          'accept files of older versions without MACs, and a journal with missing files: both may have been tampered with',
      },
      'keep-keys': { meaning: 'without a journal: keep the keys of the backup active' },
    },
    summary: 'Fill an empty database from a backup.',
    help: `The database must be empty and no server may use it; KEYWAY_SECRET must have the secret of the backup. Afterwards all
sessions and links are ended and signing keys are new. With --journal, changes since the backup are re-applied:
revocations, grants, charges, roles, and secrets of apps. Without it, revocations since the backup are unknown, so all
keys are revoked, unless --keep-keys is given. The restore is atomic.

FILE and journal have MACs under KEYWAY_SECRET, which are verified before anything is written. --unauthenticated also
accepts files of versions that wrote none, and a journal with missing files: then nothing proves that no keys,
administrators or credit were added and no revocation was removed.`,
    async run(context) {
      const config = context.config()
      const file = context.args[0]!
      const keepKeys = context.options['keep-keys'] === true
      const unauthenticated = context.options.unauthenticated === true
      const journalDir = (context.options.journal as string | undefined) ?? null
      const release = lockIfEmbedded(config)
      try {
        const report = await withBackups(config, file, backups =>
          backups.restore(file, { journalDir, keepKeys, unauthenticated }),
        )
        context.print(toJson(report), explain(report, { keepKeys, unauthenticated }))
      } finally {
        release()
      }
      return 0
    },
  },
]

function lockIfEmbedded(config: Config): () => void {
  if (config.database.engine !== 'sqlite') return () => {}
  const release = lockDataDir(config.dataDir)
  if (!release) throw new OperatorError(`A server runs on ${config.dataDir}. Stop it first.`)
  return release
}

function toJson(report: RestoreReport) {
  return {
    backup_from: toRfc3339(report.backupFrom),
    counts: report.counts,
    sessions_ended: report.sessionsEnded,
    links_ended: report.linksEnded,
    keys_revoked: report.keysRevoked,
    journal: report.journal && {
      applied: report.journal.applied,
      unknown: report.journal.unknown,
      missing: report.journal.missing,
      open_ends: report.journal.openEnds.map(({ file, at }) => ({ file, last_entry_at: toRfc3339(at) })),
    },
  }
}

function explain(
  report: RestoreReport,
  { keepKeys, unauthenticated }: { keepKeys: boolean; unauthenticated: boolean },
): string {
  const from = toRfc3339(report.backupFrom)
  return [
    `Restored ${countsText(report.counts)}, as of ${from}. Anything created after that is missing.`,
    `All sessions (${report.sessionsEnded}) and sign-in links (${report.linksEnded}) have ended: all users must sign in again.`,
    'Signing keys will be new: access and agent tokens from before are refused.',
    keysSentence(report, keepKeys, from),
    ...coverageSentences(report, from),
    ...(unauthenticated
      ? [
          'Files without a MAC were accepted: check accounts, roles, keys and balances before you start the service.',
        ]
      : []),
  ].join('\n')
}

/** Warnings about changes that the journal does not contain, or that may be missing at its end. */
function coverageSentences({ journal }: RestoreReport, from: string): string[] {
  if (!journal)
    return [
      `Roles, suspensions, secrets of apps, authorisations and balances are as of ${from}: withdrawals and charges after that are undone.`,
    ]
  return [
    `Names of accounts and keys, and registrations of apps, are not in the journal and are as of ${from}.`,
    ...(journal.missing
      ? [`The journal is incomplete: ${journal.missing}. Its entries are not applied.`]
      : []),
    ...openEndSentences(journal.openEnds),
  ]
}

/** Warns of files without a closing line, which may have been truncated at the end. */
export function openEndSentences(ends: { file: string; at: Instant }[]): string[] {
  if (ends.length === 0) return []
  const namedFiles = ends
    .slice(-MAX_NAMED_FILES)
    .map(({ file, at }) => `${file} (last entry ${toRfc3339(at)})`)
    .join(', ')
  const prefix = ends.length > MAX_NAMED_FILES ? `${ends.length} files, the newest being ` : ''
  return [
    `Without a closing line: ${prefix}${namedFiles}. The process that wrote it still runs or was killed, or the file was truncated: entries after these, if any, are not applied.`,
  ]
}

/** Maximum number of files that the warning names. */
const MAX_NAMED_FILES = 5

function keysSentence({ journal, keysRevoked }: RestoreReport, keepKeys: boolean, from: string): string {
  if (journal) {
    const unknownSentence =
      journal.unknown > 0
        ? ` ${journal.unknown} more concern accounts, keys or apps created after the backup, which are lost.`
        : ''
    return `The journal's ${journal.applied} changes since then are applied: revocations, grants, charges, roles and secrets of apps.${unknownSentence}`
  }
  if (keepKeys)
    return `Keys are as of ${from}: a key that was revoked after that WORKS AGAIN. Revoke it again.`
  return `All ${keysRevoked} keys are revoked, since without a journal revocations after the backup are unknown.`
}
