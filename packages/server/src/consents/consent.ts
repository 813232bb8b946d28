import type { App } from '../apps/app.ts'
import type { Instant } from '../clock.ts'

/** What a person lets an app do: kept after its withdrawal, with `revokedAt`. */
export interface Consent {
  id: string
  userId: string
  appId: string
  scopes: string[]
  /** When it was first given, or given again after its withdrawal. */
  grantedAt: Instant
  revokedAt: Instant | null
}

/** A consent as its owner sees it. */
export interface NamedConsent extends Consent {
  /** The app's registered name. */
  name: string
}

/** People are asked once for each app and scope, unless the operator trusts the app. */
export function needsConsent(app: Pick<App, 'firstParty' | 'trusted'>): boolean {
  return !app.firstParty && !app.trusted
}

/** Whether it is active, was given to this app (not to an earlier one with its id), and includes all of these scopes. */
export function covers(
  consent: Consent | null,
  app: { createdAt: Instant },
  scopes: readonly string[],
): boolean {
  if (consent?.revokedAt !== null || consent.grantedAt < app.createdAt) return false
  return scopes.every(scope => consent.scopes.includes(scope))
}
