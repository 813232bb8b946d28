import { randomInt } from 'node:crypto'
import { type Instant, MINUTE, SECOND } from '../clock.ts'
import type { Secrets } from '../secrets.ts'

/** How long a device code and its user code are valid (RFC 8628 section 3.2, `expires_in`). */
export const DEVICE_CODE_LIFETIME = 10 * MINUTE
/** The wait between two polls (RFC 8628 section 3.2, `interval`). */
export const POLL_INTERVAL = 5 * SECOND
/** What each poll that came too early adds to the wait (RFC 8628 section 3.5, `slow_down`). */
export const SLOW_DOWN_STEP = 5 * SECOND
/** Maximum age of the sign-in with which a person may approve a device. */
export const MAX_SIGN_IN_AGE = 30 * MINUTE
/** How long after the device code was redeemed the resulting access token with `keys:create` may create its one key. */
export const KEY_CREATION_WINDOW = 10 * MINUTE

export const MAX_DEVICE_NAME_LENGTH = 100

/**
 * The letters of user codes: consonants, so that no words result, without those that look or sound alike (RFC 8628
 * section 6.1). There are 2.5 × 10^10 codes of eight letters.
 */
export const USER_CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const USER_CODE_LENGTH = 8

export type DeviceDecision = 'approved' | 'denied'

/**
 * A request of a device for access, which a person decides in a browser. Valid for ten minutes and stored for an hour
 * more.
 */
export interface DeviceAuthorization {
  id: string
  clientId: string
  /** SHA-256 of the device code, with which the device polls. */
  deviceCodeHash: string
  /** Keyed hash of the user code, which a person types. */
  userCodeHash: string
  /** SHA-256 of the ticket in `verification_uri_complete`, which cannot be guessed. */
  ticketHash: string
  scopes: readonly string[]
  /** The requested resource (RFC 8707); null for this service. */
  resource: string | null
  /** The name that the device claims to have. */
  deviceName: string | null
  address: string
  network: string
  client: string | null
  createdAt: Instant
  expiresAt: Instant
  /** Minimum interval of polls, in milliseconds. */
  pollInterval: number
  lastPolledAt: Instant | null
  decision: DeviceDecision | null
  decidedAt: Instant | null
  /** The person who decided. */
  userId: string | null
  /** The id of the session in which the person decided. */
  signInId: string | null
  /** When that session's sign-in took place. */
  authTime: Instant | null
  redeemedAt: Instant | null
  /** The session that the redemption opened. */
  sessionId: string | null
  /** The key that the device created. */
  keyId: string | null
}

export function generateUserCode(): string {
  return Array.from({ length: USER_CODE_LENGTH }, () => USER_CODE_LETTERS[randomInt(20)]).join('')
}

/** The form in which a code is shown: `XXXX-XXXX`. */
export function formatUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`
}

/**
 * The letters of a typed code, whatever its case and punctuation (RFC 8628 section 6.1); null if it cannot be a code.
 */
export function parseUserCode(typed: string): string | null {
  if (typed.length > 3 * USER_CODE_LENGTH) return null
  const letters = typed.toUpperCase().replace(/[^A-Z0-9]/g, '')
  const isCode =
    letters.length === USER_CODE_LENGTH && [...letters].every(letter => USER_CODE_LETTERS.includes(letter))
  return isCode ? letters : null
}

/**
 * The stored hash of a user code. Keyed, since a plain hash of eight letters could be brute-forced from a database
 * dump.
 */
export function userCodeHash(
  secrets: Pick<Secrets, 'deriveKey' | 'fingerprint'>,
  code: string,
  id?: string,
): string {
  const secretId = id ?? secrets.fingerprint
  return `${secretId}.${secrets.deriveKey('user-code', Buffer.from(code), secretId)!.toString('base64url')}`
}

/**
 * The hashes under which a code may be stored: one per secret of KEYWAY_SECRET. The node that stored the code used the
 * first secret of its own list, which is another one here while secrets are being rotated.
 */
export function possibleHashes(
  secrets: Pick<Secrets, 'deriveKey' | 'fingerprint' | 'ids'>,
  code: string,
): string[] {
  return secrets.ids.map(id => userCodeHash(secrets, code, id))
}

export function isFreshSignIn(session: { createdAt: Instant }, now: Instant): boolean {
  return now < session.createdAt + MAX_SIGN_IN_AGE
}
