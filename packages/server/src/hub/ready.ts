import type { ServerFrame } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { refusalCodeOf, refusalOfKey, refusalOfScopes } from './close-codes.ts'
import { HEARTBEAT_SECONDS } from './heartbeat.ts'
import type { HubPorts } from './hub-ports.ts'
import type { KeyStatusLoader } from './key-status-loader.ts'
import type { Metering } from './metering.ts'
import type { RecordPresence } from './presence.ts'
import type { Registry } from './registry.ts'
import type { Renewals } from './renewals.ts'

export interface ReadyDeps {
  clock: Clock
  ports: Pick<HubPorts, 'meter'>
  metering: Metering
  registry: Registry
  keyStatuses: KeyStatusLoader
  presence: Pick<RecordPresence, 'add'>
  renewals: Pick<Renewals, 'noticeExpiry'>
}

/** Registers a connection, then loads the status of its key, then sends `ready` or closes it. */
export type MakeReady = (connection: AgentConnection) => Promise<void>

export function createMakeReady(deps: ReadyDeps): MakeReady {
  const { clock, ports, metering, registry, keyStatuses, presence, renewals } = deps
  return makeReady

  async function makeReady(connection: AgentConnection): Promise<void> {
    // Registered before the load, so that a concurrent revocation closes the connection.
    registry.add(connection)
    const key = await keyStatuses.loadFor(connection, connection.keyId)
    if (connection.state !== 'pending') return
    const now = clock.now()
    const refused = refusalOfKey(key, connection, now) ?? refusalOfScopes(connection)
    if (refused) {
      const code = refusalCodeOf(refused)
      if (key && code) ports.meter.countRefusal(connection.userId, connection.keyId, code)
      connection.close(refused)
      return
    }
    connection.update(key!)
    connection.state = 'open'
    metering.begin(connection, now)
    connection.send(readyFrame(connection, now))
    presence.add(connection)
    renewals.noticeExpiry(connection, now)
  }
}

/** The first frame of every connection: its identity, scopes and expiry. */
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
