import type { Json } from '@keyway/sdk/protocol'
import { type AgentTokenClaims, type AgentTokens, hubAudience } from '../agent-tokens/agent-tokens.ts'
import { type OwnedApiKey, refusalOf, type Scopes } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { type App, covers } from '../apps/app.ts'
import { formatMoney } from '../billing/money.ts'
import { capsOf, NOTHING_SPENT, remainingOf } from '../billing/spend.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import { SPEND_PERIODS } from '../limits/limit.ts'
import type { KeyLimiter, LeftOfLimits } from '../limits/limits.ts'
import { sha256 } from '../secrets.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage, Store } from '../store.ts'
import type { Meter } from '../usage/meter.ts'

/** RFC 7662 section 2.2. */
export type IntrospectionAnswer = { active: false } | ({ active: true } & Record<string, Json>)

export interface Introspection {
  /**
   * Introspects a key, access token or agent token. The answer is the same for inactive ones (also by their key, session
   * or owner) and unknown ones. No use is recorded; only the number of introspections is counted.
   *
   * @param app the requesting app, which also gets `external_id`, `metadata` and `limits` of keys that it covers
   * @param consume number of calls to count against the key's rates and quota; 0 counts nothing
   * @throws KeywayError if calls are to be consumed: `forbidden` (a key that the app does not cover, or no key),
   *   `rate_limited`, `quota_exhausted`, `unavailable`
   */
  introspect(token: string, app?: RequestingApp, consume?: number): Promise<IntrospectionAnswer>
}

export type RequestingApp = Pick<App, 'id' | 'firstParty' | 'coversFrom'>

interface AppTokenClaims {
  sub: string
  scope: string
  jti: string
  iat: number
  exp: number
}

const INACTIVE: IntrospectionAnswer = { active: false }

