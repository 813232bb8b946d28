import { createLog } from '../log.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'migrate',
    args: [],
    createsDatabase: true,
    summary: 'Prepare the database, or bring it up to this version.',
    help: `Runs what is missing, under a lock, and is harmless to repeat. Needed only with KEYWAY_AUTO_MIGRATE=false;
"serve" does it by itself otherwise. Migrations only add, so the version before keeps running beside it.`,
    async run(context) {
      const { createStorage } = await import('../storage/database.ts')
      const storage = await createStorage({ ...context.config(), autoMigrate: true }, createLog('silent'))
      await storage.close()
      context.print({ ok: true }, 'The database is up to date.')
      return 0
    },
  },
]
