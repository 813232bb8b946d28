import type { Instant } from '../clock.ts'

/** What a verified agent token says; `AgentTokens.verify` fits. */
export interface TokenClaims {
  /** The owner's id. */
  agentId: string
  keyId: string
  /** Null: unrestricted. */
  scopes: string[] | null
  expiresAt: Instant
}

/** How a key stands now; `ApiKeys.standing` fits. */
export interface Standing {
  keyId: string
  userId: string
  name: string | null
  /** Empty: unrestricted. */
  scopes: string[]
  /** CIDRs; empty: from anywhere. */
  allowedNetworks: string[]
  expiresAt: Instant | null
  standing: 'active' | 'expired' | 'revoked' | 'suspended'
}

/** That a key or an account ended, or became stricter; `EndingStore.since` fits. */
export interface EndingNotice {
  id: string
  kind: string
  subjectId: string
  userId: string
  at: Instant
}

/** Everything that the hub has to be told: it stands alone, and asks nobody else. */
export interface HubQuestions {
  /** Null when the token alone shows that it opens nothing here. Rejects when that cannot be known now. */
  verifyToken(token: string): Promise<TokenClaims | null>
  /** Unknown keys are absent. Rejects when the database does not answer. */
  standing(keyIds: readonly string[]): Promise<Map<string, Standing>>
  /** Oldest first, `since` included; `afterId` continues within one millisecond. */
  endingsSince(since: Instant, afterId: string | null, limit: number): Promise<EndingNotice[]>
}
