import type { Instant } from '../clock.ts'
import type { Caller } from '../network.ts'

export interface AgentTokenClaims {
  /** The owner's id. */
  agentId: string
  appId: string
  keyId: string
  /** Null: unrestricted. */
  scopes: string[] | null
  tokenId: string
  issuedAt: Instant
  expiresAt: Instant
}

export interface AgentTokens {
  /**
   * Exchanges a key for an agent token. One read, no write.
   *
   * @param audience a registered app's audience, or undefined for the hub
   * @throws KeywayError as `ApiKeys.authenticate`, and `insufficient_scope`, `invalid_request` (audience)
   */
  exchange(
    key: string,
    audience: string | undefined,
    caller: Caller,
  ): Promise<{ token: string; agentId: string; expiresIn: number }>
  /** What the token alone shows: signature, type, issuer, audience (the hub's), times. Null when any is wrong. */
  verify(token: string): Promise<AgentTokenClaims | null>
}
