import type { Instant } from '../clock.ts'

/** Client assertions (RFC 7523) that were used, stored until they expire, so that none is accepted twice. */
export interface ClientAssertionStore {
  /** Records the use of an assertion. Returns true for the first use only, also among concurrent callers. */
  use(appId: string, jtiHash: string, expiresAt: Instant): Promise<boolean>
  prune(expiredBefore: Instant, batch: number): Promise<number>
}
