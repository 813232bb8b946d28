import type { OwnedApiKey, Scopes } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'

/** Claims of a verified agent token, from `AgentTokens.verify`. */
export interface TokenClaims {
  /** The owner's id. */
  agentId: string
  keyId: string
  scopes: Scopes
  expiresAt: Instant
}

/** A key with the status of its owner, as the database has it now, from `ApiKeys.findMany`. */
export type KeyStatus = OwnedApiKey

/** A key or an account ended, or a key was restricted; from `EndingStore.since`. */
export interface EndingNotice {
  id: string
  kind: string
  subjectId: string
  userId: string
  at: Instant
}

/** What the hub needs from the rest of the service. */
export interface HubPorts {
  /** Null if the token is invalid. Rejects if it cannot be verified now. */
  verifyToken(token: string): Promise<TokenClaims | null>
  /** Unknown keys are absent. Rejects when the database does not answer. */
  keyStatus(keyIds: readonly string[]): Promise<Map<string, KeyStatus>>
  /** Oldest first, `since` included; `afterId` continues within one millisecond. */
  endingsSince(since: Instant, afterId: string | null, limit: number): Promise<EndingNotice[]>
}
