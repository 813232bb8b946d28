import { type Clock, DAY, SECOND } from '../clock.ts'
import { sign, verify } from './ed25519.ts'
import { KnownTokens } from './known-tokens.ts'
import type { SigningKeys } from './signing-keys.ts'

export type JwtType = 'agent_ws' | 'at+jwt'

type Claims = Record<string, unknown>

export interface Jwt {
  /** Signs on the hot path. `typ` goes into the header beside `alg` and `kid`. */
  sign(typ: JwtType, claims: Claims): string
  /**
   * The claims of a token that one of our own keys signed with EdDSA, of this header type, issuer and audience,
   * inside its times, in canonical encoding. Null for anything else, whatever it is.
   */
  verify(token: string, expected: { typ: JwtType; audience: string }): Promise<Claims | null>
}

/** No token made here is longer; what is was not worth parsing. */
export const MAX_JWT_LENGTH = 8192
/** How far `iat` and `nbf` may lie ahead, in seconds, where another node signed. `exp` is never stretched. */
const LEEWAY_SECONDS = 5
/** No token made here lives longer; one that claims to was made elsewhere. */
export const MAX_LIFETIME_SECONDS = DAY / SECOND

/** JSON Web Tokens (RFC 7519), by the rules of RFC 8725: one algorithm, explicit types, no key from a header. */
export function createJwt(deps: { signingKeys: SigningKeys; clock: Clock; issuer: string }): Jwt {
  const { signingKeys, clock, issuer } = deps
  const headers = new Map<string, string>()
  const kids = new Map<string, string>()
  const known = new KnownTokens()

  return {
    sign(typ, claims) {
      const { kid, secretKey } = signingKeys.current()
      const signed = `${header(typ, kid)}.${encode(JSON.stringify(claims))}`
      const token = `${signed}.${sign(Buffer.from(signed), secretKey).toString('base64url')}`
      known.add(token)
      return token
    },

    async verify(token, { typ, audience }) {
      const parts = partsOf(token)
      const kid = parts && (kids.get(parts.header) ?? kidOf(parts.header))
      const key = kid ? await signingKeys.find(kid) : null
      // Ours are the only headers there are. Comparing the whole of it leaves no room for another algorithm,
      // a key of the sender's own, `crit`, compression or a member that two parsers read differently.
      if (!parts || !key || header(typ, key.kid) !== parts.header) return null
      const claims = known.has(token) ? claimsOf(parts.payload) : verified(token, parts, key.secretKey)
      return claims && isSound(claims, audience) ? claims : null
    },
  }

  function verified(token: string, { payload, signed, signature }: Parts, secretKey: Buffer): Claims | null {
    const bytes = decode(signature)
    if (!bytes || !verify(Buffer.from(signed), bytes, secretKey)) return null
    const claims = claimsOf(payload)
    // Written as we write it: no member twice, no number that a double cannot hold.
    if (!claims || encode(JSON.stringify(claims)) !== payload) return null
    known.add(token)
    return claims
  }

  /** Asked of keys of ours only: what is kept of a stranger's key ids would grow without end. */
  function header(typ: JwtType, kid: string): string {
    const name = `${typ} ${kid}`
    let segment = headers.get(name)
    if (!segment) {
      segment = encode(JSON.stringify({ alg: 'EdDSA', typ, kid }))
      headers.set(name, segment)
      kids.set(segment, kid)
    }
    return segment
  }

  /** What a signature alone does not show: our issuer, one audience, exact times in whole seconds, a lifetime of ours. */
  function isSound(claims: Claims, audience: string): boolean {
    const { iss, aud, sub, jti, type, iat, exp, nbf = iat } = claims
    if (iss !== issuer || aud !== audience) return false
    if (typeof sub !== 'string' || typeof jti !== 'string' || typeof type !== 'string') return false
    if (!isSeconds(iat) || !isSeconds(exp) || !isSeconds(nbf)) return false
    const now = clock.now()
    const latest = now + LEEWAY_SECONDS * SECOND
    if (exp * SECOND <= now || iat * SECOND > latest || nbf * SECOND > latest) return false
    return exp > iat && exp - iat <= MAX_LIFETIME_SECONDS
  }
}

/** RFC 7519 NumericDate, without its fractions: no token made here has any. */
function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}

interface Parts {
  header: string
  payload: string
  signature: string
  /** Header and payload, as the signature covers them. */
  signed: string
}

function partsOf(token: unknown): Parts | null {
  if (typeof token !== 'string' || token.length > MAX_JWT_LENGTH) return null
  const parts = token.split('.')
  if (parts.length !== 3) return null
  const [header, payload, signature] = parts as [string, string, string]
  return { header, payload, signature, signed: token.slice(0, -signature.length - 1) }
}

/**
 * Null where base64url has a second spelling of the same bytes (padding, spare bits, another alphabet): nobody can
 * make a second text of a token that he was given. Header and payload need no such look, since they are compared as
 * text, with what we wrote and under the signature.
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

/** The object in the payload. Asked only of what our own key signed. */
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
