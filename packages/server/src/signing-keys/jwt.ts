import { type Clock, DAY, SECOND } from '../clock.ts'
import { type OpenedSigningKey, signWith, verifyWith } from './algorithms.ts'
import { sign } from './ed25519.ts'
import { KnownTokens } from './known-tokens.ts'
import type { Signer } from './signer.ts'
import type { SigningAlg } from './signing-key.ts'
import type { SigningKeys } from './signing-keys.ts'

/** The values of the header `typ`; `JWT` is that of id tokens. */
export type JwtType = 'agent_ws' | 'at+jwt' | 'JWT' | 'logout+jwt'

type Claims = Record<string, unknown>

export interface Jwt {
  /** Signs a token with EdDSA on the event loop; `typ` goes into the header with `alg` and `kid`. */
  sign(typ: JwtType, claims: Claims): string
  /**
   * Signs a token with any algorithm: RS256 and, under load, EdDSA in another thread, ES256 on the event loop. The
   * first use of an algorithm creates its key.
   */
  signAs(alg: SigningAlg, typ: JwtType, claims: Claims): Promise<string>
  /**
   * The claims of a token that one of our own keys signed with that key's algorithm, with this header type, issuer and
   * audience, currently valid and canonically encoded. Null for anything else; never throws on bad input.
   */
  verify(token: string, expected: { typ: JwtType; audience: string }): Promise<Claims | null>
  /**
   * The claims of a token with this header type that one of our own published keys signed, for any audience, even if it
   * has expired: such a token shows what was issued, and must not authenticate anybody. Null for anything else.
   */
  readIssued(token: string, typ: JwtType): Promise<Claims | null>
}

/** Tokens with more characters are refused unparsed; this service issues none. */
export const MAX_JWT_LENGTH = 8192
/** Clock skew between nodes, in seconds, tolerated for `iat` and `nbf`; never for `exp`. */
const LEEWAY_SECONDS = 5
/** Tokens with a longer lifetime are refused; this service issues none. */
export const MAX_LIFETIME_SECONDS = DAY / SECOND

/**
 * JSON Web Tokens (RFC 7519), by the rules of RFC 8725: one algorithm per key, explicit types, no key from a header.
 */
export function createJwt(deps: {
  signingKeys: SigningKeys
  signer: Signer
  clock: Clock
  issuer: string
}): Jwt {
  const { signingKeys, signer, clock, issuer } = deps
  /** Encoded headers, by type and key id. */
  const headers = new Map<string, string>()
  /** Key ids, by encoded header. */
  const kids = new Map<string, string>()
  const knownTokens = new KnownTokens()

  return {
    sign(typ, claims) {
      const key = signingKeys.current()
      const signingInput = `${header(typ, key)}.${encode(JSON.stringify(claims))}`
      return withSignature(signingInput, sign(Buffer.from(signingInput), key.secretKey))
    },

    async signAs(alg, typ, claims) {
      const key = await signingKeys.currentOf(alg)
      const signingInput = `${header(typ, key)}.${encode(JSON.stringify(claims))}`
      return withSignature(signingInput, await signWith(key, signingInput, signer))
    },

    async verify(token, { typ, audience }) {
      const claims = await readIssued(token, typ)
      return claims && hasValidClaims(claims, audience) ? claims : null
    },

    readIssued,
  }

  async function readIssued(token: string, typ: JwtType): Promise<Claims | null> {
    const parts = partsOf(token)
    const kid = parts && (kids.get(parts.header) ?? kidOf(parts.header))
    const key = kid ? await signingKeys.find(kid) : null
    // The whole header must equal one that this service writes. That excludes other algorithms, embedded keys,
    // `crit`, compression and members that two parsers read differently.
    if (!parts || !key || header(typ, key) !== parts.header) return null
    return knownTokens.has(token) ? claimsOf(parts.payload) : claimsIfVerified(token, parts, key)
  }

  function withSignature(signingInput: string, signature: Buffer): string {
    const token = `${signingInput}.${signature.toString('base64url')}`
    knownTokens.add(token)
    return token
  }

  async function claimsIfVerified(
    token: string,
    { payload, signingInput, signature }: TokenParts,
    key: OpenedSigningKey,
  ): Promise<Claims | null> {
    const bytes = decode(signature)
    if (!bytes || !(await verifyWith(key, signingInput, bytes, signer))) return null
    const claims = claimsOf(payload)
    // The payload must be encoded as this service encodes it: no duplicate members, no numbers beyond double precision.
    if (!claims || encode(JSON.stringify(claims)) !== payload) return null
    knownTokens.add(token)
    return claims
  }

  /**
   * The encoded header of a key. Cached, so only for our own keys: headers of arbitrary tokens would fill the memory.
   */
  function header(typ: JwtType, { kid, alg }: Pick<OpenedSigningKey, 'kid' | 'alg'>): string {
    const name = `${typ} ${kid}`
    let segment = headers.get(name)
    if (!segment) {
      segment = encode(JSON.stringify({ alg, typ, kid }))
      headers.set(name, segment)
      kids.set(segment, kid)
    }
    return segment
  }

  /** Checks beyond the signature: issuer, exactly one audience, times in whole seconds, lifetime. */
  function hasValidClaims(claims: Claims, audience: string): boolean {
    const { iss, aud, sub, jti, type, iat, exp, nbf = iat } = claims
    if (iss !== issuer || aud !== audience) return false
    if (typeof sub !== 'string' || typeof jti !== 'string' || typeof type !== 'string') return false
    if (!isSeconds(iat) || !isSeconds(exp) || !isSeconds(nbf)) return false
    const now = clock.now()
    const latestAllowed = now + LEEWAY_SECONDS * SECOND
    if (exp * SECOND <= now || iat * SECOND > latestAllowed || nbf * SECOND > latestAllowed) return false
    return exp > iat && exp - iat <= MAX_LIFETIME_SECONDS
  }
}

/** RFC 7519 NumericDate without fractions. */
function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}

interface TokenParts {
  header: string
  payload: string
  signature: string
  signingInput: string
}

function partsOf(token: unknown): TokenParts | null {
  if (typeof token !== 'string' || token.length > MAX_JWT_LENGTH) return null
  const parts = token.split('.')
  if (parts.length !== 3) return null
  const [header, payload, signature] = parts as [string, string, string]
  return { header, payload, signature, signingInput: token.slice(0, -signature.length - 1) }
}

/**
 * Null for a non-canonical base64url encoding (padding, unused bits, another alphabet), so that a token has exactly
 * one text form. Header and payload need no such check: the header is compared as text, the payload is covered by the
 * signature.
 */
function decode(signature: string): Buffer | null {
  const bytes = Buffer.from(signature, 'base64url')
  return bytes.toString('base64url') === signature ? bytes : null
}

function kidOf(segment: string): string | null {
  const header = parseJson(segment)
  if (typeof header !== 'object' || header === null || !('kid' in header)) return null
  return typeof header.kid === 'string' ? header.kid : null
}

/** The payload as an object. Only for payloads with a verified signature. */
function claimsOf(payload: string): Claims | null {
  const claims = parseJson(payload)
  const isObject = typeof claims === 'object' && claims !== null && !Array.isArray(claims)
  return isObject ? (claims as Claims) : null
}

function parseJson(segment: string): unknown {
  try {
    return JSON.parse(Buffer.from(segment, 'base64url').toString())
  } catch {
    return null
  }
}
