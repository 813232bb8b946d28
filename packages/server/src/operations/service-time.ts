import type { Instant } from '../clock.ts'
import type { Config } from '../config.ts'
import { isDataDirHeld } from '../storage/data-dir-lock.ts'
import type { Storage } from '../store.ts'

/**
 * The time for a command: the database's, but never before the newest heartbeat of a server on this data directory. A
 * server keeps its own time when the system's clock is stepped back, and the sweep of its hub does not read endings with
 * times more than a minute before that. On PostgreSQL an event reports them as well.
 */
export async function readServiceTime(storage: Storage, config: Config): Promise<Instant> {
  const time = await storage.readClock()
  if (config.database.engine !== 'sqlite' || !isDataDirHeld(config.dataDir)) return time
  const nodes = await storage.store.presence.nodes(time)
  return Math.max(time, ...nodes.map(({ seenAt }) => seenAt))
}
