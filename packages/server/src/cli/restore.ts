import type { RestoreReport } from '../backup/restore.ts'
import { toRfc3339 } from '../clock.ts'
import type { Config } from '../config.ts'
import { lockDataDir } from '../storage/data-dir-lock.ts'
import { countsText, withBackups } from './backup-services.ts'
import { type Command, CommandFailed } from './command.ts'

export const commands: Command[] = [
  {
    name: 'restore',
    args: ['FILE'],
    options: {
      journal: { value: 'DIR', meaning: 'let everything stand that this journal tells of since the backup' },
      'keep-keys': { meaning: 'without a journal: leave keys as the backup has them' },
    },
    summary: 'Fill an empty database from a backup.',
    help: `The database must be empty and unserved, and KEYWAY_SECRET must have the secret of the backup. Afterwards all sessions
and links are ended and signing keys are new. With --journal, what was revoked, granted or charged since the
backup stays so. Without it nobody knows what was revoked since, so all keys are revoked, unless --keep-keys.
It happens whole or not at all.`,
    async run(context) {
      const config = context.config()
      const file = context.args[0]!
      const keepKeys = context.options['keep-keys'] === true
      const journalDir = (context.options.journal as string | undefined) ?? null
      const release = lockIfEmbedded(config)
      try {
        const report = await withBackups(config, file, backups =>
          backups.restore(file, { journalDir, keepKeys }),
        )
        context.print(toJson(report), explain(report, keepKeys))
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
  if (!release) throw new CommandFailed(`A server runs on ${config.dataDir}. Stop it first.`)
  return release
}

function toJson(report: RestoreReport) {
  return {
    backup_from: toRfc3339(report.backupFrom),
    counts: report.counts,
    sessions_ended: report.sessionsEnded,
    links_ended: report.linksEnded,
    keys_revoked: report.keysRevoked,
    journal: report.journal,
  }
}

function explain(report: RestoreReport, keepKeys: boolean): string {
  const from = toRfc3339(report.backupFrom)
  return [
    `Restored ${countsText(report.counts)}, as of ${from}. What was made after that is not there.`,
    `All sessions (${report.sessionsEnded}) and sign-in links (${report.linksEnded}) have ended: everybody signs in anew.`,
    'Signing keys will be new: access and agent tokens from before are refused.',
    keysSentence(report, keepKeys, from),
  ].join('\n')
}

function keysSentence({ journal, keysRevoked }: RestoreReport, keepKeys: boolean, from: string): string {
  if (journal) {
    const gone =
      journal.unknown > 0
        ? ` ${journal.unknown} more were of accounts or keys made after the backup, which are gone.`
        : ''
    return `The journal's ${journal.applied} entries since then stand: what was revoked, granted or charged stays so.${gone}`
  }
  if (keepKeys)
    return `Keys are as they were at ${from}: one that was revoked after that WORKS AGAIN. Revoke it anew.`
  return `All ${keysRevoked} keys are revoked, since without a journal nobody knows which of them were revoked after the backup.`
}
