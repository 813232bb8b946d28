import type { Instant } from '../clock.ts'

/** An Ed25519 key pair that signs tokens. The private half is sealed under `signing-key` with the id as context. */
export interface SigningKey {
  /** The `kid`. */
  id: string
  /** base64url of the 32 public bytes. */
  publicKey: string
  sealedSeed: string
  createdAt: Instant
  /** Used for signing from this instant; published earlier, so that verifiers know it by then. */
  signsFrom: Instant
  /** From this instant no valid token is signed by it; null while it is the newest key. */
  retiresAt: Instant | null
}
