import type { Json } from '@keyway/sdk/protocol'
import { type AgentTokenClaims, type AgentTokens, hubAudience } from '../agent-tokens/agent-tokens.ts'
import { type OwnedApiKey, refusalOf, type Scopes } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { type App, coversKey } from '../apps/app.ts'
import { formatMoney } from '../billing/money.ts'
import { capsOf, NOTHING_SPENT, remainingOf, type Spent } from '../billing/spend.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { KeyLimiter, LeftOfLimits } from '../limits/limits.ts'
import { sha256 } from '../secrets.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage } from '../store.ts'
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
  /**
   * Introspects several credentials; the answers are in the order of `checks`. An error that `introspect` would throw
   * is the answer to its check. The reads for all API keys are made together.
   */
  introspectMany(
    checks: readonly TokenCheck[],
    app: RequestingApp,
  ): Promise<(IntrospectionAnswer | KeywayError)[]>
}

export interface TokenCheck {
  token: string
  /** As in `introspect`. */
  consume: number
}

export type RequestingApp = Pick<App, 'id' | 'firstParty' | 'coversFrom'>

interface AppTokenClaims {
  sub: string
  scope: string
  jti: string
  iat: number
  exp: number
}

/** Values of keys that are stored outside their rows, by key id and by lineage id. */
interface Notes {
  metadata: ReadonlyMap<string, string> | null
  spent: ReadonlyMap<string, Spent> | null
}

const INACTIVE: IntrospectionAnswer = { active: false }

