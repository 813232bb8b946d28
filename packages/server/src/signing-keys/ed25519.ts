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
const PUBLIC_KEY_BYTES = 32

export interface SecretKey {
  /** The secret key in libsodium's form: 32 bytes seed, 32 bytes public key. */
  bytes: Buffer
  keyObject: KeyObject
}

/** The part of libsodium that is used here; its package brings no types. */
interface Sodium {
  crypto_sign_detached(signature: Buffer, message: Buffer, secretKey: Buffer): void
}

const sodium = loadSodium()

/** The bytes of PKCS #8 that precede a raw Ed25519 seed (RFC 8410 section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * An Ed25519 signature (RFC 8032), 64 bytes.
 *
 * Signing is the most expensive step of an exchange; libsodium takes half the time of Node. Node is used where
 * libsodium has no build for the platform.
 */
export function sign(message: Buffer, secretKey: SecretKey): Buffer {
  if (!sodium) return signWithNode(message, secretKey)
  const signature = Buffer.allocUnsafe(SIGNATURE_BYTES)
  sodium.crypto_sign_detached(signature, message, secretKey.bytes)
  return signature
}

/** The same signature without libsodium: Ed25519 is deterministic, so both agree byte for byte. */
export function signWithNode(message: Buffer, { keyObject }: SecretKey): Buffer {
  return nodeSign(null, message, keyObject)
}

/**
 * Whether this is the signature that `sign` makes of the message.
 *
 * Ed25519 is deterministic and all private keys are in memory, so a signature is verified by signing again: 14 µs
 * instead of 35 with the public key, and no other signature of the same message (RFC 8032 permits malleable ones) is
 * accepted. The computed signature is never returned, so this is no signing oracle.
 */
export function verify(message: Buffer, signature: Buffer, secretKey: SecretKey): boolean {
  return isSameSignature(signature, sign(message, secretKey))
}

export function isSameSignature(signature: Buffer, expected: Buffer): boolean {
  return signature.length === SIGNATURE_BYTES && timingSafeEqual(signature, expected)
}

export function keyPairOf(seed: Buffer): { publicKey: Buffer; secretKey: SecretKey } {
  const keyObject = toPrivateKey(seed)
  const publicKey = createPublicKey(keyObject)
    .export({ format: 'der', type: 'spki' })
    .subarray(-PUBLIC_KEY_BYTES)
  return { publicKey, secretKey: { bytes: Buffer.concat([seed, publicKey]), keyObject } }
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
