import type { Instant } from '../clock.ts'

/** Client assertions that were used, until they expire. */
export interface ClientAssertionStore {
  /** True for one of any number of callers. */
  use(appId: string, jtiHash: string, expiresAt: Instant): Promise<boolean>
  prune(expiredBefore: Instant, batch: number): Promise<number>
}