export function createIntrospection(deps: {
  storage: Storage
  clock: Clock
  agentTokens: Pick<AgentTokens, 'verify'>
  apiKeys: Pick<ApiKeys, 'mayBeKey'>
  limiter: Pick<KeyLimiter, 'consume' | 'left'>
  sessions: Pick<Sessions, 'authenticate'>
  jwt: Jwt
  meter: Meter
  publicUrl: string
}): Introspection {
  const { storage, clock, agentTokens, apiKeys, limiter, sessions, jwt, meter, publicUrl } = deps
  const { store } = storage

  return {
    introspect(token, app, consume = 0) {
      return apiKeys.mayBeKey(token) ? ofKey(token, app, consume) : ofToken(token, app, consume)
    },

    async introspectMany(checks, app) {
      const isKey = checks.map(({ token }) => apiKeys.mayBeKey(token))
      const ofKeys = await ofManyKeys(
        checks.filter((_, n) => isKey[n]),
        app,
      )
      return Promise.all(
        checks.map(({ token, consume }, n) =>
          isKey[n] ? ofKeys.shift()! : orRefusal(ofToken(token, app, consume)),
        ),
      )
    },
  }

  async function ofKey(
    key: string,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<IntrospectionAnswer> {
    const apiKey = await usableKey(key)
    return apiKey ? { ...claimsOf(apiKey), ...(await forCovering(apiKey, app, consume)) } : INACTIVE
  }

  async function ofManyKeys(
    checks: readonly TokenCheck[],
    app: RequestingApp,
  ): Promise<(IntrospectionAnswer | KeywayError)[]> {
    const keys = await Promise.all(checks.map(({ token }) => usableKey(token)))
    const held: ({ apiKey: OwnedApiKey; left: LeftOfLimits | null | KeywayError } | null)[] = []
    // Sequentially, so that a key that is presented twice is counted in this order.
    for (const [n, apiKey] of keys.entries())
      held.push(apiKey && { apiKey, left: await orRefusal(leftOf(apiKey, app, checks[n]!.consume)) })
    const covered = held.filter(each => each?.left && !(each.left instanceof KeywayError))
    const notes = await notesOf(covered.map(each => each!.apiKey))
    return held.map(each => {
      if (!each) return INACTIVE
      const { apiKey, left } = each
      if (left instanceof KeywayError) return left
      return { ...claimsOf(apiKey), ...(left && extrasOf(apiKey, left, notes)) }
    })
  }

  async function ofToken(
    token: string,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<IntrospectionAnswer> {
    const audience = await audienceOf(token)
    if (audience === null) return INACTIVE
    return (
      (await ofAgentToken(token, audience, app, consume)) ??
      (await ofAccessToken(token, audience, consume)) ??
      (await ofAppToken(token, audience, consume)) ??
      INACTIVE
    )
  }

  /** Null for an unknown key and one that is not usable. */
  async function usableKey(key: string): Promise<OwnedApiKey | null> {
    const apiKey = await store.apiKeys.findByHash(sha256(key))
    if (!apiKey) return null
    meter.count(apiKey.userId, apiKey.id, 'introspections')
    return isUsable(apiKey) ? apiKey : null
  }

  function claimsOf(apiKey: OwnedApiKey) {
    return {
      active: true as const,
      type: 'api_key',
      iss: publicUrl,
      sub: apiKey.userId,
      client_id: apiKey.appId,
      key_id: apiKey.id,
      ...scopeOf(apiKey.scopes),
      iat: seconds(apiKey.createdAt),
      ...(apiKey.expiresAt !== null && { exp: seconds(apiKey.expiresAt) }),
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

  /** The answer for an app's token for itself; the app must have been registered when the token was issued. */
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

  /** The audience that a token claims, if it is registered. Unverified: the token must then be verified for it. */
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

  /** External id, metadata and remaining limits of the key, for apps that cover it. */
  async function forCovering(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<Record<string, Json>> {
    const left = await leftOf(apiKey, app, consume)
    return left ? extrasOf(apiKey, left, await notesOf([apiKey])) : {}
  }

  /** Null if the app does not cover the key. */
  async function leftOf(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<LeftOfLimits | null> {
    if (app && coversKey(app, apiKey)) return consume > 0 ? consumed(apiKey, consume) : limiter.left(apiKey)
    if (consume > 0) throw mayNotConsume()
    return null
  }

  /** Metadata and spending are read only for keys that have metadata or a spend limit. */
  async function notesOf(keys: readonly OwnedApiKey[]): Promise<Notes> {
    const described = keys.filter(({ metadataBytes }) => metadataBytes !== null)
    const capped = keys.filter(hasSpendLimit)
    return {
      metadata: described.length === 0 ? null : await store.apiKeys.metadataOf(described.map(({ id }) => id)),
      spent: capped.length === 0 ? null : await store.billing.spentOf(capped.map(key => key.lineageId)),
    }
  }

  function extrasOf(
    apiKey: OwnedApiKey,
    left: LeftOfLimits,
    { metadata, spent }: Notes,
  ): Record<string, Json> {
    const text = metadata?.get(apiKey.id)
    return {
      external_id: apiKey.externalId,
      metadata: text === undefined ? null : (JSON.parse(text) as Json),
      limits: {
        ...leftObject(left),
        ...(hasSpendLimit(apiKey) && { spend: spendLeft(apiKey, spent?.get(apiKey.lineageId), clock.now()) }),
      },
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

/** Contains only the kinds of limits that the key has. */
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

function hasSpendLimit({ limits, operatorLimits }: OwnedApiKey): boolean {
  return limits.spend.length > 0 || operatorLimits.spend.length > 0
}

/** The remaining amount of each spend limit. */
function spendLeft(key: OwnedApiKey, spent: Spent = NOTHING_SPENT, now: Instant): Json[] {
  const caps = capsOf(key.limits.spend, key.operatorLimits.spend)
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

async function orRefusal<Value>(call: Promise<Value>): Promise<Value | KeywayError> {
  try {
    return await call
  } catch (error) {
    if (error instanceof KeywayError) return error
    throw error
  }
}

async function unlessRefused<Value>(call: Promise<Value>): Promise<Value | null> {
  try {
    return await call
  } catch (error) {
    if (error instanceof KeywayError && error.code === 'invalid_token') return null
    throw error
  }
}
