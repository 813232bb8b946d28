import { randomFillSync } from 'node:crypto'
import type { Instant } from './clock.ts'

const pool = Buffer.alloc(1600)
let used = pool.length

/** A UUID version 7 (RFC 9562): sorts by time, 74 random bits. Made before the transaction that stores it. */
export function newId(now: Instant): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const time = now.toString(16).padStart(12, '0')
  const random = pool.toString('hex', used, used + 10)
  used += 10
  const variant = '89ab'[Number.parseInt(random[3]!, 16) & 3]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(8)}`
}

/** The instant that `newId` was given. */
export function instantOf(id: string): Instant {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The one stored spelling of an identifier, or null for what is no UUID. */
export function parseId(text: string): string | null {
  return UUID.test(text) ? text.toLowerCase() : null
}
