import { type Clock, type Instant, SECOND } from '../clock.ts'
import { type AgentConnection, HEARTBEAT_SECONDS } from './agent-connection.ts'
import { type CloseStatus, GOING_AWAY, SLOW_CONSUMER, TOKEN_EXPIRED, TRY_AGAIN_LATER } from './close-codes.ts'
import type { DatabaseFreshness } from './database-freshness.ts'
import type { Metering } from './metering.ts'
import type { Registry } from './registry.ts'
import { expiryCloseStatus, type Renewals } from './renewals.ts'
import { RESUME_SECONDS } from './resume-token.ts'

/** A connection from which nothing was received for this long is terminated. */
const SILENCE_SECONDS = 60
/** Maximum unsent bytes over all connections of one user, summed up in each pass. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024
/** A connection that is not `ready` after this time is closed with 1013. */
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND

export interface ConnectionChecksDeps {
  clock: Clock
  maxUnsentBytesPerUser?: number
  metering: Pick<Metering, 'tick'>
  registry: Registry
  freshness: Pick<DatabaseFreshness, 'isFresh'>
  renewals: Pick<Renewals, 'notifyOfExpiry'>
}

/**
 * Returns a pass over all connections, instead of timers for each. It closes expired ones, those that take too long to
 * become ready, and, while the database has not answered for too long, all of them. It also sends expiry notices and
 * pings, meters open time, terminates silent connections, and closes those of owners with too many unsent bytes.
 */
export function createConnectionChecks(deps: ConnectionChecksDeps): () => void {
  const { clock, metering, registry, freshness, renewals, maxUnsentBytesPerUser = MAX_UNSENT_BYTES } = deps
  return tick

  function tick(): void {
    const now = clock.now()
    const isFresh = freshness.isFresh(now)
    const unsentBytesByUser = new Map<string, number>()
    for (const connection of registry.byId.values()) {
      if (connection.state === 'held') endIfExpired(connection, now)
      else if (now >= connection.keyExpiresAt) connection.close(TOKEN_EXPIRED)
      else checkConnection(connection, now, isFresh, unsentBytesByUser)
    }
  }

  function checkConnection(
    connection: AgentConnection,
    now: Instant,
    isFresh: boolean,
    unsentBytesByUser: Map<string, number>,
  ): void {
    const timeoutStatus = timeoutCloseStatus(connection, now, isFresh)
    const overflowStatus = timeoutStatus
      ? null
      : unsentCloseStatus(connection, unsentBytesByUser, maxUnsentBytesPerUser)
    // The connection is held, since the agent can resume it with a new token, or on another node.
    if (timeoutStatus) connection.closeAndHold(timeoutStatus)
    else if (overflowStatus) connection.close(overflowStatus)
    else if (isSilent(connection, now)) connection.terminate()
    else notifyAndPing(connection, now)
  }

  function notifyAndPing(connection: AgentConnection, now: Instant): void {
    if (connection.state === 'open') {
      renewals.notifyOfExpiry(connection, now)
      metering.tick(connection, now)
    }
    if (now < connection.nextPingAt) return
    connection.nextPingAt = now + HEARTBEAT_SECONDS * SECOND
    connection.ping()
  }
}

/**
 * The close status if the token or key has expired, the key's status takes too long to load, or the database is
 * unreachable; otherwise null.
 */
function timeoutCloseStatus(connection: AgentConnection, now: Instant, isFresh: boolean): CloseStatus | null {
  const isLate = connection.state === 'pending' && now - connection.connectedAt >= HANDSHAKE_TIMEOUT_MS
  return expiryCloseStatus(connection, now) ?? (isLate || !isFresh ? TRY_AGAIN_LATER : null)
}

/** Ends a broken connection that was not resumed within `RESUME_SECONDS`, or whose key has expired. */
function endIfExpired(connection: AgentConnection, now: Instant): void {
  const isExpired = now - connection.heldAt >= RESUME_SECONDS * SECOND || now >= connection.keyExpiresAt
  if (isExpired) connection.close(GOING_AWAY)
}

/**
 * Adds the connection's unsent bytes to its owner's sum. SLOW_CONSUMER if the sum would exceed the limit, otherwise
 * null.
 */
function unsentCloseStatus(
  { unsentBytes, userId }: AgentConnection,
  unsentBytesByUser: Map<string, number>,
  maxUnsentBytes: number,
): CloseStatus | null {
  if (unsentBytes === 0) return null
  const total = (unsentBytesByUser.get(userId) ?? 0) + unsentBytes
  if (total > maxUnsentBytes) return SLOW_CONSUMER
  unsentBytesByUser.set(userId, total)
  return null
}

function isSilent({ lastReceivedAt }: AgentConnection, now: Instant): boolean {
  return now - lastReceivedAt >= SILENCE_SECONDS * SECOND
}
