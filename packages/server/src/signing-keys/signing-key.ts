import type { Instant } from '../clock.ts'

/** An Ed25519 key pair that signs tokens. The private half is sealed under `signing-key` with the id as context. */
export interface SigningKey {
  /** The `kid`. */
  id: string
  /** base64url of the 32 public bytes. */
  publicKey: string
  sealedSeed: string
  createdAt: Instant
  /** It signs from here on; published before, so that verifiers know it when it is first used. */
  signsFrom: Instant
  /** Nothing it signed is alive from here on; null while it is the newest. */
  retiresAt: Instant | null
}
