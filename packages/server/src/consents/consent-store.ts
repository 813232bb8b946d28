import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Consent, NamedConsent } from './consent.ts'

export interface ConsentStore {
  /** Also a withdrawn one. */
  find(userId: string, appId: string): Promise<Consent | null>
  /** Active ones, newest first. */
  list(userId: string, page: PageRequest): Promise<Slice<NamedConsent>>
}

/** Recorded by endings/facts.ts in the transaction that calls them. */
export interface ConsentChanges {
  /** Adds scopes to the active consent, if it was given at `since` or later; else begins one with this id. */
  grant(wanted: Omit<Consent, 'revokedAt'>, since: Instant): Promise<Consent>
  /** Null, and nothing written, if there is no active one. */
  withdraw(userId: string, appId: string, at: Instant): Promise<Consent | null>
  /** Withdraws at most `limit` consents to an app; returns them. */
  withdrawSomeOfApp(appId: string, limit: number, at: Instant): Promise<Consent[]>
}
