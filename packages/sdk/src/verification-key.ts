import { decodeBase64url } from './base64url.ts'

/** Bytes of an ES256 or EdDSA signature (RFC 7518 section 3.4, RFC 8032 section 5.1.6). */
const ELLIPTIC_SIGNATURE_BYTES = 64
/** Minimum size of an RSA key (RFC 7518 section 3.3). */
const MIN_RSA_BYTES = 256

/** A public key of the issuer, for one algorithm. */
export interface VerificationKey {
  alg: TokenAlg
  verify(message: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>): Promise<boolean>
}

export const TOKEN_ALGS = ['EdDSA', 'ES256', 'RS256'] as const
export type TokenAlg = (typeof TOKEN_ALGS)[number]

type Jwk = Record<string, unknown>

/**
 * Imports a key, for the algorithm of its type; undefined if it cannot verify tokens on this platform, or names another
 * `alg` or `use`.
 */
export async function importKey(document: Jwk): Promise<VerificationKey | undefined> {
  const alg = algOf(document)
  if (!alg || (document.alg !== undefined && document.alg !== alg)) return undefined
  if (document.use !== undefined && document.use !== 'sig') return undefined
  const { members, parameters, signatureBytes } = KEY_TYPES[alg]
  const jwk = Object.fromEntries(members.map(name => [name, document[name]]))
  try {
    const key = await crypto.subtle.importKey('jwk', jwk as JsonWebKey, parameters, false, ['verify'])
    return {
      alg,
      async verify(message, signature) {
        if (signatureBytes !== undefined && signature.length !== signatureBytes) return false
        return crypto.subtle.verify(parameters, key, signature, message)
      },
    }
  } catch {
    return undefined // not a point on the curve, or the platform lacks the algorithm
  }
}

interface KeyType {
  members: string[]
  parameters: { name: string; namedCurve?: string; hash?: string }
  signatureBytes?: number
}

const KEY_TYPES: Record<TokenAlg, KeyType> = {
  EdDSA: {
    members: ['kty', 'crv', 'x'],
    parameters: { name: 'Ed25519' },
    signatureBytes: ELLIPTIC_SIGNATURE_BYTES,
  },
  ES256: {
    members: ['kty', 'crv', 'x', 'y'],
    parameters: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
    signatureBytes: ELLIPTIC_SIGNATURE_BYTES,
  },
  RS256: {
    members: ['kty', 'n', 'e'],
    parameters: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  },
}

function algOf({ kty, crv, n }: Jwk): TokenAlg | undefined {
  if (kty === 'OKP' && crv === 'Ed25519') return 'EdDSA'
  if (kty === 'EC' && crv === 'P-256') return 'ES256'
  const modulus = kty === 'RSA' && typeof n === 'string' ? decodeBase64url(n) : undefined
  return modulus && modulus.length >= MIN_RSA_BYTES ? 'RS256' : undefined
}
