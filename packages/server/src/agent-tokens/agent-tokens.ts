import { allows, type Scopes, toScopes } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { invalidRequest, KeywayError, type RateLimitState } from '../errors.ts'
import { newId } from '../ids.ts'
import type { KeyLimiter } from '../limits/limits.ts'
import type { Caller } from '../network.ts'
import type { RateWindow } from '../rate-windows.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { Storage } from '../store.ts'
import type { Meter } from '../usage/meter.ts'
import { createExchangeLimits } from './exchange-limits.ts'

/** Value of the `typ` header and the `type` claim, so that no other kind of token is accepted as an agent token. */
const TYP = 'agent_ws'
const DEFAULT_ALG: SigningAlg = 'EdDSA'
const CONNECT_SCOPE = 'agent:connect'
/** Lifetime in seconds. Short, to limit the damage of a leaked token; a live connection renews its token in place. */
export const AGENT_TOKEN_SECONDS = 900

export interface AgentTokenClaims {
  /** The key owner's user id. */
  agentId: string
  appId: string
  keyId: string
  scopes: Scopes
  tokenId: string
  issuedAt: Instant
  expiresAt: Instant
}

/** Restrictions that an OAuth client may ask for, besides an audience. */
export interface ExchangeBounds {
  /** The id that the key must have; a key with another id is refused like an unknown one. */
  keyId?: string
  /** Scopes of the token, all of which the key must have; those of the key by default. */
  scopes?: readonly string[]
}

export interface IssuedAgentToken {
  token: string
  agentId: string
  /** Seconds. */
  expiresIn: number
  scopes: Scopes
  limits: RateLimitState[] | null
}

export interface AgentTokens {
  /**
   * Exchanges a key for an agent token. For the hub's audience, this costs one database read and no write, except when
   * the limits of the key require this node to ask the database.
   *
   * @param audience a registered app's audience, or undefined for the hub
   * @throws KeywayError as `ApiKeys.authenticate` does, and `invalid_request` (an unknown audience), `rate_limited`,
   *   `insufficient_scope` (the key lacks a requested scope, or a token for the hub would lack `agent:connect`),
   *   `unavailable` (as `KeyLimiter.take`)
   */
  exchange(
    key: string,
    audience: string | undefined,
    caller: Caller,
    bounds?: ExchangeBounds,
  ): Promise<IssuedAgentToken>
  /**
   * Verifies signature, type, issuer, audience, times and the form of the claims; null when any is wrong. Does not
   * check whether the key is still active; see `ApiKeys.findMany`.
   *
   * @param audience the hub's by default
   */
  verify(token: string, audience?: string): Promise<AgentTokenClaims | null>
}

export function createAgentTokens(deps: {
  storage: Storage
  apiKeys: Pick<ApiKeys, 'authenticate'>
  limiter: Pick<KeyLimiter, 'take'>
  jwt: Jwt
  clock: Clock
  meter: Meter
  publicUrl: string
  /** How many successful exchanges one key may have on this node. */
  exchangeLimits: readonly RateWindow[]
}): AgentTokens {
  const { storage, apiKeys, limiter, jwt, clock, meter, publicUrl } = deps
  const exchangeLimits = createExchangeLimits({ clock, windows: deps.exchangeLimits })
  const hub = hubAudience(publicUrl)

  return {
    async exchange(key, audience, caller, { keyId, scopes: requested } = {}) {
      const alg = await algOf(audience)
      let limitStates: ReturnType<KeyLimiter['take']> = null
      const apiKey = await apiKeys.authenticate(key, caller, {
        id: keyId,
        scope: CONNECT_SCOPE,
        accept(presented) {
          if (!alg) throw unknownAudience()
          if (requested) assertScopesAllowed(requested, presented.scopes, isHub(audience))
          exchangeLimits.take(presented.id)
          limitStates = limiter.take(presented)
          return limitStates instanceof Promise ? limitStates.then(() => {}) : undefined
        },
      })
      const now = clock.now()
      const scopes = requested ? toScopes(requested) : apiKey.scopes
      const { issuedAt, expiresAt, expiresIn } = agentTokenTimes(apiKey.expiresAt, now)
      const claims = {
        type: TYP,
        iss: publicUrl,
        aud: audience ?? hub,
        sub: apiKey.userId,
        agent_id: apiKey.userId,
        app_id: apiKey.appId,
        key_id: apiKey.id,
        ...(scopes && { scope: scopes.join(' ') }),
        iat: issuedAt,
        nbf: issuedAt,
        exp: expiresAt,
        jti: newId(now),
      }
      const token = await jwt.signAs(alg!, TYP, claims)
      meter.count(apiKey.userId, apiKey.id, 'exchanges', 1, now)
      const limits = limitStates && (await limitStates)
      return { token, agentId: apiKey.userId, expiresIn, scopes, limits }
    },

    async verify(token, audience = hub) {
      const claims = await jwt.verify(token, { typ: TYP, audience })
      return claims && toAgentTokenClaims(claims)
    },
  }

  /**
   * The algorithm that signs tokens for this audience; null for an unknown audience. For the hub no read is needed.
   */
  async function algOf(audience: string | undefined): Promise<SigningAlg | null> {
    if (audience === undefined || isHub(audience)) return DEFAULT_ALG
    return (await storage.store.apps.findByAudience(audience))?.tokenAlg ?? null
  }

  function isHub(audience: string | undefined): boolean {
    return audience === undefined || audience === hub
  }
}

/** The default audience of agent tokens. */
export function hubAudience(publicUrl: string): string {
  return `${publicUrl}/hub`
}

interface AgentTokenTimes {
  /** Whole seconds since 1970 (RFC 7519 NumericDate). */
  issuedAt: number
  expiresAt: number
  /** Whole seconds until `expiresAt`, at least 1. */
  expiresIn: number
}

/**
 * The times of a token that is issued now. A key that expires sooner shortens the lifetime. Token times are whole
 * seconds, so the key's expiry is rounded up: the token must work until the last millisecond of its key, and the hub
 * and introspection check the exact expiry of the key.
 */
function agentTokenTimes(keyExpiresAt: Instant | null, now: Instant): AgentTokenTimes {
  const issuedAt = Math.floor(now / SECOND)
  const fullLifetimeEnd = issuedAt + AGENT_TOKEN_SECONDS
  const keyEnd = keyExpiresAt === null ? fullLifetimeEnd : Math.ceil(keyExpiresAt / SECOND)
  if (keyEnd >= fullLifetimeEnd)
    return { issuedAt, expiresAt: fullLifetimeEnd, expiresIn: AGENT_TOKEN_SECONDS }
  const secondsLeft = Math.floor((keyExpiresAt! - now) / SECOND)
  return { issuedAt, expiresAt: keyEnd, expiresIn: Math.max(1, secondsLeft) }
}

/** @throws KeywayError `insufficient_scope` */
function assertScopesAllowed(requested: readonly string[], keyScopes: Scopes, forHub: boolean): void {
  const missingScope = requested.find(scope => !allows(keyScopes, scope))
  if (missingScope !== undefined) {
    const detail = `This API key lacks the scope ${missingScope}. Ask for scopes that it has.`
    throw new KeywayError('insufficient_scope', detail, { scope: missingScope })
  }
  if (forHub && !requested.includes(CONNECT_SCOPE)) {
    const detail = `A token for the hub needs the scope ${CONNECT_SCOPE}. Ask for it too, or name another audience.`
    throw new KeywayError('insufficient_scope', detail, { scope: CONNECT_SCOPE })
  }
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
  if (type !== TYP || typeof sub !== 'string' || typeof jti !== 'string') return null
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
