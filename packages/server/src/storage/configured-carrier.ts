import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import { createSecrets } from '../secrets.ts'
import type { Result } from './engine.ts'
import type { DatabaseTime, EventCarrier } from './event-carrier.ts'
import { createPostgresEvents } from './postgres-events.ts'

/** Loads the Redis client only if Redis is the configured carrier. */
export async function createEventCarrier(
  config: Config['events'],
  deps: {
    secrets: Buffer[]
    log: Log
    execute(sql: string, parameters: readonly unknown[]): Promise<Result>
  },
): Promise<EventCarrier> {
  const { log, execute } = deps
  const carrierDeps = { log, secrets: createSecrets(deps.secrets), time: createDatabaseTime(execute) }
  if (config.kind === 'redis') {
    const { createRedisEvents } = await import('./redis-events.ts')
    return createRedisEvents({ ...carrierDeps, url: config.url })
  }
  const url = config.kind === 'postgres' ? config.url : null
  return createPostgresEvents({ ...carrierDeps, url, execute })
}

function createDatabaseTime(
  execute: (sql: string, parameters: readonly unknown[]) => Promise<Result>,
): DatabaseTime {
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
