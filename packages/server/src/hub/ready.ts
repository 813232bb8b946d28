import type { ServerFrame } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import { type AgentConnection, HEARTBEAT_SECONDS } from './agent-connection.ts'
import { RATE_LIMITED, refusalCodeOf, refusalOfKey, refusalOfScopes } from './close-codes.ts'
import type { HubPorts } from './hub-ports.ts'
import type { KeyStatusLoader } from './key-status-loader.ts'
import type { Locations } from './locations.ts'
import type { Metering } from './metering.ts'
import type { PresenceRecorder } from './presence.ts'
import type { OwnerLimits } from './rate-limits.ts'
import type { Registry } from './registry.ts'
import type { Renewals } from './renewals.ts'
import { newResumeToken, RESUME_SECONDS, type ResumeRequest } from './resume-token.ts'
import type { Resumptions } from './resumptions.ts'

export interface ReadyDeps {
  clock: Clock
  ports: Pick<HubPorts, 'meter'>
  metering: Metering
  registry: Registry
  keyStatuses: KeyStatusLoader
  presence: Pick<PresenceRecorder, 'add'>
  renewals: Pick<Renewals, 'notifyOfExpiry'>
  ownerLimits: Pick<OwnerLimits, 'mayDeliver' | 'chargeDeliveries'>
  resumptions: Pick<Resumptions, 'moveHere' | 'claim'>
  locations: Pick<Locations, 'enter'>
  nodeId: string
}

/**
 * Registers a connection, then loads its key's status, notifies the owner's other nodes, claims the connection that it
 * resumes, and sends `ready` with the missed messages. Closes the connection if one of these steps refuses it; if only
 * the resumption is impossible, `ready` says so and the connection starts anew.
 */
export type MakeReady = (connection: AgentConnection, resume: ResumeRequest | null) => Promise<void>

export function createMakeReady(deps: ReadyDeps): MakeReady {
  const { clock, ports, metering, registry, keyStatuses, presence, renewals, resumptions, locations } = deps
  const { ownerLimits } = deps
  return makeReady

  async function makeReady(connection: AgentConnection, resume: ResumeRequest | null): Promise<void> {
    // Registered before the load, so that a concurrent revocation closes the connection.
    registry.add(connection)
    const nodesNotified = locations.enter(connection.identity)
    const key = await keyStatuses.loadFor(connection, connection.keyId, nodesNotified)
    if (connection.state !== 'pending') return
    const refusal = refusalOfKey(key, connection, clock.now()) ?? refusalOfScopes(connection)
    if (refusal) {
      const code = refusalCodeOf(refusal)
      if (key && code) ports.meter.countRefusal(connection.userId, connection.keyId, code)
      connection.close(refusal)
      return
    }
    connection.update(key!)
    if (resume) {
      // Replayed and moved messages count as deliveries. An agent that is refused may resume later with the same token.
      if (!ownerLimits.mayDeliver(connection.userId, clock.now())) return connection.close(RATE_LIMITED)
      await resumptions.moveHere(connection, resume)
    }
    if (connection.state === 'pending') open(connection, resume)
  }

  function open(connection: AgentConnection, resume: ResumeRequest | null): void {
    const now = clock.now()
    const handoverState = resume && resumptions.claim(connection, resume)
    if (handoverState) registry.takeOver(connection, handoverState)
    connection.state = 'open'
    metering.begin(connection, now)
    const { token, secretHash } = newResumeToken(deps.nodeId, connection.id)
    connection.resumeHash = secretHash
    connection.send(readyFrame(connection, token, handoverState !== null, now))
    if (handoverState)
      ownerLimits.chargeDeliveries(connection.userId, 1, connection.replay(resume!.lastSeq), now)
    presence.add(connection)
    renewals.notifyOfExpiry(connection, now)
  }
}

function readyFrame(connection: AgentConnection, token: string, resumed: boolean, now: Instant): ServerFrame {
  return {
    type: 'ready',
    connection_id: connection.id,
    agent_id: connection.userId,
    key_id: connection.keyId,
    key_name: connection.keyName,
    scopes: [...(connection.scopes ?? [])],
    ...connection.lifetime(now),
    heartbeat_seconds: HEARTBEAT_SECONDS,
    resume_token: token,
    resume_seconds: RESUME_SECONDS,
    resumed,
  }
}
