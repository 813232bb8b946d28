import { CLI_CLIENT_ID } from '../apps/app.ts'
import type { Instant } from '../clock.ts'
import { covers, needsConsent } from '../consents/consent.ts'
import type { Caller } from '../network.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Transaction } from '../store.ts'
import type { DeviceAuthorization } from './device-authorization.ts'

/**
 * Whether the approval is stored as a consent. The SDK's command (`keyway-cli`) gets a key instead, which is listed and
 * revoked as such.
 */
function isStoredAsConsent({ clientId }: DeviceAuthorization): boolean {
  return clientId !== CLI_CLIENT_ID
}

/** Records the person's consent to what the page showed, unless the app needs none or is the SDK's command. */
export async function grantConsent(
  tx: Transaction,
  approved: DeviceAuthorization,
  { id, userId, now, caller }: { id: string; userId: string; now: Instant; caller: Caller },
): Promise<void> {
  const app = isStoredAsConsent(approved) ? await tx.apps.find(approved.clientId) : null
  if (!app || !needsConsent(app)) return
  const scopes = [...approved.scopes]
  await tx.consents.grant({ id, userId, appId: app.id, scopes, grantedAt: now }, app.createdAt)
  await tx.securityEvents.insert(securityEvent('consent_granted', userId, now, caller))
}

/**
 * Whether the approval still holds: the app was not removed since (its id may be registered again), and a consent, if
 * one is needed, still covers the scopes.
 */
export async function isApprovalStillValid(tx: Transaction, approved: DeviceAuthorization): Promise<boolean> {
  const app = await tx.apps.find(approved.clientId)
  if (!app || app.createdAt > approved.createdAt) return false
  if (!isStoredAsConsent(approved) || !needsConsent(app)) return true
  return covers(await tx.consents.find(approved.userId!, app.id), app, approved.scopes)
}
