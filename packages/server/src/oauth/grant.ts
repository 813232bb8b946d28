import type { AgentTokens } from '../agent-tokens/agent-tokens.ts'
import type { Apps } from '../apps/apps.ts'
import type { Authorizations } from '../authorizations/authorizations.ts'
import type { Clock } from '../clock.ts'
import type { DeviceTokens } from '../device-authorizations/device-tokens.ts'
import type { RateLimitState } from '../errors.ts'
import type { RateWindow } from '../rate-windows.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage } from '../store.ts'
import type { ClientAuthentication, ClientRequest } from './client-authentication.ts'

/** Members of a discovery document (RFC 8414 section 2, OpenID Connect Discovery 1.0 section 3). */
export type Metadata = Readonly<Record<string, string | boolean | readonly string[]>>

export interface GrantDeps {
  storage: Storage
  clock: Clock
  jwt: Jwt
  publicUrl: string
  agentTokens: Pick<AgentTokens, 'exchange'>
  apps: Pick<Apps, 'authenticate' | 'find'>
  sessions: Sessions
  /** Loads the authorization requests and codes on first use. */
  authorizations(): Promise<Authorizations>
  deviceTokens: DeviceTokens
  clients: ClientAuthentication
  /** Counted by each node alone: successful exchanges of one key, and tokens that one app gets for itself. */
  exchangeLimits: readonly RateWindow[]
}

/** A request to the token endpoint. */
export interface TokenRequest extends ClientRequest {
  /** The request's Idempotency-Key, which makes a repeated refresh safe; null if absent. */
  retryKey: string | null
}

/** The body of a successful response (RFC 6749 section 5.1). */
export interface TokenAnswer {
  access_token: string
  token_type: 'Bearer'
  /** Seconds. */
  expires_in: number
  /** Absent for an unrestricted token. */
  scope?: string
  refresh_token?: string
  id_token?: string
  issued_token_type?: string
}

export interface GrantResult {
  answer: TokenAnswer
  /** State of the limits of the key that was used, for the RateLimit fields; null or absent without a key or limits. */
  limits?: readonly RateLimitState[] | null
}

/** Handles the requests of one grant type. @throws OAuthError, KeywayError */
export type Grant = (request: TokenRequest) => Promise<GrantResult>
