import type { OwnedApiKey, Scopes } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'

/** What a verified agent token says; `AgentTokens.verify` fits. */
export interface TokenClaims {
  /** The owner's id. */
  agentId: string
  keyId: string
  scopes: Scopes
  expiresAt: Instant
}

/** A key with the status of its owner, as the database has it now; `ApiKeys.findMany` fits. */
export type KeyStatus = OwnedApiKey

/** That a key or an account ended, or became stricter; `EndingStore.since` fits. */
export interface EndingNotice {
  id: string
  kind: string
  subjectId: string
  userId: string
  at: Instant
}

/** What the hub needs from the rest of the service. */
export interface HubPorts {
  /** Null when the token alone shows that it opens nothing here. Rejects when that cannot be known now. */
  verifyToken(token: string): Promise<TokenClaims | null>
  /** Unknown keys are absent. Rejects when the database does not answer. */
  keyStatus(keyIds: readonly string[]): Promise<Map<string, KeyStatus>>
  /** Oldest first, `since` included; `afterId` continues within one millisecond. */
  endingsSince(since: Instant, afterId: string | null, limit: number): Promise<EndingNotice[]>
}
