import { timingSafeEqual } from 'node:crypto'
import { hmac, sha256 } from '../secrets.ts'

/**
 * The two kinds of session credential. Each consists of the session's id, a counter (in refresh tokens only), and a MAC
 * under that session's own secret. So nothing stored can be presented as a credential, a forged id cannot end or
 * change a session, and a token's successor can be computed again for a retry.
 *
 * They differ in prefix, length and the label in the MAC, so that neither is accepted as the other.
 */
export const REFRESH_TOKEN_PREFIX = 'svr_'
export const PAGE_COOKIE_PREFIX = 'svp_'
export const SESSION_SECRET_BYTES = 32

const ID_BYTES = 16
const COUNTER_BYTES = 6
const MAC_BYTES = 32

// 54 and 48 bytes are multiples of three, so each token has exactly one base64url encoding.
const REFRESH_TOKEN = /^svr_([A-Za-z0-9_-]{72})$/
const PAGE_COOKIE = /^svp_([A-Za-z0-9_-]{64})$/

/** The content of a credential, untrusted until `provenBy` returned true. */
export interface ClaimedCredential {
  sessionId: string
  /** The number of a refresh token; 0 for a cookie. */
  counter: number
  /** Verifies the MAC with the session's secret, in constant time. */
  provenBy(secret: Buffer): boolean
}

export function refreshToken(sessionId: string, counter: number, secret: Buffer): string {
  const head = Buffer.concat([idBytes(sessionId), counterBytes(counter)])
  return REFRESH_TOKEN_PREFIX + Buffer.concat([head, mac('refresh', head, secret)]).toString('base64url')
}

export function pageCookie(sessionId: string, secret: Buffer): string {
  const head = idBytes(sessionId)
  return PAGE_COOKIE_PREFIX + Buffer.concat([head, mac('page', head, secret)]).toString('base64url')
}

/** Null if the text does not have the format of a refresh token. */
export function parseRefreshToken(text: string): ClaimedCredential | null {
  return parse('refresh', REFRESH_TOKEN.exec(text)?.[1])
}

/** Null if the text does not have the format of a page cookie. */
export function parsePageCookie(text: string): ClaimedCredential | null {
  return parse('page', PAGE_COOKIE.exec(text)?.[1])
}

/** The stored form of an `Idempotency-Key`: the first 16 bytes of its SHA-256, enough to exclude collisions. */
export function retryKeyHash(retryKey: string): string {
  return Buffer.from(sha256(retryKey), 'base64url').subarray(0, 16).toString('base64url')
}

type MacLabel = 'refresh' | 'page'

function parse(label: MacLabel, text: string | undefined): ClaimedCredential | null {
  if (text === undefined) return null
  const bytes = Buffer.from(text, 'base64url')
  const head = bytes.subarray(0, -MAC_BYTES)
  const claimedMac = bytes.subarray(-MAC_BYTES)
  return {
    sessionId: idText(head.subarray(0, ID_BYTES)),
    counter: label === 'refresh' ? head.readUIntBE(ID_BYTES, COUNTER_BYTES) : 0,
    provenBy: secret => timingSafeEqual(claimedMac, mac(label, head, secret)),
  }
}

function mac(label: MacLabel, head: Buffer, secret: Buffer): Buffer {
  return hmac(secret, Buffer.concat([Buffer.from(`${label}\0`), head]))
}

function counterBytes(counter: number): Buffer {
  const bytes = Buffer.alloc(COUNTER_BYTES)
  bytes.writeUIntBE(counter, 0, COUNTER_BYTES)
  return bytes
}

function idBytes(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

function idText(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
