import type { ApiKey } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { Consent } from '../consents/consent.ts'
import type { AuthorizationState } from '../endings/fact.ts'

/** Queries and updates for the replay of a journal: batch look-ups, and updates that never override a newer state. */
export interface ReplayStore {
  /** Whether each of these sessions has ended, by id; unknown sessions are absent. */
  sessionsEnded(ids: readonly string[]): Promise<Map<string, boolean>>
  /** Whether each of these links is spent (used, or ended without use), by id; unknown links are absent. */
  linksUsed(ids: readonly string[]): Promise<Map<string, boolean>>
  /** Those of these causes (`LedgerEntry.cause`) that an entry in the ledger has. */
  postedCauses(causes: readonly string[]): Promise<Set<string>>
  /** Those of the address hashes that received their trial credit. */
  claimedCredits(addressHashes: readonly string[]): Promise<Set<string>>
  /** When the account was last activated after a suspension; null if never, or if that security event was pruned. */
  lastActivation(userId: string): Promise<Instant | null>
  /**
   * When the account's deletion was last requested or cancelled; null if never, or if that security event was pruned.
   */
  lastDeletionChange(userId: string): Promise<Instant | null>
  /**
   * Whether the table of endings has a row of this key (revoked, rotated or restricted) with a time after `since`. The
   * rows are kept for an hour.
   */
  wasChangedSince(keyId: string, since: Instant): Promise<boolean>
  /** The number of the app's secrets that were added before `before` and are not among `hashes`. */
  countAppSecretsBesides(appId: string, hashes: readonly string[], before: Instant): Promise<number>
}

type KeyRef = Pick<ApiKey, 'id' | 'userId'>

/**
 * The updates of a replay. Their transaction also records what other nodes, people, webhooks and the journal learn of
 * them (endings/facts.ts).
 */
export interface ReplayChanges {
  /**
   * Makes a key expire earlier, at `expiresAt`. Returns false and writes nothing if the key expires by then already, is
   * revoked, or does not exist.
   */
  endKeyBy(key: KeyRef, expiresAt: Instant, now: Instant): Promise<boolean>
  /** Returns false and writes nothing if the key's networks are no longer `from`, or the key does not exist. */
  replaceNetworks(key: KeyRef, from: readonly string[], to: readonly string[], now: Instant): Promise<boolean>
  /** Removes the app's secrets that were added before `before` and are not among `hashes`. Returns their number. */
  removeAppSecretsBesides(appId: string, hashes: readonly string[], before: Instant): Promise<number>
  /**
   * Withdraws a charge authorisation as of `at`. Returns null and writes nothing if it does not exist, is withdrawn
   * already, or was granted after `at`.
   */
  withdrawAsOf(userId: string, appId: string, at: Instant): Promise<AuthorizationState | null>
  /** Like `withdrawAsOf`, for a consent. */
  withdrawConsentAsOf(userId: string, appId: string, at: Instant): Promise<Consent | null>
}
