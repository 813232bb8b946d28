import type { Instant } from '../clock.ts'

/** Algorithms of tokens (RFC 7518 section 3.1, RFC 8037), the default first. */
export const SIGNING_ALGS = ['EdDSA', 'ES256', 'RS256'] as const
export type SigningAlg = (typeof SIGNING_ALGS)[number]

/**
 * A key pair that signs tokens with one algorithm. The private half is sealed under `signing-key` with the id as
 * context.
 */
export interface SigningKey {
  /** The `kid`. */
  id: string
  alg: SigningAlg
  /** In base64url: for Ed25519 the 32 public bytes, for others the SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7). */
  publicKey: string
  /** The private half: for Ed25519 the 32-byte seed, for others PKCS #8. */
  sealedPrivateKey: string
  createdAt: Instant
  /** Used for signing from this instant; published earlier, so that verifiers know it by then. */
  signsFrom: Instant
  /** From this instant no valid token is signed by it; null while it is the newest key of its algorithm. */
  retiresAt: Instant | null
}
