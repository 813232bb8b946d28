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
          'accept files of older versions without MACs, and a journal that lacks files: anybody may have changed them',
      },
      'keep-keys': { meaning: 'without a journal: leave keys as the backup has them' },
    },
    summary: 'Fill an empty database from a backup.',
    help: `The database must be empty and unserved, and KEYWAY_SECRET must have the secret of the backup. Afterwards all sessions
and links are ended and signing keys are new. With --journal, what was revoked, granted or charged since the
backup stays so, as do roles and the secrets of apps. Without it nobody knows what was revoked since, so all keys are revoked,
unless --keep-keys. It happens whole or not at all.

FILE and journal carry MACs under KEYWAY_SECRET and are verified before anything is written. --unauthenticated also reads
files of versions that wrote none, and goes on where the journal lacks a file: it gives up any proof that nobody added
keys, administrators or credit, or took a revocation out.`,
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
    `Restored ${countsText(report.counts)}, as of ${from}. What was made after that is not there.`,
    `All sessions (${report.sessionsEnded}) and sign-in links (${report.linksEnded}) have ended: everybody signs in anew.`,
    'Signing keys will be new: access and agent tokens from before are refused.',
    keysSentence(report, keepKeys, from),
    ...reachSentences(report, from),
    ...(unauthenticated
      ? [
          'Files without a MAC were accepted: look through accounts, roles, keys and balances before you serve this.',
        ]
      : []),
  ].join('\n')
}

/** Warnings: what no journal contains, and where this one may be truncated. */
function reachSentences({ journal }: RestoreReport, from: string): string[] {
  if (!journal)
    return [
      `Roles, suspensions, secrets of apps, authorisations and balances are as of ${from}: whatever was taken away or charged after that is back.`,
    ]
  return [
    `Names of accounts and keys, and registrations of apps, are not in the journal and are as of ${from}.`,
    ...(journal.missing
      ? [`The journal is incomplete: ${journal.missing}. What that had is not applied.`]
      : []),
    ...openEndSentences(journal.openEnds),
  ]
}

/** Truncation at the end of a file is detected only through later entries. */
export function openEndSentences(ends: { file: string; at: Instant }[]): string[] {
  if (ends.length === 0) return []
  const named = ends
    .slice(-MAX_NAMED)
    .map(({ file, at }) => `${file} (last entry ${toRfc3339(at)})`)
    .join(', ')
  const all = ends.length > MAX_NAMED ? `${ends.length} files, the newest being ` : ''
  return [
    `Without a closing line: ${all}${named}. A process that still writes or was killed leaves that, and so does somebody who cuts off the end: what came after those entries, if anything, is not applied.`,
  ]
}

const MAX_NAMED = 5

function keysSentence({ journal, keysRevoked }: RestoreReport, keepKeys: boolean, from: string): string {
  if (journal) {
    const gone =
      journal.unknown > 0
        ? ` ${journal.unknown} more were of accounts, keys or apps made after the backup, which are gone.`
        : ''
    return `The journal's ${journal.applied} changes since then are applied: what was revoked, granted or charged stays so, and so do roles and secrets of apps.${gone}`
  }
  if (keepKeys)
    return `Keys are as they were at ${from}: one that was revoked after that WORKS AGAIN. Revoke it anew.`
  return `All ${keysRevoked} keys are revoked, since without a journal nobody knows which of them were revoked after the backup.`
}
