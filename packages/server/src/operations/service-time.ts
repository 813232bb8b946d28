import type { Instant } from '../clock.ts'
import type { Config } from '../config.ts'
import { isDataDirHeld } from '../storage/data-dir-lock.ts'
import type { Storage } from '../store.ts'

/**
 * Reads the time for a command: the database's, but never before the newest heartbeat of a server on this data
 * directory. If the system clock was stepped back, the time of such a server runs on regardless, and its hub's sweep
 * ignores endings that are dated more than a minute before its time. On PostgreSQL this does not matter, since events
 * report the endings.
 */
export async function readServiceTime(storage: Storage, config: Config): Promise<Instant> {
  const time = await storage.readClock()
  if (config.database.engine !== 'sqlite' || !isDataDirHeld(config.dataDir)) return time
  const nodes = await storage.store.presence.nodes(time)
  return Math.max(time, ...nodes.map(({ seenAt }) => seenAt))
}
