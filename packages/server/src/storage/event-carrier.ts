import type { Config } from '../config.ts'
import type { Event, Events } from '../events.ts'
import type { Log } from '../log.ts'
import { createSecrets, type Secrets } from '../secrets.ts'
import type { EventsHealth, Result } from './engine.ts'
import { createPostgresEvents } from './postgres-events.ts'

/** The channel of sealed events; part of what is authenticated. The previous minor version does not read it. */
export const SEALED_CHANNEL = 'keyway_sealed'

/** How nodes on one database exchange events. */
export interface EventCarrier extends Events {
  /**
   * A statement that publishes these events when its transaction commits. A carrier without it is outside of the
   * database: then they are published after the commit, and one that is lost there is found by the sweep.
   */
  notification?(events: readonly Event[]): { sql: string; parameters: readonly unknown[] }
  start(): Promise<void>
  stop(): Promise<void>
  health(): EventsHealth
}

export interface CarrierDeps {
  secrets: Secrets
  log: Log
  time: DatabaseTime
}

/** The configured one. The client of Redis is loaded only where Redis carries. */
export async function createEventCarrier(
  carrier: Config['events'],
  deps: {
    secrets: Buffer[]
    log: Log
    execute(sql: string, parameters: readonly unknown[]): Promise<Result>
  },
): Promise<EventCarrier> {
  const { log, execute } = deps
  const common = { log, secrets: createSecrets(deps.secrets), time: createDatabaseTime(execute) }
  if (carrier.kind === 'redis') {
    const { createRedisEvents } = await import('./redis-events.ts')
    return createRedisEvents({ ...common, url: carrier.url })
  }
  const url = carrier.kind === 'postgres' ? carrier.url : null
  return createPostgresEvents({ ...common, url, execute })
}

/** The database's time by this process's monotonic clock: what nodes with different clocks agree on. */
export interface DatabaseTime {
  /** Milliseconds since 1970; this machine's until the first synchronization. */
  now(): number
  synchronize(): Promise<void>
}

function createDatabaseTime(execute: (sql: string, parameters: readonly unknown[]) => Promise<Result>) {
  let offset = performance.timeOrigin
  return {
    now: () => performance.now() + offset,
    async synchronize() {
      const sentAt = performance.now()
      const { rows } = await execute(
        'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now',
        [],
      )
      offset = (rows[0] as { now: number }).now - (sentAt + performance.now()) / 2
    },
  }
}
