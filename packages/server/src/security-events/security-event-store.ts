import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { SecurityEvent } from './security-event.ts'

export interface SecurityEventStore {
  insert(event: SecurityEvent): Promise<void>
  list(userId: string, page: PageRequest): Promise<Slice<SecurityEvent>>
  prune(before: Instant, batch: number): Promise<number>
}
