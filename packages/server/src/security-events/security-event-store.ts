import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { SecurityEvent, SecurityEventType } from './security-event.ts'

export interface SecurityEventFilter {
  types?: readonly SecurityEventType[] | undefined
  keyId?: string | undefined
}

export interface SecurityEventStore {
  /**
   * Newest first. Each filter has an index. With both filters a page reads a bounded number of the key's events and
   * leaves out those of other types, so it may have fewer than `limit`, or none, and still be followed by another.
   */
  list(userId: string, page: PageRequest, filter?: SecurityEventFilter): Promise<Slice<SecurityEvent>>
  prune(before: Instant, batch: number): Promise<number>
}

/** Used by endings/facts.ts only. */
export interface SecurityEventRows {
  insertMany(events: readonly SecurityEvent[]): Promise<void>
}

/** Only transactions have this operation: after the commit the event is also logged and, for statistics, counted. */
export interface SecurityEventChanges {
  insert(event: SecurityEvent): Promise<void>
}
