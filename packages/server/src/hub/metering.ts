import { HOUR, type Instant, SECOND } from '../clock.ts'
import type { Meter } from '../usage/meter.ts'
import type { AgentConnection } from './agent-connection.ts'

/** How often the time of an open connection is counted, so that a crash loses only the last seconds of it. */
const METERING_INTERVAL = 2 * SECOND

/** Counts the time that a connection was open for the key that it belongs to. */
export interface Metering {
  /** It is ready: its time begins. */
  begin(connection: AgentConnection, now: Instant): void
  /** With every heartbeat pass: counts the time since the last count, where it is due or an hour has ended. */
  tick(connection: AgentConnection, now: Instant): void
  /** It closes or moves to another key: counts the rest. */
  settle(connection: AgentConnection, now: Instant): void
}

export function createMetering(meter: Meter): Metering {
  return {
    begin(connection, now) {
      connection.meteredAt = now
      meter.count(connection.userId, connection.keyId, 'connections')
    },
    tick(connection, now) {
      const { meteredAt } = connection
      const isDue = now - meteredAt >= METERING_INTERVAL
      if (isDue || Math.floor(now / HOUR) !== Math.floor(meteredAt / HOUR)) settle(connection, now)
    },
    settle,
  }

  function settle(connection: AgentConnection, now: Instant): void {
    if (connection.state !== 'open' || now <= connection.meteredAt) return
    meter.count(connection.userId, connection.keyId, 'connectedMs', now - connection.meteredAt)
    connection.meteredAt = now
  }
}
