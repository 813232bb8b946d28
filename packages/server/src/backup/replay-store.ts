import type { ApiKey } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { AuthorizationState } from '../endings/fact.ts'

/** What only the replay of a journal asks: many at once, and changes that a newer state refuses. */
export interface ReplayStore {
  /** Of these sessions those that are there, each with whether it has ended. */
  sessionsEnded(ids: readonly string[]): Promise<Map<string, boolean>>
  /** Of these links those that are there, each with whether it was used. */
  linksUsed(ids: readonly string[]): Promise<Map<string, boolean>>
  /** Of these causes those that the ledger has. */
  postedCauses(causes: readonly string[]): Promise<Set<string>>
  /** Of these keyed hashes of addresses those that had their trial credit. */
  claimedCredits(addressHashes: readonly string[]): Promise<Set<string>>
  /** When an operator last lifted a suspension; null: never, or longer ago than security events are kept. */
  lastActivation(userId: string): Promise<Instant | null>
  /** Whether anything was said of this key after `since`. Knows of the last hour. */
  wasChangedSince(keyId: string, since: Instant): Promise<boolean>
  /** How many secrets the app has that were added before `before` and are not among these. */
  appSecretsBesides(appId: string, hashes: readonly string[], before: Instant): Promise<number>
}

type KeyRef = Pick<ApiKey, 'id' | 'userId'>

/** Recorded by endings/facts.ts in the transaction that calls them. */
export interface ReplayChanges {
  /** Brings a key's expiry forward to `expiresAt`. False, and nothing written, where it ends by then already. */
  endKeyBy(key: KeyRef, expiresAt: Instant, now: Instant): Promise<boolean>
  /** False, and nothing written, where the key's networks are not `from` any more. */
  replaceNetworks(key: KeyRef, from: readonly string[], to: readonly string[], now: Instant): Promise<boolean>
  /** Removes the secrets that were added before `before` and are not among these. Returns how many there were. */
  removeAppSecretsBesides(appId: string, hashes: readonly string[], before: Instant): Promise<number>
  /** Withdraws as of `at`. Null, and nothing written, where that was so already or was granted anew after it. */
  withdrawAsOf(userId: string, appId: string, at: Instant): Promise<AuthorizationState | null>
}
