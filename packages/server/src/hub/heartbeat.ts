import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Ending, SLOW_CONSUMER, TRY_AGAIN_LATER } from './close-codes.ts'
import type { DatabaseFreshness } from './database-freshness.ts'
import type { Registry } from './registry.ts'
import { endingByExpiry, type Renewals } from './renewals.ts'

/** Every connection is pinged this often; `ready` says so. */
export const HEARTBEAT_SECONDS = 25
/** A connection that was silent for this long is dropped. */
const SILENCE_SECONDS = 60
/** Bytes that may wait unsent for all connections of one user, counted with each pass. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024
/** A connection that is not `ready` after this is closed with 1013. */
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND

export interface HeartbeatDeps {
  clock: Clock
  maxUnreadBytesPerUser?: number
  registry: Registry
  freshness: Pick<DatabaseFreshness, 'isFresh'>
  renewals: Pick<Renewals, 'noticeExpiry'>
}

/**
 * One pass over all connections instead of timers for each: expiry and its notice, a ping every 25 s, dropping silent
 * connections after 60 s, and closing connections of owners with too many unsent bytes.
 */
export function createHeartbeat(deps: HeartbeatDeps): () => void {
  const { clock, registry, freshness, renewals, maxUnreadBytesPerUser = MAX_UNREAD_BYTES } = deps
  return beat

  function beat(): void {
    const now = clock.now()
    const isFresh = freshness.isFresh(now)
    const unread = new Map<string, number>()
    for (const connection of registry.byId.values()) {
      const ending =
        endingByTime(connection, now, isFresh) ?? endingByUnread(connection, unread, maxUnreadBytesPerUser)
      if (ending) connection.close(ending)
      else if (isSilent(connection, now)) connection.drop()
      else keep(connection, now)
    }
  }

  function keep(connection: AgentConnection, now: Instant): void {
    if (connection.state === 'open') renewals.noticeExpiry(connection, now)
    if (now < connection.pingAt) return
    connection.pingAt = now + HEARTBEAT_SECONDS * SECOND
    if (!connection.readsTooSlowly) connection.socket.ping()
  }
}

/** Expiry of token or key, a key status that takes too long to load, or an unreachable database. */
function endingByTime(connection: AgentConnection, now: Instant, isFresh: boolean): Ending | null {
  const hangs = connection.state === 'pending' && now - connection.connectedAt >= HANDSHAKE_TIMEOUT_MS
  return endingByExpiry(connection, now) ?? (hangs || !isFresh ? TRY_AGAIN_LATER : null)
}

/** Adds to the owner's unsent bytes; the connection that exceeds the limit is closed. */
function endingByUnread(
  { socket, userId }: AgentConnection,
  unread: Map<string, number>,
  bound: number,
): Ending | null {
  const { bufferedAmount } = socket
  if (bufferedAmount === 0) return null
  const total = (unread.get(userId) ?? 0) + bufferedAmount
  if (total > bound) return SLOW_CONSUMER
  unread.set(userId, total)
  return null
}

function isSilent({ heardAt }: AgentConnection, now: Instant): boolean {
  return now - heardAt >= SILENCE_SECONDS * SECOND
}
