import type { Instant } from '../clock.ts'
import type { Config } from '../config.ts'
import { isDataDirHeld } from '../storage/data-dir-lock.ts'
import type { Storage } from '../store.ts'

/**
 * The time for a command: the database's, but never before the newest heartbeat of a server on this data directory.
 * Such a server keeps its time when the system clock is stepped back, and its hub's sweep ignores endings dated more
 * than a minute earlier. On PostgreSQL events report the endings anyway.
 */
export async function readServiceTime(storage: Storage, config: Config): Promise<Instant> {
  const time = await storage.readClock()
  if (config.database.engine !== 'sqlite' || !isDataDirHeld(config.dataDir)) return time
  const nodes = await storage.store.presence.nodes(time)
  return Math.max(time, ...nodes.map(({ seenAt }) => seenAt))
}
