import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Consent, NamedConsent } from './consent.ts'

export interface ConsentStore {
  /** The consent of a user to an app, even if it was withdrawn; null if none was ever given. */
  find(userId: string, appId: string): Promise<Consent | null>
  /** Active consents, newest first. */
  list(userId: string, page: PageRequest): Promise<Slice<NamedConsent>>
}

/** Changes of consents. Their transaction also records them for the journal (endings/facts.ts). */
export interface ConsentChanges {
  /**
   * Adds scopes to the active consent if it was given at `since` or later. Otherwise stores a new one with the given
   * id, which replaces an earlier one.
   */
  grant(wanted: Omit<Consent, 'revokedAt'>, since: Instant): Promise<Consent>
  /** Returns null and writes nothing if there is no active consent. */
  withdraw(userId: string, appId: string, at: Instant): Promise<Consent | null>
  /** Withdraws at most `limit` active consents to an app; returns them. */
  withdrawSomeOfApp(appId: string, limit: number, at: Instant): Promise<Consent[]>
}
