import type { Instant } from '../clock.ts'
import type { Ending } from './ending.ts'

export interface EndingStore {
  /** Endings at or after `since`, oldest first, at most `limit`; `afterId` continues a page within one millisecond. */
  since(since: Instant, afterId: string | null, limit: number): Promise<Ending[]>
  prune(before: Instant, batch: number): Promise<number>
}

/** Called by facts.ts only. */
export interface EndingRows {
  insert(endings: readonly Ending[]): Promise<void>
}
