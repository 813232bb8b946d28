export interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

/** The Ed25519 key that signs at this moment, opened; held in memory only. */
export interface ActiveSigningKey {
  kid: string
  /** libsodium's 64-byte secret key. */
  secretKey: Buffer
}

export interface SigningKeys {
  /** Makes the first key where there is none, and opens what is stored. @throws SealError */
  load(): Promise<void>
  /** Cheap and synchronous: the hot path asks it for every token. */
  current(): ActiveSigningKey
  /** 32 public bytes by `kid`, for verification; null for an unknown or retired one. Re-reads the store once for an unknown one. */
  publicKey(kid: string): Promise<Buffer | null>
  /** Every published key: signing, next and not yet retired. */
  jwks(): { keys: PublicJwk[] }
  /** Makes a new key, published now and signing once every node and verifier can know it. */
  rotate(): Promise<{ kid: string; signsFrom: number }>
}
