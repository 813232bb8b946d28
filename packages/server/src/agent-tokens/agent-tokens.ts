import { type Scopes, toScopes } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { invalidRequest, type KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { RateWindow } from '../rate-windows.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage } from '../store.ts'
import { createExchangeLimits } from './exchange-limits.ts'

/** The header type and the `type` claim: neither an access token nor anything else is taken for it. */
const AGENT_TOKEN_TYPE = 'agent_ws'
/** Seconds. Short, so that what leaks is soon worth nothing; a live connection renews in place. */
export const AGENT_TOKEN_SECONDS = 900

export interface AgentTokenClaims {
  /** The owner's id. */
  agentId: string
  appId: string
  keyId: string
  scopes: Scopes
  tokenId: string
  issuedAt: Instant
  expiresAt: Instant
}

export interface AgentTokens {
  /**
   * Exchanges a key for an agent token. One read, no write.
   *
   * @param audience a registered app's audience, or undefined for the hub
   * @throws KeywayError as `ApiKeys.authenticate`, and `invalid_request` (audience), `rate_limited`
   */
  exchange(
    key: string,
    audience: string | undefined,
    caller: Caller,
  ): Promise<{ token: string; agentId: string; expiresIn: number }>
  /**
   * What the token alone shows: signature, type, issuer, audience, times. Null when any is wrong. Whether its key
   * still stands is another question, for `ApiKeys.standing`.
   *
   * @param audience the hub's unless another is given
   */
  verify(token: string, audience?: string): Promise<AgentTokenClaims | null>
}

export function createAgentTokens(deps: {
  storage: Storage
  apiKeys: Pick<ApiKeys, 'authenticate'>
  jwt: Jwt
  clock: Clock
  publicUrl: string
  /** Successful exchanges of one key on this node. */
  exchangeLimits: readonly RateWindow[]
}): AgentTokens {
  const { storage, apiKeys, jwt, clock, publicUrl } = deps
  const limits = createExchangeLimits({ clock, windows: deps.exchangeLimits })
  const hub = hubAudience(publicUrl)

  return {
    async exchange(key, audience, caller) {
      const isKnown = await isAudience(audience)
      const apiKey = await apiKeys.authenticate(key, caller, {
        scope: 'agent:connect',
        accept({ id }) {
          if (!isKnown) throw unknownAudience()
          limits.take(id)
        },
      })
      const now = clock.now()
      const { issuedAt, expiresAt, expiresIn } = agentTokenTimes(apiKey.expiresAt, now)
      const token = jwt.sign(AGENT_TOKEN_TYPE, {
        type: AGENT_TOKEN_TYPE,
        iss: publicUrl,
        aud: audience ?? hub,
        sub: apiKey.userId,
        agent_id: apiKey.userId,
        app_id: apiKey.appId,
        key_id: apiKey.id,
        ...(apiKey.scopes && { scope: apiKey.scopes.join(' ') }),
        iat: issuedAt,
        nbf: issuedAt,
        exp: expiresAt,
        jti: newId(now),
      })
      return { token, agentId: apiKey.userId, expiresIn }
    },

    async verify(token, audience = hub) {
      const claims = await jwt.verify(token, { typ: AGENT_TOKEN_TYPE, audience })
      return claims && toAgentTokenClaims(claims)
    },
  }

  /** The hub's costs no read. */
  async function isAudience(audience: string | undefined): Promise<boolean> {
    if (audience === undefined || audience === hub) return true
    return (await storage.store.apps.findByAudience(audience)) !== null
  }
}

/** Where agent tokens lead unless another audience is asked for. */
export function hubAudience(publicUrl: string): string {
  return `${publicUrl}/hub`
}

interface AgentTokenTimes {
  /** Whole seconds since 1970 (RFC 7519 NumericDate). */
  issuedAt: number
  expiresAt: number
  /** Whole seconds that are left of it, at least 1. */
  expiresIn: number
}

/**
 * The times of a token that is issued now and ends with its key. A key may end between two seconds and a token
 * cannot: the token has the second that the key ends in, so that a key works up to its last millisecond. The
 * hub and introspection know the key's own end and go by that.
 */
function agentTokenTimes(keyExpiresAt: Instant | null, now: Instant): AgentTokenTimes {
  const issuedAt = Math.floor(now / SECOND)
  const whole = issuedAt + AGENT_TOKEN_SECONDS
  const keyEnd = keyExpiresAt === null ? whole : Math.ceil(keyExpiresAt / SECOND)
  if (keyEnd >= whole) return { issuedAt, expiresAt: whole, expiresIn: AGENT_TOKEN_SECONDS }
  const left = Math.floor((keyExpiresAt! - now) / SECOND)
  return { issuedAt, expiresAt: keyEnd, expiresIn: Math.max(1, left) }
}

function unknownAudience(): KeywayError {
  return invalidRequest([
    {
      field: 'audience',
      message: "must be the audience of a registered app; leave it out for this service's hub",
    },
  ])
}

function toAgentTokenClaims(claims: Record<string, unknown>): AgentTokenClaims | null {
  const { type, sub, app_id, key_id, scope, jti, iat, exp } = claims
  if (type !== AGENT_TOKEN_TYPE || typeof sub !== 'string' || typeof jti !== 'string') return null
  if (typeof app_id !== 'string' || typeof key_id !== 'string') return null
  if (typeof iat !== 'number' || typeof exp !== 'number') return null
  if (scope !== undefined && (typeof scope !== 'string' || scope === '')) return null
  return {
    agentId: sub,
    appId: app_id,
    keyId: key_id,
    scopes: toScopes(scope?.split(' ') ?? []),
    tokenId: jti,
    issuedAt: iat * SECOND,
    expiresAt: exp * SECOND,
  }
}
