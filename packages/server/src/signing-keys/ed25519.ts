import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as nodeSign,
  timingSafeEqual,
} from 'node:crypto'
import { createRequire } from 'node:module'

export const SEED_BYTES = 32
export const SIGNATURE_BYTES = 64

/** The part of libsodium that is used here; its package brings no types. */
interface Sodium {
  crypto_sign_detached(signature: Buffer, message: Buffer, secretKey: Buffer): void
}

const sodium = loadSodium()

/** PKCS #8 around a raw Ed25519 seed (RFC 8410 section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * An Ed25519 signature (RFC 8032), 64 bytes.
 *
 * Signing is the most expensive step of an exchange; libsodium takes half the time of Node. Node is used where
 * libsodium has no build for the platform.
 *
 * @param secretKey libsodium's form: 32 bytes seed, 32 bytes public key
 */
export function sign(message: Buffer, secretKey: Buffer): Buffer {
  if (!sodium) return signWithNode(message, secretKey)
  const signature = Buffer.allocUnsafe(SIGNATURE_BYTES)
  sodium.crypto_sign_detached(signature, message, secretKey)
  return signature
}

const privateKeys = new WeakMap<Buffer, KeyObject>()

/** The same signature without libsodium: Ed25519 is deterministic, so both agree byte for byte. */
export function signWithNode(message: Buffer, secretKey: Buffer): Buffer {
  let key = privateKeys.get(secretKey)
  if (!key) {
    key = toPrivateKey(secretKey.subarray(0, SEED_BYTES))
    privateKeys.set(secretKey, key)
  }
  return nodeSign(null, message, key)
}

/**
 * Whether this is the signature that `sign` makes of the message.
 *
 * Ed25519 is deterministic and all private keys are in memory, so a signature is verified by signing again: 14 µs
 * instead of 35 with the public key, and no other signature of the same message (RFC 8032 permits malleable ones) is
 * accepted. The computed signature is never returned, so this is no signing oracle.
 *
 * @param secretKey libsodium's form, as in `sign`
 */
export function verify(message: Buffer, signature: Buffer, secretKey: Buffer): boolean {
  return signature.length === SIGNATURE_BYTES && timingSafeEqual(sign(message, secretKey), signature)
}

/** The key pair of a 32-byte seed. */
export function keyPairOf(seed: Buffer): { publicKey: Buffer; secretKey: Buffer } {
  const { x } = createPublicKey(toPrivateKey(seed)).export({ format: 'jwk' })
  const publicKey = Buffer.from(x!, 'base64url')
  return { publicKey, secretKey: Buffer.concat([seed, publicKey]) }
}

function toPrivateKey(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
}

function loadSodium(): Sodium | null {
  try {
    return createRequire(import.meta.url)('sodium-native') as Sodium
  } catch {
    return null
  }
}
