import type { Instant } from '../clock.ts'

/** Which apps registered themselves. */
export interface RegisteredClientStore {
  insert(appId: string, at: Instant): Promise<void>
  /** Deletes clients that were registered before this instant and have no consent of anybody. Returns their number. */
  prune(registeredBefore: Instant, batch: number): Promise<number>
}
