import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'migrate',
    args: [],
    summary: 'Prepare the database, or bring it up to this version.',
    help: `Runs what is missing, under a lock, and is harmless to repeat. Needed only with KEYWAY_AUTO_MIGRATE=false;
"serve" does it by itself otherwise. Migrations only add, so the version before keeps running beside it.`,
    async run(context) {
      const { openServices } = await import('../services.ts')
      const services = await openServices({ ...context.config(), autoMigrate: true, logLevel: 'error' })
      await services.close()
      context.print({ ok: true }, 'The database is up to date.')
      return 0
    },
  },
]