export function createIntrospection(deps: {
  storage: Storage
  clock: Clock
  agentTokens: Pick<AgentTokens, 'verify'>
  apiKeys: Pick<ApiKeys, 'isPresentable'>
  limiter: Pick<KeyLimiter, 'consume' | 'left'>
  sessions: Pick<Sessions, 'authenticate'>
  jwt: Jwt
  meter: Meter
  publicUrl: string
}): Introspection {
  const { storage, clock, agentTokens, apiKeys, limiter, sessions, jwt, meter, publicUrl } = deps
  const { store } = storage

  return {
    async introspect(token, app, consume = 0) {
      if (apiKeys.isPresentable(token)) return (await ofKey(token, app, consume)) ?? INACTIVE
      const audience = await audienceOf(token)
      if (audience === null) return INACTIVE
      return (
        (await ofAgentToken(token, audience, app, consume)) ??
        (await ofAccessToken(token, audience, consume)) ??
        (await ofAppToken(token, audience, consume)) ??
        INACTIVE
      )
    },
  }

  async function ofKey(
    key: string,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const apiKey = await store.apiKeys.findByHash(sha256(key))
    if (!apiKey) return null
    meter.count(apiKey.userId, apiKey.id, 'introspections')
    if (!isUsable(apiKey)) return null
    return {
      active: true,
      type: 'api_key',
      iss: publicUrl,
      sub: apiKey.userId,
      client_id: apiKey.appId,
      key_id: apiKey.id,
      ...scopeOf(apiKey.scopes),
      iat: seconds(apiKey.createdAt),
      ...(apiKey.expiresAt !== null && { exp: seconds(apiKey.expiresAt) }),
      ...(await forCovering(apiKey, app, consume)),
    }
  }

  async function ofAgentToken(
    token: string,
    audience: string,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const claims = await agentTokens.verify(token, audience)
    const apiKey = claims && (await usableKeyOf(claims))
    if (!apiKey) return null
    return {
      active: true,
      type: 'agent_ws',
      token_type: 'Bearer',
      iss: publicUrl,
      aud: audience,
      sub: claims.agentId,
      client_id: claims.appId,
      key_id: claims.keyId,
      ...scopeOf(claims.scopes),
      iat: seconds(claims.issuedAt),
      exp: seconds(claims.expiresAt),
      jti: claims.tokenId,
      ...(await forCovering(apiKey, app, consume)),
    }
  }

  async function ofAccessToken(
    token: string,
    audience: string,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const claims = await jwt.verify(token, { typ: 'at+jwt', audience })
    if (claims?.type !== 'access') return null
    const authenticated = await unlessRefused(sessions.authenticate(token, audience))
    if (!authenticated) return null
    if (consume > 0) throw mayNotConsume()
    const { iat, exp, jti } = claims as { iat: number; exp: number; jti: string }
    const { user, session, scopes } = authenticated
    meter.count(user.id, null, 'introspections')
    return {
      active: true,
      type: 'access',
      token_type: 'Bearer',
      iss: publicUrl,
      aud: audience,
      sub: user.id,
      client_id: session.appId,
      ...(scopes && { scope: scopes.join(' ') }),
      sid: session.id,
      iat,
      exp,
      jti,
    }
  }

  /** A token of an app itself, which is registered still and was when it was issued. */
  async function ofAppToken(
    token: string,
    audience: string,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const claims = await jwt.verify(token, { typ: 'at+jwt', audience })
    if (claims?.type !== 'app') return null
    const { sub, scope, iat, exp, jti } = claims as unknown as AppTokenClaims
    const client = await store.apps.find(sub)
    if (!client || seconds(client.createdAt) > iat) return null
    if (consume > 0) throw mayNotConsume()
    return {
      active: true,
      type: 'app',
      token_type: 'Bearer',
      iss: publicUrl,
      aud: audience,
      sub,
      client_id: sub,
      scope,
      iat,
      exp,
      jti,
    }
  }

  /** The audience that a token claims, if it is a registered one. Untrusted until the token is verified for it. */
  async function audienceOf(token: string): Promise<string | null> {
    const claimed = claimedAudience(token)
    if (claimed === null || claimed === hubAudience(publicUrl) || claimed === publicUrl) return claimed
    return (await store.apps.findByAudience(claimed)) ? claimed : null
  }

  async function usableKeyOf({ keyId, agentId }: AgentTokenClaims): Promise<OwnedApiKey | null> {
    const id = parseId(keyId)
    const [apiKey] = id ? await store.apiKeys.findMany([id]) : []
    if (apiKey?.userId !== agentId) return null
    meter.count(agentId, apiKey.id, 'introspections')
    return isUsable(apiKey) ? apiKey : null
  }

  /**
   * External id, metadata and remaining limits of the key, for apps that cover it. Metadata cost one more read.
   */
  async function forCovering(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<Record<string, Json>> {
    if (!app || !covers(app, apiKey)) {
      if (consume > 0) throw mayNotConsume()
      return {}
    }
    const left = await (consume > 0 ? consumed(apiKey, consume) : limiter.left(apiKey))
    const texts = apiKey.metadataBytes === null ? null : await store.apiKeys.metadataOf([apiKey.id])
    const text = texts?.get(apiKey.id)
    const spend = await spendLeft(store, apiKey, clock.now())
    return {
      external_id: apiKey.externalId,
      metadata: text === undefined ? null : (JSON.parse(text) as Json),
      limits: { ...leftObject(left), ...(spend.length > 0 && { spend }) },
    }
  }

  async function consumed(apiKey: OwnedApiKey, count: number): Promise<LeftOfLimits> {
    try {
      return await limiter.consume(apiKey, count)
    } catch (error) {
      if (error instanceof KeywayError) meter.countRefusal(apiKey.userId, apiKey.id, error.code)
      throw error
    }
  }

  function isUsable(apiKey: OwnedApiKey): boolean {
    return refusalOf(apiKey, { now: clock.now() }) === null
  }
}

/** Has only the parts that the key's limits have. */
function leftObject({ requests, quota }: LeftOfLimits): Record<string, Json> {
  return {
    ...(requests.length > 0 && {
      requests: requests.map(({ limit, remaining, resetSeconds }) => ({
        limit,
        remaining,
        reset_seconds: resetSeconds,
      })),
    }),
    ...(quota !== null && { quota: { remaining: quota } }),
  }
}

function mayNotConsume(): KeywayError {
  return new KeywayError(
    'forbidden',
    'Calls are consumed of keys, by the app that a key is for or by a first-party app.',
  )
}

/** What is left of each spend limit; one read where the key has some. */
async function spendLeft({ billing }: Pick<Store, 'billing'>, key: OwnedApiKey, now: Instant) {
  const caps = capsOf(key.limits.spend, key.operatorLimits.spend)
  if (SPEND_PERIODS.every(per => caps[per] === null)) return []
  const spent = (await billing.spentOf([key.lineageId])).get(key.lineageId) ?? NOTHING_SPENT
  return remainingOf(caps, spent, now).map(({ per, limit, remaining, endsAt }) => ({
    per,
    amount: formatMoney(limit),
    remaining: formatMoney(remaining),
    ...(endsAt !== null && { reset_seconds: Math.ceil((endsAt - now) / SECOND) }),
  }))
}

/** `scope` is absent if unrestricted, as in tokens. */
function scopeOf(scopes: Scopes): { scope?: string; unrestricted: boolean } {
  return scopes === null ? { unrestricted: true } : { scope: scopes.join(' '), unrestricted: false }
}

function seconds(instant: Instant): number {
  return Math.floor(instant / SECOND)
}

function claimedAudience(token: string): string | null {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const isObject = typeof payload === 'object' && payload !== null && 'aud' in payload
    return isObject && typeof payload.aud === 'string' && isStorable(payload.aud) ? payload.aud : null
  } catch {
    return null
  }
}

/** PostgreSQL refuses NUL characters also in query parameters. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

async function unlessRefused<Value>(call: Promise<Value>): Promise<Value | null> {
  try {
    return await call
  } catch (error) {
    if (error instanceof KeywayError && error.code === 'invalid_token') return null
    throw error
  }
}
