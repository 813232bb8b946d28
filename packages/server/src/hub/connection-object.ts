import type { AgentConnectionObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../clock.ts'
import type { LiveConnection } from '../events.ts'

/** A connection as it appears in frames and in the lists of the API. */
export function connectionObject(connection: LiveConnection): AgentConnectionObject {
  return {
    connection_id: connection.connectionId,
    key_id: connection.keyId,
    key_name: connection.keyName,
    connected_at: toRfc3339(connection.connectedAt),
    address: connection.address,
    client: connection.client,
  }
}
