import type { Instant } from '../clock.ts'

/** Used client assertions, stored until they expire. */
export interface ClientAssertionStore {
  /** Records a use. True for the first of any number of callers. */
  use(appId: string, jtiHash: string, expiresAt: Instant): Promise<boolean>
  prune(expiredBefore: Instant, batch: number): Promise<number>
}
