import { decodeBase64url } from './base64url.ts'
import { KeywayError } from './errors.ts'
import { Jwks } from './jwks.ts'
import { TOKEN_ALGS } from './verification-key.ts'

/** The claims of an agent token. */
export interface AgentTokenClaims {
  type: 'agent_ws'
  iss: string
  aud: string
  sub: string
  /** The owner's id; equals `sub`. */
  agent_id: string
  app_id: string
  key_id: string
  /** Space separated; absent when unrestricted. */
  scope?: string
  iat: number
  nbf: number
  exp: number
  jti: string
}

/** The claims of an access token (RFC 9068). */
export interface AccessTokenClaims {
  type: 'access'
  iss: string
  aud: string
  sub: string
  client_id: string
  /** Space separated; present in tokens of apps, absent after a person's sign-in. */
  scope?: string
  sid: string
  role: 'user' | 'support' | 'admin'
  iat: number
  exp: number
  jti: string
}

export interface VerifyOptions {
  /** Keyway's public URL: must equal the token's `iss`, and its `/.well-known/jwks.json` has the keys. */
  issuer: string
  /** Must equal the token's `aud`: `<public url>/hub`, or the one registered for your app. */
  audience: string
  fetch?: typeof fetch | undefined
  /** Milliseconds since 1970. Default: the system's clock. */
  now?: (() => number) | undefined
}

/** Clocks of two services may differ by this much. */
const CLOCK_TOLERANCE_SECONDS = 5
const MAX_TOKEN_LENGTH = 8192

/**
 * Verifies an agent token: signature, algorithm, type, issuer, audience, times. It does not check whether the key was
 * revoked since; services that need this use `GET /v1/revocations` or `/auth/introspect`.
 *
 * @throws KeywayError `invalid_token` if it is not valid, `unavailable` if the issuer's keys cannot be fetched
 */
export async function verifyAgentToken(token: string, options: VerifyOptions): Promise<AgentTokenClaims> {
  const claims = await verify(token, options, { typ: 'agent_ws', type: 'agent_ws' })
  requireStrings(claims, ['agent_id', 'app_id', 'key_id'])
  if (claims.agent_id !== claims.sub) throw invalidToken('agent_id is not sub')
  if (claims.scope !== undefined && typeof claims.scope !== 'string') throw invalidToken('scope is no string')
  return claims as unknown as AgentTokenClaims
}

/**
 * Verifies an access token, like `verifyAgentToken`.
 *
 * @param options `audience` defaults to the issuer
 * @throws KeywayError `invalid_token` or `unavailable`
 */
export async function verifyAccessToken(
  token: string,
  options: Omit<VerifyOptions, 'audience'> & { audience?: string },
): Promise<AccessTokenClaims> {
  const audience = options.audience ?? options.issuer
  const claims = await verify(token, { ...options, audience }, { typ: 'at+jwt', type: 'access' })
  requireStrings(claims, ['client_id', 'sid', 'role'])
  return claims as unknown as AccessTokenClaims
}

type Claims = Record<string, unknown>

async function verify(
  token: string,
  options: VerifyOptions,
  kind: { typ: string; type: string },
): Promise<Claims> {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) throw invalidToken('it is no token')
  const parts = token.split('.')
  if (parts.length !== 3) throw invalidToken('it has not three parts')
  const [header, payload, signature] = parts as [string, string, string]
  await checkSignature(`${header}.${payload}`, signature, checkHeader(header, kind.typ), options)
  const claims = parseObject(payload)
  checkClaims(claims, options, kind.type)
  return claims
}

/** Keys that the header links to or embeds (jku, x5u, jwk) are never used. */
function checkHeader(part: string, typ: string): { kid: string; alg: unknown } {
  const header = parseObject(part)
  if (!(TOKEN_ALGS as readonly unknown[]).includes(header.alg))
    throw invalidToken(`alg is not one of ${TOKEN_ALGS.join(', ')}`)
  if (header.typ !== typ) throw invalidToken(`typ is not ${typ}`)
  if (header.crit !== undefined) throw invalidToken('it has critical extensions')
  if (typeof header.kid !== 'string') throw invalidToken('kid is missing')
  return { kid: header.kid, alg: header.alg }
}

async function checkSignature(
  signed: string,
  part: string,
  { kid, alg }: { kid: string; alg: unknown },
  options: VerifyOptions,
): Promise<void> {
  const signature = decodeBase64url(part)
  if (!signature) throw invalidToken('the signature is malformed')
  const key = await jwksOf(options).key(kid)
  if (!key) throw invalidToken('the issuer has no such key')
  // The algorithm is that of the key, never that of the token (RFC 8725 section 3.1).
  if (key.alg !== alg) throw invalidToken('alg is not that of the key')
  const isValid = await key.verify(new TextEncoder().encode(signed), signature)
  if (!isValid) throw invalidToken('the signature is wrong')
}

function checkClaims(
  claims: Claims,
  { issuer, audience, now = Date.now }: VerifyOptions,
  type: string,
): void {
  if (claims.type !== type) throw invalidToken(`type is not ${type}`)
  if (claims.iss !== issuer) throw invalidToken('iss is another issuer')
  if (claims.aud !== audience) throw invalidToken('aud is another audience')
  requireStrings(claims, ['sub', 'jti'])
  const seconds = now() / 1000
  const { iat, exp, nbf } = claims
  if (!isInstant(iat) || iat > seconds + CLOCK_TOLERANCE_SECONDS)
    throw invalidToken('iat is missing or in the future')
  if (!isInstant(exp) || exp <= iat) throw invalidToken('exp is missing or before iat')
  if (exp <= seconds - CLOCK_TOLERANCE_SECONDS) throw invalidToken('it has expired')
  if (type === 'agent_ws' || nbf !== undefined) {
    if (!isInstant(nbf) || nbf > seconds + CLOCK_TOLERANCE_SECONDS)
      throw invalidToken('nbf is missing or in the future')
  }
}

/** A cache for each issuer (and each `fetch`, since tests pass their own), for the life of the process. */
const caches = new WeakMap<typeof fetch, Map<string, Jwks>>()

function jwksOf({ issuer, fetch = globalThis.fetch }: VerifyOptions): Jwks {
  const jwksByIssuer = caches.get(fetch) ?? new Map<string, Jwks>()
  caches.set(fetch, jwksByIssuer)
  const jwks =
    jwksByIssuer.get(issuer) ?? new Jwks(`${issuer.replace(/\/$/, '')}/.well-known/jwks.json`, fetch)
  jwksByIssuer.set(issuer, jwks)
  return jwks
}

function parseObject(part: string): Claims {
  const bytes = decodeBase64url(part)
  if (!bytes) throw invalidToken('it is not in canonical base64url')
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Claims
  } catch {
    // reported below
  }
  throw invalidToken('it holds no JSON object')
}

function requireStrings(claims: Claims, names: string[]): void {
  for (const name of names) {
    if (typeof claims[name] !== 'string' || claims[name] === '') throw invalidToken(`${name} is missing`)
  }
}

/** NumericDate (RFC 7519 section 2), whole seconds as Keyway writes it. */
function isInstant(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function invalidToken(reason: string): KeywayError {
  return new KeywayError('invalid_token', `The token is not accepted: ${reason}.`, { status: 401 })
}
