import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { SecurityEvent } from './security-event.ts'

export interface SecurityEventStore {
  list(userId: string, page: PageRequest): Promise<Slice<SecurityEvent>>
  prune(before: Instant, batch: number): Promise<number>
}

/** Recorded by endings/facts.ts in the transaction that calls them. */
export interface SecurityEventChanges {
  insert(event: SecurityEvent): Promise<void>
}
