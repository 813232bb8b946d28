import { randomFillSync } from 'node:crypto'
import type { Instant } from './clock.ts'

const pool = Buffer.alloc(1600)
let used = pool.length

/** A UUID version 7 (RFC 9562): sorts by time, 74 random bits. Call it before the transaction that stores it. */
export function newId(now: Instant): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.toString('hex', used, used + 10)
  used += 10
  return idOf(now, random)
}

/** The last instant of `newOrderedId`, and the number of earlier ids of that instant. */
let last: Instant = 0
let earlier = 0

/** The largest number in the 12 bits after the time. */
const MAX_COUNTER = 0xfff

/**
 * As `newId`, and sorts by the order of creation within a millisecond, too: a counter replaces 12 of the random bits
 * (RFC 9562, section 6.2, method 1). Of several processes each keeps its own order.
 */
export function newOrderedId(now: Instant): string {
  earlier = now === last ? Math.min(earlier + 1, MAX_COUNTER) : 0
  last = now
  const id = newId(now)
  return `${id.slice(0, 15)}${earlier.toString(16).padStart(3, '0')}${id.slice(18)}`
}

/** The UUID of this instant whose other bits are taken from a hexadecimal text of at least 20 digits. */
export function idOf(now: Instant, hex: string): string {
  const time = now.toString(16).padStart(12, '0')
  const random = hex.slice(0, 20)
  const variant = '89ab'[Number.parseInt(random[3]!, 16) & 3]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(8)}`
}

/** The instant at which `newId` created the id. */
export function instantOf(id: string): Instant {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The canonical (lower-case) form of a UUID; null for anything else. */
export function parseId(text: string): string | null {
  return UUID.test(text) ? text.toLowerCase() : null
}
