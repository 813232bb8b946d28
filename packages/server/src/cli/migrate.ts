import { createLog } from '../log.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'migrate',
    args: [],
    createsDatabase: true,
    summary: 'Migrate the database to this version.',
    help: `Creates the database if needed, and runs the missing migrations under a lock; repeating it is harmless. Needed only
with KEYWAY_AUTO_MIGRATE=false; otherwise "serve" runs them at start. Migrations only add, so nodes of the previous version
can keep running.`,
    async run(context) {
      const { createStorage } = await import('../storage/database.ts')
      const storage = await createStorage({ ...context.config(), autoMigrate: true }, createLog('silent'))
      await storage.close()
      context.print({ ok: true }, 'The database is up to date.')
      return 0
    },
  },
]
