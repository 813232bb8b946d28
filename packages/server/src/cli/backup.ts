import { toRfc3339 } from '../clock.ts'
import { countsText, withBackups } from './backup-services.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'backup',
    args: ['FILE'],
    summary: 'Write the whole database into one file, while serving.',
    help: `Consistent: everything as it stood at one moment. The file fits both engines, so it also moves SQLite to PostgreSQL.
It holds addresses and hashes, and not the secret: keep KEYWAY_SECRET somewhere else, since without it the backup
is of no use. FILE is never overwritten. Keep the journal (KEYWAY_JOURNAL_DIR) as well, on another disk.`,
    async run(context) {
      const config = context.config()
      const file = context.args[0]!
      const report = await withBackups(config, file, backups => backups.backup(file))
      const at = toRfc3339(report.createdAt)
      context.print(
        { file: report.file, created_at: at, counts: report.counts },
        `Wrote ${report.file}: ${countsText(report.counts)}, as of ${at}.`,
      )
      return 0
    },
  },
]
