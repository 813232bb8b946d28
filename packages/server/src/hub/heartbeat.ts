import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type CloseStatus, SLOW_CONSUMER, TRY_AGAIN_LATER } from './close-codes.ts'
import type { DatabaseFreshness } from './database-freshness.ts'
import type { Metering } from './metering.ts'
import type { Registry } from './registry.ts'
import { expiryCloseStatus, type Renewals } from './renewals.ts'

/** Ping interval of every connection, announced in `ready`. */
export const HEARTBEAT_SECONDS = 25
/** A connection from which nothing was received for this long is terminated. */
const SILENCE_SECONDS = 60
/** Maximum unsent bytes over all connections of one user, summed up in each pass. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024
/** A connection that is not `ready` after this is closed with 1013. */
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND

export interface HeartbeatDeps {
  clock: Clock
  maxUnsentBytesPerUser?: number
  metering: Pick<Metering, 'tick'>
  registry: Registry
  freshness: Pick<DatabaseFreshness, 'isFresh'>
  renewals: Pick<Renewals, 'noticeExpiry'>
}

/**
 * Returns a pass over all connections, instead of timers for each: it closes expired ones, sends expiry notices and
 * pings, terminates silent connections, and closes connections of owners with too many unsent bytes.
 */
export function createHeartbeat(deps: HeartbeatDeps): () => void {
  const { clock, metering, registry, freshness, renewals, maxUnsentBytesPerUser = MAX_UNSENT_BYTES } = deps
  return tick

  function tick(): void {
    const now = clock.now()
    const isFresh = freshness.isFresh(now)
    const unsent = new Map<string, number>()
    for (const connection of registry.byId.values()) {
      const closeStatus =
        timeoutCloseStatus(connection, now, isFresh) ??
        unsentCloseStatus(connection, unsent, maxUnsentBytesPerUser)
      if (closeStatus) connection.close(closeStatus)
      else if (isSilent(connection, now)) connection.terminate()
      else notifyAndPing(connection, now)
    }
  }

  function notifyAndPing(connection: AgentConnection, now: Instant): void {
    if (connection.state === 'open') {
      renewals.noticeExpiry(connection, now)
      metering.tick(connection, now)
    }
    if (now < connection.nextPingAt) return
    connection.nextPingAt = now + HEARTBEAT_SECONDS * SECOND
    if (!connection.readsTooSlowly) connection.socket.ping()
  }
}

/** Token or key expired, the key's status took too long to load, or the database is unreachable. */
function timeoutCloseStatus(connection: AgentConnection, now: Instant, isFresh: boolean): CloseStatus | null {
  const isLate = connection.state === 'pending' && now - connection.connectedAt >= HANDSHAKE_TIMEOUT_MS
  return expiryCloseStatus(connection, now) ?? (isLate || !isFresh ? TRY_AGAIN_LATER : null)
}

/** Adds the connection's unsent bytes to its owner's sum; the connection that exceeds the limit is closed. */
function unsentCloseStatus(
  { socket, userId }: AgentConnection,
  unsent: Map<string, number>,
  bound: number,
): CloseStatus | null {
  const { bufferedAmount } = socket
  if (bufferedAmount === 0) return null
  const total = (unsent.get(userId) ?? 0) + bufferedAmount
  if (total > bound) return SLOW_CONSUMER
  unsent.set(userId, total)
  return null
}

function isSilent({ lastReceivedAt }: AgentConnection, now: Instant): boolean {
  return now - lastReceivedAt >= SILENCE_SECONDS * SECOND
}
