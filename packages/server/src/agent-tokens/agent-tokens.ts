import type { OwnedApiKey } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { allows } from '../api-keys/scope.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage } from '../store.ts'
import { AGENT_TOKEN_TYPE, agentTokenTimes, hubAudience } from './agent-token.ts'

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
}): AgentTokens {
  const { storage, apiKeys, jwt, clock, publicUrl } = deps
  const hub = hubAudience(publicUrl)

  return {
    async exchange(key, audience, caller) {
      const isKnown = await isAudience(audience)
      const apiKey = await apiKeys.authenticate(key, caller, presented => {
        assertConnects(presented)
        if (!isKnown) throw unknownAudience()
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
        ...(apiKey.scopes.length > 0 && { scope: apiKey.scopes.join(' ') }),
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

function assertConnects(apiKey: OwnedApiKey): void {
  if (allows(apiKey, 'agent:connect')) return
  throw new KeywayError(
    'insufficient_scope',
    'This API key lacks the scope agent:connect. Use a key that has it, or one without scopes.',
  )
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
    scopes: scope === undefined ? null : scope.split(' '),
    tokenId: jti,
    issuedAt: iat * SECOND,
    expiresAt: exp * SECOND,
  }
}
