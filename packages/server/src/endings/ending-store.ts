import type { Instant } from '../clock.ts'
import type { Ending } from './ending.ts'

export interface EndingStore {
  /**
   * The first `limit` endings at or after `since`, oldest first. For a further page, `since` and `afterId` are the time
   * and id of the last ending of the page before; otherwise `afterId` is null.
   */
  since(since: Instant, afterId: string | null, limit: number): Promise<Ending[]>
  prune(before: Instant, batch: number): Promise<number>
}

/** The table of endings; only facts.ts inserts rows. */
export interface EndingRows {
  insert(endings: readonly Ending[]): Promise<void>
}
