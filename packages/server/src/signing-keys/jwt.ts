import type { KeyObject } from 'node:crypto'
import { jwtVerify } from 'jose'
import { type Clock, DAY, SECOND } from '../clock.ts'
import { sign, toPublicKey } from './ed25519.ts'
import type { SigningKeys } from './signing-keys.ts'

export type JwtType = 'agent_ws' | 'at+jwt'

export interface Jwt {
  /** Signs on the hot path. `typ` goes into the header beside `alg` and `kid`. */
  sign(typ: JwtType, claims: Record<string, unknown>): string
  /**
   * The claims of a token that one of our own keys signed with EdDSA, of this header type, issuer and audience,
   * inside its times, in canonical encoding. Null for anything else, whatever it is.
   */
  verify(token: string, expected: { typ: JwtType; audience: string }): Promise<Record<string, unknown> | null>
}

/** No token made here is longer; what is was not worth parsing. */
export const MAX_JWT_LENGTH = 8192
/** How far `iat` and `nbf` may lie ahead, in seconds, where another node signed. `exp` is never stretched. */
const LEEWAY_SECONDS = 5
/** No token made here lives longer; one that claims to was made elsewhere. */
export const MAX_LIFETIME_SECONDS = DAY / SECOND

const REQUIRED_CLAIMS = ['iss', 'aud', 'sub', 'iat', 'exp', 'jti', 'type']

/** JSON Web Tokens (RFC 7519), by the rules of RFC 8725: one algorithm, explicit types, no key from a header. */
export function createJwt(deps: { signingKeys: SigningKeys; clock: Clock; issuer: string }): Jwt {
  const { signingKeys, clock, issuer } = deps
  const headers = new Map<string, string>()
  const publicKeys = new WeakMap<Buffer, KeyObject>()

  return {
    sign(typ, claims) {
      const { kid, secretKey } = signingKeys.current()
      const signed = `${header(typ, kid)}.${encode(JSON.stringify(claims))}`
      return `${signed}.${sign(Buffer.from(signed), secretKey).toString('base64url')}`
    },

    async verify(token, { typ, audience }) {
      const parts = canonicalParts(token)
      if (!parts) return null
      const kid = kidOf(parts.header)
      // Ours are the only headers there are. Comparing the whole of it leaves no room for another algorithm,
      // a key of the sender's own, `crit`, compression or a member that two parsers read differently.
      if (kid === null || encode(headerJson(typ, kid)) !== parts.header) return null
      const key = await signingKeys.publicKey(kid)
      if (!key) return null
      const claims = await verified(token, key, { typ, audience })
      return claims && isCanonicalJson(parts.payload) && isSound(claims, audience) ? claims : null
    },
  }

  function header(typ: JwtType, kid: string): string {
    const name = `${typ} ${kid}`
    let segment = headers.get(name)
    if (!segment) {
      segment = encode(headerJson(typ, kid))
      headers.set(name, segment)
    }
    return segment
  }

  async function verified(token: string, key: Buffer, { typ, audience }: { typ: string; audience: string }) {
    try {
      const { payload } = await jwtVerify(token, publicKey(key), {
        algorithms: ['EdDSA'],
        typ,
        issuer,
        audience,
        requiredClaims: REQUIRED_CLAIMS,
        currentDate: new Date(clock.now()),
        clockTolerance: LEEWAY_SECONDS,
      })
      return payload as Record<string, unknown>
    } catch {
      return null
    }
  }

  function publicKey(bytes: Buffer): KeyObject {
    let key = publicKeys.get(bytes)
    if (!key) {
      key = toPublicKey(bytes)
      publicKeys.set(bytes, key)
    }
    return key
  }

  /** What a signature alone does not show: exact times in whole seconds, one audience, a lifetime of ours. */
  function isSound({ iat, exp, aud, sub, jti }: Record<string, unknown>, audience: string): boolean {
    if (typeof iat !== 'number' || typeof exp !== 'number') return false
    if (!Number.isSafeInteger(iat) || !Number.isSafeInteger(exp) || iat < 0) return false
    const now = clock.now()
    if (exp * SECOND <= now || iat * SECOND > now + LEEWAY_SECONDS * SECOND) return false
    if (exp <= iat || exp - iat > MAX_LIFETIME_SECONDS) return false
    return aud === audience && typeof sub === 'string' && typeof jti === 'string'
  }
}

function headerJson(typ: JwtType, kid: string): string {
  return JSON.stringify({ alg: 'EdDSA', typ, kid })
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}

/**
 * The parts of a compact JWS whose base64url has no second spelling (padding, spare bits, other alphabets), so
 * that nobody can make a second text of a token that he was given.
 */
function canonicalParts(token: unknown): { header: string; payload: string } | null {
  if (typeof token !== 'string' || token.length > MAX_JWT_LENGTH) return null
  const parts = token.split('.')
  if (parts.length !== 3) return null
  const canonical = parts.every(
    part => part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part,
  )
  return canonical ? { header: parts[0]!, payload: parts[1]! } : null
}

function kidOf(segment: string): string | null {
  const header = parseJson(segment)
  if (typeof header !== 'object' || header === null || !('kid' in header)) return null
  return typeof header.kid === 'string' ? header.kid : null
}

/** Whether the payload is written as we write it: no member twice, no number that a double cannot hold. */
function isCanonicalJson(segment: string): boolean {
  return encode(JSON.stringify(parseJson(segment))) === segment
}

function parseJson(segment: string): unknown {
  try {
    return JSON.parse(Buffer.from(segment, 'base64url').toString())
  } catch {
    return null
  }
}
