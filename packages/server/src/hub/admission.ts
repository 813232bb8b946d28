import type { ServerFrame } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Ending, refusalOfHandshake, refusalOfKey, refusalOfScopes } from './close-codes.ts'
import { readyFrame } from './frames.ts'
import type { TokenClaims } from './hub-questions.ts'
import type { Presence } from './presence.ts'
import type { Registry } from './registry.ts'
import type { Renewals } from './renewals.ts'
import type { Revocations } from './revocations.ts'
import type { StandingQuestions } from './standing-questions.ts'

export interface AdmissionDeps {
  clock: Clock
  registry: Registry
  standings: StandingQuestions
  presence: Pick<Presence, 'came'>
  renewals: Pick<Renewals, 'noticeExpiry'>
  revocations: Pick<Revocations, 'canSee'>
  maxConnectionsPerUser: number
  send(connection: AgentConnection, frame: ServerFrame): void
  end(connection: AgentConnection, ending: Ending): void
}

/** What stands between an accepted socket and `ready`. A refusal is a close code: HTTP has answered already. */
export interface Admission {
  /** Why a socket is closed as it comes, by what this node knows itself; null when its key is to be asked about. */
  refusalOf(claims: TokenClaims | null, now: Instant): Ending | null
  /** Registers the connection first, asks about its key second, says `ready` (or closes) third. */
  admit(connection: AgentConnection): Promise<void>
}

export function createAdmission(deps: AdmissionDeps): Admission {
  const { clock, registry, standings, presence, renewals, revocations, send, end } = deps
  return { refusalOf, admit }

  function refusalOf(claims: TokenClaims | null, now: Instant): Ending | null {
    const isFull = claims !== null && registry.countOf(claims.agentId) >= deps.maxConnectionsPerUser
    return refusalOfHandshake(claims, revocations.canSee(now), isFull)
  }

  async function admit(connection: AgentConnection): Promise<void> {
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
