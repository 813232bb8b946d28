import type { Instant } from '../clock.ts'

/** Which apps registered themselves. */
export interface RegisteredClientStore {
  insert(appId: string, at: Instant): Promise<void>
  /** Deletes those registered before this instant to which nobody gave a consent. Returns their number. */
  prune(registeredBefore: Instant, batch: number): Promise<number>
}
