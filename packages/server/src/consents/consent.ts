import type { App } from '../apps/app.ts'
import type { Instant } from '../clock.ts'

/** What a person lets an app do. After a withdrawal the consent is kept, with `revokedAt`. */
export interface Consent {
  id: string
  userId: string
  appId: string
  scopes: string[]
  /** When the consent was first given, or given again after a withdrawal or to a new app with this id. */
  grantedAt: Instant
  revokedAt: Instant | null
}

export interface NamedConsent extends Consent {
  /** The app's registered name. */
  name: string
}

/**
 * Whether people must consent to each scope of the app, once: true unless the app is the service's own or the operator
 * trusts it.
 */
export function needsConsent(app: Pick<App, 'firstParty' | 'trusted'>): boolean {
  return !app.firstParty && !app.trusted
}

/**
 * Whether the consent is active, was given to this app (not to an earlier one with its id), and includes all of these
 * scopes.
 */
export function covers(
  consent: Consent | null,
  app: { createdAt: Instant },
  scopes: readonly string[],
): boolean {
  if (consent?.revokedAt !== null || consent.grantedAt < app.createdAt) return false
  return scopes.every(scope => consent.scopes.includes(scope))
}
