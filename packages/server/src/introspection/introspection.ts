import { type AgentTokens, hubAudience } from '../agent-tokens/agent-tokens.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { KeywayError } from '../errors.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Store } from '../store.ts'
import {
  consumptionForbidden,
  INACTIVE,
  type IntrospectionAnswer,
  type RequestingApp,
  scopeMembers,
  type TokenCheck,
  toSeconds,
} from './introspection-answer.ts'
import { createKeyIntrospection, type KeyIntrospectionDeps, refusalAsValue } from './key-introspection.ts'

export interface Introspection {
  /**
   * Introspects a key, access token or agent token. The answer is the same for unknown and for inactive credentials,
   * and does not say why one is inactive. Counts an introspection for the owner of a key or session, but does not
   * change `last_used_at`.
   *
   * @param app the requesting app, which also gets `external_id`, `metadata` and `limits` of keys that it covers
   *   (`coversKey`)
   * @param consume number of calls to count against the key's rates and quota; 0 counts nothing
   * @throws KeywayError if calls are to be consumed: `forbidden` (the app does not cover the key, or the credential is
   *   neither a key nor an agent token), `rate_limited`, `quota_exhausted`, `unavailable`
   */
  introspect(token: string, app?: RequestingApp, consume?: number): Promise<IntrospectionAnswer>
  /**
   * Introspects several credentials; the answers are in the order of `checks`. A `KeywayError` that `introspect` would
   * throw is the answer to its check. Metadata and spending of all API keys are read together.
   */
  introspectMany(
    checks: readonly TokenCheck[],
    app: RequestingApp,
  ): Promise<(IntrospectionAnswer | KeywayError)[]>
}

interface AppTokenClaims {
  sub: string
  scope: string
  jti: string
  iat: number
  exp: number
}

export interface IntrospectionDeps extends Omit<KeyIntrospectionDeps, 'store'> {
  storage: { store: Pick<Store, 'apiKeys' | 'apps' | 'billing'> }
  agentTokens: Pick<AgentTokens, 'verify'>
  apiKeys: Pick<ApiKeys, 'mayBeKey'>
  sessions: Pick<Sessions, 'authenticate'>
  jwt: Jwt
}

export function createIntrospection(deps: IntrospectionDeps): Introspection {
  const { agentTokens, apiKeys, sessions, jwt, meter, publicUrl } = deps
  const { store } = deps.storage
  const keys = createKeyIntrospection({ ...deps, store })

  return {
    introspect(token, app, consume = 0) {
      return apiKeys.mayBeKey(token)
        ? keys.introspect(token, app, consume)
        : introspectToken(token, app, consume)
    },

    async introspectMany(checks, app) {
      const areKeys = checks.map(({ token }) => apiKeys.mayBeKey(token))
      const keyAnswers = await keys.introspectMany(
        checks.filter((_, n) => areKeys[n]),
        app,
      )
      return Promise.all(
        checks.map(({ token, consume }, n) =>
          areKeys[n] ? keyAnswers.shift()! : refusalAsValue(introspectToken(token, app, consume)),
        ),
      )
    },
  }

  async function introspectToken(
    token: string,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<IntrospectionAnswer> {
    const audience = await audienceOf(token)
    if (audience === null) return INACTIVE
    return (
      (await introspectAgentToken(token, audience, app, consume)) ??
      (await introspectAccessToken(token, audience, consume)) ??
      (await introspectAppToken(token, audience, consume)) ??
      INACTIVE
    )
  }

  async function introspectAgentToken(
    token: string,
    audience: string,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const claims = await agentTokens.verify(token, audience)
    const apiKey = claims && (await keys.find(claims.keyId, claims.agentId))
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
      ...scopeMembers(claims.scopes),
      iat: toSeconds(claims.issuedAt),
      exp: toSeconds(claims.expiresAt),
      jti: claims.tokenId,
      ...(await keys.detailsForApp(apiKey, app, consume)),
    }
  }

  async function introspectAccessToken(
    token: string,
    audience: string,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const claims = await jwt.verify(token, { typ: 'at+jwt', audience })
    if (claims?.type !== 'access') return null
    const authentication = await nullIfInvalid(sessions.authenticate(token, audience))
    if (!authentication) return null
    if (consume > 0) throw consumptionForbidden()
    const { iat, exp, jti } = claims as { iat: number; exp: number; jti: string }
    const { user, session, scopes } = authentication
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

  /**
   * The answer for a token that an app got for itself; null if the token is not valid, or the app was removed since,
   * even if its id was registered again.
   */
  async function introspectAppToken(
    token: string,
    audience: string,
    consume: number,
  ): Promise<IntrospectionAnswer | null> {
    const claims = await jwt.verify(token, { typ: 'at+jwt', audience })
    if (claims?.type !== 'app') return null
    const { sub, scope, iat, exp, jti } = claims as unknown as AppTokenClaims
    const client = await store.apps.find(sub)
    if (!client || toSeconds(client.createdAt) > iat) return null
    if (consume > 0) throw consumptionForbidden()
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

  /**
   * The audience that a token claims, if it is the hub's, this service's or a registered app's; otherwise null. Not
   * verified: the caller must verify the token for it.
   */
  async function audienceOf(token: string): Promise<string | null> {
    const claimedAud = claimedAudience(token)
    if (claimedAud === null || claimedAud === hubAudience(publicUrl) || claimedAud === publicUrl)
      return claimedAud
    return (await store.apps.findByAudience(claimedAud)) ? claimedAud : null
  }
}

function claimedAudience(token: string): string | null {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const isObject = typeof payload === 'object' && payload !== null && 'aud' in payload
    return isObject && typeof payload.aud === 'string' && mayBeParameter(payload.aud) ? payload.aud : null
  } catch {
    return null
  }
}

/** Whether the text may be a parameter of a database query: PostgreSQL refuses NUL, UTF-8 has no lone surrogates. */
function mayBeParameter(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

async function nullIfInvalid<Value>(call: Promise<Value>): Promise<Value | null> {
  try {
    return await call
  } catch (error) {
    if (error instanceof KeywayError && error.code === 'invalid_token') return null
    throw error
  }
}
