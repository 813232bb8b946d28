import type { ServerFrame } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Ending, refusalOfKey, refusalOfScopes } from './close-codes.ts'
import { HEARTBEAT_SECONDS } from './heartbeat.ts'
import type { Presence } from './presence.ts'
import type { Registry } from './registry.ts'
import type { Renewals } from './renewals.ts'
import type { StandingQuestions } from './standing-questions.ts'

export interface ReadyDeps {
  clock: Clock
  registry: Registry
  standings: StandingQuestions
  presence: Pick<Presence, 'came'>
  renewals: Pick<Renewals, 'noticeExpiry'>
  send(connection: AgentConnection, frame: ServerFrame): void
  end(connection: AgentConnection, ending: Ending): void
}

/** Registers a connection first, asks the database about its key second, says `ready` (or closes it) third. */
export type MakeReady = (connection: AgentConnection) => Promise<void>

export function createMakeReady(deps: ReadyDeps): MakeReady {
  const { clock, registry, standings, presence, renewals, send, end } = deps
  return makeReady

  async function makeReady(connection: AgentConnection): Promise<void> {
    // Before the question, so that an ending that lands while it is under way finds the connection.
    registry.add(connection, connection.connectedAt)
    const standing = await standings.askFor(connection, connection.keyId)
    if (connection.state !== 'pending') return
    const now = clock.now()
    const refused = refusalOfKey(standing, connection, now) ?? refusalOfScopes(connection)
    if (refused) {
      end(connection, refused)
      return
    }
    connection.accept(standing!)
    connection.state = 'open'
    send(connection, readyFrame(connection, now))
    presence.came(connection)
    renewals.noticeExpiry(connection, now)
  }
}

/** The first frame of every connection: who it is, what it may, and until when. */
function readyFrame(connection: AgentConnection, now: Instant): ServerFrame {
  return {
    type: 'ready',
    connection_id: connection.id,
    agent_id: connection.userId,
    key_id: connection.keyId,
    key_name: connection.keyName,
    scopes: [...(connection.scopes ?? [])],
    ...connection.lifetime(now),
    heartbeat_seconds: HEARTBEAT_SECONDS,
  }
}
