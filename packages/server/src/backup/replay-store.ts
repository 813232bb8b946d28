import type { ApiKey } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { Consent } from '../consents/consent.ts'
import type { AuthorizationState } from '../endings/fact.ts'

/** Queries and updates for the replay of a journal: batch look-ups, and updates that never override a newer state. */
export interface ReplayStore {
  /** The existing sessions, each with whether it has ended. */
  sessionsEnded(ids: readonly string[]): Promise<Map<string, boolean>>
  /** The existing links, each with whether it was used. */
  linksUsed(ids: readonly string[]): Promise<Map<string, boolean>>
  /** The causes that are in the ledger. */
  postedCauses(causes: readonly string[]): Promise<Set<string>>
  /** The address hashes that received their trial credit. */
  claimedCredits(addressHashes: readonly string[]): Promise<Set<string>>
  /** Time of the last activation by an operator; null: never, or before the retention of security events. */
  lastActivation(userId: string): Promise<Instant | null>
  /** Time at which the person last asked for the deletion of the account, or cancelled it; null: never. */
  lastDeletionChange(userId: string): Promise<Instant | null>
  /** Whether the key has an ending after `since`. Endings are kept for an hour. */
  wasChangedSince(keyId: string, since: Instant): Promise<boolean>
  /** Number of the app's secrets that were added before `before` and are not among `hashes`. */
  appSecretsBesides(appId: string, hashes: readonly string[], before: Instant): Promise<number>
}

type KeyRef = Pick<ApiKey, 'id' | 'userId'>

/** Changes that endings/facts.ts also records (endings, security events, journal), in the same transaction. */
export interface ReplayChanges {
  /** Moves a key's expiry to `expiresAt`. False, and nothing written, if it expires or was revoked earlier. */
  endKeyBy(key: KeyRef, expiresAt: Instant, now: Instant): Promise<boolean>
  /** False, and nothing written, if the key's networks are no longer `from`. */
  replaceNetworks(key: KeyRef, from: readonly string[], to: readonly string[], now: Instant): Promise<boolean>
  /** Removes the secrets that were added before `before` and are not among `hashes`. Returns their number. */
  removeAppSecretsBesides(appId: string, hashes: readonly string[], before: Instant): Promise<number>
  /** Withdraws as of `at`. Null, and nothing written, if it is withdrawn already or was granted again after `at`. */
  withdrawAsOf(userId: string, appId: string, at: Instant): Promise<AuthorizationState | null>
  /** As `withdrawAsOf`, for a consent. */
  withdrawConsentAsOf(userId: string, appId: string, at: Instant): Promise<Consent | null>
}
