import type { OwnedApiKey, Scopes } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { Ending } from '../endings/ending.ts'
import type { Meter } from '../usage/meter.ts'

/** Claims of a verified agent token, from `AgentTokens.verify`. */
export interface TokenClaims {
  /** The user id of the key's owner. */
  agentId: string
  keyId: string
  scopes: Scopes
  expiresAt: Instant
}

/** A key with the status of its owner, read from the database by `ApiKeys.findMany`. */
export type KeyStatus = OwnedApiKey

/** The hub's interface to the rest of the service. */
export interface HubPorts {
  meter: Meter
  /** Null if the token is invalid. Rejects if it cannot be verified at the moment. */
  verifyToken(token: string): Promise<TokenClaims | null>
  /** The status of each key, by id; unknown keys are absent. Rejects when the database does not answer. */
  keyStatus(keyIds: readonly string[]): Promise<Map<string, KeyStatus>>
  /** See `EndingStore.since`. */
  endingsSince(since: Instant, afterId: string | null, limit: number): Promise<Ending[]>
}
