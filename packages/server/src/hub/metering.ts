import { type Instant, SECOND } from '../clock.ts'
import type { Meter } from '../usage/meter.ts'
import { bucketStart } from '../usage/usage.ts'

/** Interval at which the time of open connections is added to the usage meter, which stores its counts later. */
const METERING_INTERVAL_MS = 2 * SECOND

interface MeteredConnection {
  readonly userId: string
  readonly keyId: string
  readonly state: 'pending' | 'open' | 'held' | 'closed'
  /** The connection's open time has been counted up to this instant. */
  meteredAt: Instant
}

/** Counts connections and their open time in the usage of their keys. */
export interface Metering {
  /** Called when the connection is ready; counts it. */
  begin(connection: MeteredConnection, now: Instant): void
  /** Called in every pass over the connections; every two seconds it counts the time since the last count. */
  tick(connection: MeteredConnection, now: Instant): void
  /** Called when the connection closes or breaks, or a renewal binds it to another key; counts the remaining time. */
  countConnectedTime(connection: MeteredConnection, now: Instant): void
}

export function createMetering(meter: Meter): Metering {
  return {
    begin(connection, now) {
      connection.meteredAt = now
      meter.count(connection.userId, connection.keyId, 'connections')
    },
    tick(connection, now) {
      if (now - connection.meteredAt >= METERING_INTERVAL_MS) countConnectedTime(connection, now)
    },
    countConnectedTime,
  }

  function countConnectedTime(connection: MeteredConnection, now: Instant): void {
    if (connection.state !== 'open' || now <= connection.meteredAt) return
    const { userId, keyId, meteredAt } = connection
    connection.meteredAt = now
    // Split at the full hour, since usage is stored by the hour.
    const splitAt = Math.max(meteredAt, bucketStart('hour', now))
    if (splitAt > meteredAt) meter.count(userId, keyId, 'connectedMs', splitAt - meteredAt, meteredAt)
    if (now > splitAt) meter.count(userId, keyId, 'connectedMs', now - splitAt, now)
  }
}
