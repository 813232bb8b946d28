import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Config } from './config-type.ts'
import type { Values } from './settings.ts'

/** Defaults that follow from other settings, as documented in `defaultMeaning`. */
export function derivedDefaults(
  values: Values,
): Pick<
  Config,
  'publicUrl' | 'processes' | 'database' | 'events' | 'supportEmail' | 'verifyUrl' | 'journalDir'
> {
  const { KEYWAY_PORT: port, KEYWAY_DATA_DIR: dataDir } = values
  const publicUrl = values.KEYWAY_PUBLIC_URL ?? new URL(`http://localhost:${port}`).origin
  const database = values.KEYWAY_DATABASE_URL ?? { engine: 'sqlite', file: join(dataDir, 'keyway.db') }
  return {
    publicUrl,
    processes: values.KEYWAY_PROCESSES === 'auto' ? processCountFor(database) : values.KEYWAY_PROCESSES,
    database,
    events: values.KEYWAY_EVENTS_URL ?? eventsOf(database),
    supportEmail: values.KEYWAY_SUPPORT_EMAIL ?? 'support@localhost',
    verifyUrl: values.KEYWAY_VERIFY_URL ?? `${publicUrl}/verify`,
    journalDir: values.KEYWAY_JOURNAL_DIR ?? (database.engine === 'sqlite' ? join(dataDir, 'journal') : null),
  }
}

function eventsOf(database: Config['database']): Config['events'] {
  return database.engine === 'postgres' ? { kind: 'postgres', url: database.url } : { kind: 'in-process' }
}

/** With SQLite only one process can run, since it locks the data directory. */
function processCountFor({ engine }: Config['database']): number {
  return engine === 'postgres' ? availableParallelism() : 1
}
