import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Ending, TRY_AGAIN_LATER } from './close-codes.ts'
import type { DatabaseSight } from './database-sight.ts'
import type { Registry } from './registry.ts'
import { endingByExpiry, type Renewals } from './renewals.ts'

/** Every connection is pinged this often; `ready` says so. */
export const HEARTBEAT_SECONDS = 25
/** A connection that was silent for this long is dropped. */
const SILENCE_SECONDS = 60
/** A connection that is not `ready` by then gives up with 1013. */
const HANDSHAKE_TIMEOUT_MS = 10 * SECOND

export interface HeartbeatDeps {
  clock: Clock
  registry: Registry
  sight: Pick<DatabaseSight, 'canSee'>
  renewals: Pick<Renewals, 'noticeExpiry'>
  end(connection: AgentConnection, ending: Ending): void
  forget(connection: AgentConnection): void
}

/**
 * What time brings to every connection: its end, the notice of its expiry, a ping every 25 s, and the loss of its
 * line after 60 s of silence. One pass over all connections instead of timers for each.
 */
export function createHeartbeat(deps: HeartbeatDeps): () => void {
  const { clock, registry, sight, renewals, end, forget } = deps
  return beat

  function beat(): void {
    const now = clock.now()
    const seesEndings = sight.canSee(now)
    for (const connection of registry.byId.values()) {
      const ending = endingByTime(connection, now, seesEndings)
      if (ending) end(connection, ending)
      else if (isSilent(connection, now)) drop(connection)
      else keep(connection, now)
    }
  }

  function drop(connection: AgentConnection): void {
    forget(connection)
    connection.socket.terminate() // nobody is there to answer a close frame
  }

  function keep(connection: AgentConnection, now: Instant): void {
    if (connection.state === 'open') renewals.noticeExpiry(connection, now)
    if (now < connection.pingAt) return
    connection.pingAt = now + HEARTBEAT_SECONDS * SECOND
    if (!connection.readsTooSlowly) connection.socket.ping()
  }
}

/** What time brings to an end, or null: the token's and the key's expiry, a handshake that hangs, a blind node. */
function endingByTime(connection: AgentConnection, now: Instant, seesEndings: boolean): Ending | null {
  const hangs = connection.state === 'pending' && now - connection.connectedAt >= HANDSHAKE_TIMEOUT_MS
  return endingByExpiry(connection, now) ?? (hangs || !seesEndings ? TRY_AGAIN_LATER : null)
}

function isSilent({ heardAt }: AgentConnection, now: Instant): boolean {
  return now - heardAt >= SILENCE_SECONDS * SECOND
}
