import type { Event, Events } from '../events.ts'
import type { Log } from '../log.ts'
import type { Secrets } from '../secrets.ts'
import type { EventsHealth } from './engine.ts'

/** The channel of sealed events, whose seal covers this name too. The previous minor version reads UNSEALED_CHANNEL. */
export const SEALED_CHANNEL = 'keyway_sealed'

/**
 * A node's own channel, for events that are published to some nodes only. They are sealed as on SEALED_CHANNEL, and
 * contain the ids of all these nodes.
 */
export function channelOf(nodeId: string): string {
  return `keyway_node_${nodeId.replaceAll('-', '')}`
}

/** The transport by which the nodes on one database exchange events: PostgreSQL's NOTIFY, or Redis. */
export interface EventCarrier extends Events {
  /**
   * A statement that publishes these events when its transaction commits. Absent if the carrier is outside the
   * database: then events are published after the commit. The loss of an event only delays its effect, since receivers
   * also read the store at intervals.
   */
  notification?(events: readonly Event[]): { sql: string; parameters: readonly unknown[] }
  start(): Promise<void>
  stop(): Promise<void>
  health(): EventsHealth
}

export interface CarrierDeps {
  secrets: Secrets
  log: Log
  time: DatabaseTime
}

/** The database's time, extrapolated by a monotonic clock, so that nodes with different clocks agree on it. */
export interface DatabaseTime {
  /** Milliseconds since 1970; this machine's time until the first synchronization. */
  now(): number
  synchronize(): Promise<void>
}
