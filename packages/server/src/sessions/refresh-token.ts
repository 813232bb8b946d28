import { timingSafeEqual } from 'node:crypto'
import { hmac, sha256 } from '../secrets.ts'

/**
 * The two credentials that a session can have. Each is the session's id, (for a refresh token) its number, and
 * a MAC under a secret of that session's own. So nothing that is stored can be presented, a forged id touches
 * nobody's session, and the successor of a token can be made again for an honest retry.
 *
 * They differ in prefix, length and in the label under the MAC: neither is ever taken for the other.
 */
export const REFRESH_TOKEN_PREFIX = 'svr_'
export const PAGE_COOKIE_PREFIX = 'svp_'
export const SESSION_SECRET_BYTES = 32

const ID_BYTES = 16
const COUNTER_BYTES = 6
const MAC_BYTES = 32

// 54 and 48 bytes are whole groups of three: every text of the right length is some token's only spelling.
const REFRESH_TOKEN = /^svr_([A-Za-z0-9_-]{72})$/
const PAGE_COOKIE = /^svp_([A-Za-z0-9_-]{64})$/

/** What a credential claims. Nothing of it is true before `provenBy` says so. */
export interface ClaimedCredential {
  sessionId: string
  /** The number of a refresh token; 0 for a cookie. */
  counter: number
  /** Whether the session's secret made it. Constant time. */
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

/** Null for what cannot be a refresh token. */
export function parseRefreshToken(text: string): ClaimedCredential | null {
  return parse('refresh', REFRESH_TOKEN.exec(text)?.[1])
}

/** Null for what cannot be a page's cookie. */
export function parsePageCookie(text: string): ClaimedCredential | null {
  return parse('page', PAGE_COOKIE.exec(text)?.[1])
}

/** How an `Idempotency-Key` is remembered: as much of its SHA-256 as makes a collision out of reach. */
export function retryKeyHash(retryKey: string): string {
  return Buffer.from(sha256(retryKey), 'base64url').subarray(0, 16).toString('base64url')
}

type Label = 'refresh' | 'page'

function parse(label: Label, text: string | undefined): ClaimedCredential | null {
  if (text === undefined) return null
  const bytes = Buffer.from(text, 'base64url')
  const head = bytes.subarray(0, -MAC_BYTES)
  const claimed = bytes.subarray(-MAC_BYTES)
  return {
    sessionId: idText(head.subarray(0, ID_BYTES)),
    counter: label === 'refresh' ? head.readUIntBE(ID_BYTES, COUNTER_BYTES) : 0,
    provenBy: secret => timingSafeEqual(claimed, mac(label, head, secret)),
  }
}

function mac(label: Label, head: Buffer, secret: Buffer): Buffer {
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
