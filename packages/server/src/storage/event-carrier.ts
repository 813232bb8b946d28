import type { Config } from '../config.ts'
import type { Event, Events } from '../events.ts'
import type { Log } from '../log.ts'
import type { EventsHealth, Result } from './engine.ts'
import { createPostgresEvents } from './postgres-events.ts'

/** How nodes on one database tell each other. */
export interface EventCarrier extends Events {
  /**
   * A statement that tells of these events when its transaction commits. A carrier without it is outside of the
   * database: then they are published after the commit, and one that is lost there is found by the sweep.
   */
  notification?(events: readonly Event[]): { sql: string; parameters: readonly unknown[] }
  start(): Promise<void>
  stop(): Promise<void>
  health(): EventsHealth
}

/** The one that is set. The client of Redis is loaded only where Redis carries. */
export async function createEventCarrier(
  carrier: Config['events'],
  log: Log,
  execute: (sql: string, parameters: readonly unknown[]) => Promise<Result>,
): Promise<EventCarrier> {
  if (carrier.kind === 'redis') {
    const { createRedisEvents } = await import('./redis-events.ts')
    return createRedisEvents({ url: carrier.url, log })
  }
  const url = carrier.kind === 'postgres' ? carrier.url : null
  return createPostgresEvents({ url, log, execute })
}
