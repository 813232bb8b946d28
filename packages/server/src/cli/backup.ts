import { toRfc3339 } from '../clock.ts'
import { countsText, withBackups } from './backup-services.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'backup',
    args: ['FILE'],
    summary: 'Write the whole database into one file, while the service runs.',
    help: `A consistent snapshot. The format is the same for both engines, so it can also move SQLite to PostgreSQL. The file
contains addresses and hashes, but not KEYWAY_SECRET: store that separately, since a restore needs it. FILE is never
overwritten. Keep the journal (KEYWAY_JOURNAL_DIR) too, on another disk.`,
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
