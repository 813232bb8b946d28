import type { Instant } from '../clock.ts'

/** Records which apps registered themselves, and when, so that unused ones can be deleted. */
export interface RegisteredClientStore {
  insert(appId: string, at: Instant): Promise<void>
  /**
   * Deletes at most `batch` clients that were registered before this instant and got no consent or authorisation to
   * charge from anybody, not even one that was withdrawn. Returns their number.
   */
  prune(registeredBefore: Instant, batch: number): Promise<number>
}
