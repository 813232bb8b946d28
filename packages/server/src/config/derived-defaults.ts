import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Config } from './config-type.ts'
import type { Values } from './settings.ts'

/** Defaults that follow from other settings, as documented in `defaultMeaning`. */
export function derivedDefaults(
  given: Values,
): Pick<
  Config,
  'publicUrl' | 'processes' | 'database' | 'events' | 'supportEmail' | 'verifyUrl' | 'journalDir'
> {
  const { KEYWAY_PORT: port, KEYWAY_DATA_DIR: dataDir } = given
  const publicUrl = given.KEYWAY_PUBLIC_URL ?? new URL(`http://localhost:${port}`).origin
  const database = given.KEYWAY_DATABASE_URL ?? { engine: 'sqlite', file: join(dataDir, 'keyway.db') }
  return {
    publicUrl,
    processes: given.KEYWAY_PROCESSES === 'auto' ? processesFor(database) : given.KEYWAY_PROCESSES,
    database,
    events: given.KEYWAY_EVENTS_URL ?? eventsOf(database),
    supportEmail: given.KEYWAY_SUPPORT_EMAIL ?? 'support@localhost',
    verifyUrl: given.KEYWAY_VERIFY_URL ?? `${publicUrl}/verify`,
    journalDir: given.KEYWAY_JOURNAL_DIR ?? (database.engine === 'sqlite' ? join(dataDir, 'journal') : null),
  }
}

function eventsOf(database: Config['database']): Config['events'] {
  return database.engine === 'postgres' ? { kind: 'postgres', url: database.url } : { kind: 'in-process' }
}

/** SQLite has one writer, and the process that holds its data directory is the only one. */
function processesFor({ engine }: Config['database']): number {
  return engine === 'postgres' ? availableParallelism() : 1
}
