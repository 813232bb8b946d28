import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  sign as nodeSign,
  verify as nodeVerify,
  randomBytes,
} from 'node:crypto'
import { promisify } from 'node:util'
import { keyPairOf, SEED_BYTES, type SecretKey } from './ed25519.ts'
import type { Signer } from './signer.ts'
import type { SigningAlg, SigningKey } from './signing-key.ts'

/** Bits of RS256 keys: 128 bits of security (NIST SP 800-57 part 1, table 2), as the other algorithms have. */
const RSA_BITS = 3072
/** Bytes of an ES256 signature: r and s (RFC 7518 section 3.4). */
const ES256_SIGNATURE_BYTES = 64

/**
 * A public key as the JWKS shows it (RFC 7517, RFC 7518 section 6, RFC 8037). It names the only algorithm it is for.
 */
export type PublicJwk = { kid: string; use: 'sig' } & (
  | { alg: 'EdDSA'; kty: 'OKP'; crv: 'Ed25519'; x: string }
  | { alg: 'ES256'; kty: 'EC'; crv: 'P-256'; x: string; y: string }
  | { alg: 'RS256'; kty: 'RSA'; n: string; e: string }
)

export interface Ed25519SigningKey {
  kid: string
  alg: 'EdDSA'
  secretKey: SecretKey
}

/** A decrypted signing key; in memory only. Its algorithm is a property of the key, never of a token. */
export type OpenedSigningKey =
  | Ed25519SigningKey
  | { kid: string; alg: 'ES256' | 'RS256'; privateKey: KeyObject; publicKey: KeyObject }

/** A key pair as `SigningKey` stores it, with the private key not sealed yet. */
export interface NewKeyPair {
  publicKey: string
  privateKey: Buffer
}

/** Generates a key pair. The primes of an RSA key are searched for in another thread. */
export async function newKeyPair(alg: SigningAlg): Promise<NewKeyPair> {
  if (alg === 'EdDSA') {
    const seed = randomBytes(SEED_BYTES)
    return { publicKey: keyPairOf(seed).publicKey.toString('base64url'), privateKey: seed }
  }
  const generate = promisify(generateKeyPair)
  const { publicKey, privateKey } =
    alg === 'ES256'
      ? await generate('ec', { namedCurve: 'P-256' })
      : await generate('rsa', { modulusLength: RSA_BITS })
  return {
    publicKey: spkiOf(publicKey),
    privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }),
  }
}

/** Opens a stored key pair; null if the public key does not belong to the private one. */
export function openKeyPair(
  { id: kid, alg, publicKey }: Pick<SigningKey, 'id' | 'alg' | 'publicKey'>,
  secret: Buffer,
): OpenedSigningKey | null {
  if (alg === 'EdDSA') {
    const pair = keyPairOf(secret)
    return pair.publicKey.toString('base64url') === publicKey ? { kid, alg, secretKey: pair.secretKey } : null
  }
  const privateKey = createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' })
  const ownPublicKey = createPublicKey(privateKey)
  return spkiOf(ownPublicKey) === publicKey ? { kid, alg, privateKey, publicKey: ownPublicKey } : null
}

/** The signature of a JWS (RFC 7515). RSA signatures are computed in another thread, since they take a millisecond. */
export async function signWith(key: OpenedSigningKey, signingInput: string, signer: Signer): Promise<Buffer> {
  if (key.alg === 'EdDSA') return signer.sign(signingInput, key.secretKey)
  const message = Buffer.from(signingInput)
  if (key.alg === 'ES256')
    return nodeSign('sha256', message, { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return new Promise((resolve, reject) =>
    nodeSign('sha256', message, key.privateKey, (error, signature) =>
      error ? reject(error) : resolve(signature),
    ),
  )
}

export function verifyWith(
  key: OpenedSigningKey,
  signingInput: string,
  signature: Buffer,
  signer: Signer,
): boolean | Promise<boolean> {
  if (key.alg === 'EdDSA') return signer.verify(signingInput, signature, key.secretKey)
  const message = Buffer.from(signingInput)
  if (key.alg === 'ES256')
    return (
      signature.length === ES256_SIGNATURE_BYTES &&
      nodeVerify('sha256', message, { key: key.publicKey, dsaEncoding: 'ieee-p1363' }, signature)
    )
  return nodeVerify('sha256', message, key.publicKey, signature)
}

export function toJwk({ id: kid, alg, publicKey }: Pick<SigningKey, 'id' | 'alg' | 'publicKey'>): PublicJwk {
  if (alg === 'EdDSA') return { kty: 'OKP', crv: 'Ed25519', x: publicKey, kid, alg, use: 'sig' }
  const spki = Buffer.from(publicKey, 'base64url')
  const { x, y, n, e } = createPublicKey({ key: spki, format: 'der', type: 'spki' }).export({ format: 'jwk' })
  return alg === 'ES256'
    ? { kty: 'EC', crv: 'P-256', x: x!, y: y!, kid, alg, use: 'sig' }
    : { kty: 'RSA', n: n!, e: e!, kid, alg, use: 'sig' }
}

function spkiOf(publicKey: KeyObject): string {
  return publicKey.export({ format: 'der', type: 'spki' }).toString('base64url')
}
