import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hash,
  hkdfSync,
  randomBytes,
  randomFillSync,
  timingSafeEqual,
} from 'node:crypto'
import { CannotStart } from './operator-error.ts'

/**
 * Purposes of sub-keys (HKDF, RFC 5869). Separate keys limit the effect of a leak, and a value of one purpose is
 * never valid for another.
 */
export type Purpose =
  | 'signing-key'
  | 'session-secret'
  | 'mail'
  | 'inbox'
  | 'login-code'
  | 'address-pepper'
  | 'form-token'
  | 'new-key-id'
  | 'erased-address'
  | 'link-marker'
  | 'send-marker'
  | 'cursor'
  | 'backup'
  | 'journal'
  | 'audit'
  | 'wrong-code'
  | 'event'
  | 'authorization-request'
  | 'user-code'
  | 'device-approval'
  | 'destination'
  | 'webhook-secret'

const NONCE_BYTES = 12
const TAG_BYTES = 16
export const SECRET_ID_BYTES = 4
/** The counter of the first block of HKDF-Expand (RFC 5869, section 2.3). */
const FIRST_BLOCK = Buffer.from([1])
/** Random bytes for the next tokens: requesting those of each token separately would take 1.5 µs. */
const randomPool = Buffer.alloc(4096)
let usedBytes = randomPool.length

/**
 * A stored value cannot be opened: the secret that sealed it was removed too early, the database is another service's,
 * or the value was changed or copied to another row.
 */
export class SealError extends CannotStart {
  override readonly name = 'SealError'
}

export interface Secrets {
  /**
   * Encrypts with the first secret (AES-256-GCM). The result contains the id of that secret. `context` (the row's id)
   * is authenticated, so a sealed value does not open in another row.
   */
  seal(purpose: Purpose, plaintext: Buffer, context: string): string
  /** @throws SealError */
  open(purpose: Purpose, sealed: string, context: string): Buffer
  /**
   * A 32-byte key for one use, derived from the secret with this id, by default the first; null for an unknown id.
   * `context` separates the uses of one purpose.
   */
  deriveKey(purpose: Purpose, context: Buffer, id?: string): Buffer | null
  /** Whether the first secret sealed the value; `keyway keys reseal` reseals all others. */
  isCurrent(sealed: string): boolean
  /** HMAC-SHA-256 with the first secret, base64url, prefixed with the id of that secret. */
  mac(purpose: Purpose, message: string): string
  /** Whether one of the configured secrets made this MAC. Constant time. */
  verifyMac(purpose: Purpose, message: string, mac: string): boolean
  /** The ids of the configured secrets, as in sealed values; the first one seals. */
  readonly ids: readonly string[]
  /** Id of the first secret, which reveals nothing about it; stored in backups. */
  readonly fingerprint: string
}

interface RootSecret {
  id: string
  bytes: Buffer
  subKeys: Map<Purpose, Buffer>
}

/** @param roots the decoded secrets of `KEYWAY_SECRET`: the first one seals, all of them open */
export function createSecrets(roots: Buffer[]): Secrets {
  const rootSecrets = roots.map(toRootSecret)
  const firstSecret = rootSecrets[0]
  if (!firstSecret) throw new Error('createSecrets needs at least one secret')
  const byId = new Map(rootSecrets.map(root => [root.id, root]))

  return {
    fingerprint: firstSecret.id,
    ids: rootSecrets.map(({ id }) => id),
    seal(purpose, plaintext, context) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', subKey(firstSecret, purpose), nonce)
      cipher.setAAD(Buffer.from(context))
      const body = Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
      return `${firstSecret.id}.${body.toString('base64url')}`
    },
    open(purpose, sealed, context) {
      const [id = '', text = ''] = sealed.split('.')
      const root = byId.get(id)
      if (!root)
        throw new SealError(`a stored value was sealed by the secret ${id}, which is not in KEYWAY_SECRET`)
      const body = Buffer.from(text, 'base64url')
      try {
        const decipher = createDecipheriv('aes-256-gcm', subKey(root, purpose), body.subarray(0, NONCE_BYTES))
        decipher.setAAD(Buffer.from(context))
        decipher.setAuthTag(body.subarray(-TAG_BYTES))
        return Buffer.concat([decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      } catch (cause) {
        throw new SealError('a stored value was changed or belongs to another row', { cause })
      }
    },
    deriveKey(purpose, context, id = firstSecret.id) {
      const root = byId.get(id)
      // One block of HKDF-Expand (RFC 5869, section 2.3), without Extract: the sub-key is uniformly random already.
      return root ? hmac(subKey(root, purpose), Buffer.concat([context, FIRST_BLOCK])) : null
    },
    isCurrent(sealed) {
      return sealed.startsWith(`${firstSecret.id}.`)
    },
    mac(purpose, message) {
      return `${firstSecret.id}.${hmac(subKey(firstSecret, purpose), message).toString('base64url')}`
    },
    verifyMac(purpose, message, mac) {
      const [id = '', text = ''] = mac.split('.')
      const root = byId.get(id)
      return root !== undefined && equals(hmac(subKey(root, purpose), message).toString('base64url'), text)
    },
  }
}

function toRootSecret(bytes: Buffer): RootSecret {
  const id = createHash('sha256')
    .update('keyway-secret-id\0')
    .update(bytes)
    .digest()
    .subarray(0, SECRET_ID_BYTES)
  return { id: id.toString('hex'), bytes, subKeys: new Map() }
}

function subKey(root: RootSecret, purpose: Purpose): Buffer {
  let key = root.subKeys.get(purpose)
  if (!key) {
    key = Buffer.from(hkdfSync('sha256', root.bytes, 'keyway', purpose, 32))
    root.subKeys.set(purpose, key)
  }
  return key
}

export function hmac(key: Buffer, message: string | Buffer): Buffer {
  return createHmac('sha256', key).update(message).digest()
}

/** SHA-256 as base64url: the stored form of long random secrets. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** Constant time for texts of equal length; other lengths are unequal. */
export function equals(left: string, right: string): boolean {
  const a = Buffer.from(left)
  const b = Buffer.from(right)
  return a.length === b.length && timingSafeEqual(a, b)
}

/**
 * Whether an Authorization header is `Bearer` with this token (RFC 6750 section 2.1). Constant time, whatever token the
 * header has.
 */
export function isBearer(authorization: string | undefined, token: string): boolean {
  const [, presentedToken = ''] = /^bearer +([^ ]+)$/i.exec(authorization ?? '') ?? []
  return equals(sha256(presentedToken), sha256(token))
}

/** `bytes` random bytes as base64url. */
export function randomToken(bytes: number): string {
  if (usedBytes + bytes > randomPool.length) {
    if (bytes > randomPool.length) return randomBytes(bytes).toString('base64url')
    randomFillSync(randomPool)
    usedBytes = 0
  }
  const token = randomPool.toString('base64url', usedBytes, usedBytes + bytes)
  randomPool.fill(0, usedBytes, usedBytes + bytes)
  usedBytes += bytes
  return token
}
