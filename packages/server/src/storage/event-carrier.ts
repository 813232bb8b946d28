import type { Event, Events } from '../events.ts'
import type { EventsHealth } from './engine.ts'

/** How nodes on one database tell each other. */
export interface EventCarrier extends Events {
  /**
   * A statement that tells of these events when its transaction commits. A carrier without it is outside of the
   * database: then they are published after the commit, and one that is lost there is found by the sweep.
   */
  notification?(events: readonly Event[]): { sql: string; parameters: readonly unknown[] }
  start(): Promise<void>
  stop(): Promise<void>
  health(): EventsHealth
}
