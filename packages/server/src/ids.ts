import { randomFillSync } from 'node:crypto'
import type { Instant } from './clock.ts'

/** Random bytes for the next ids, since requesting those of each id separately would be slower. */
const randomPool = Buffer.alloc(1600)
let usedBytes = randomPool.length

/** A UUID version 7 (RFC 9562): sorts by time, 74 random bits. Call it before the transaction that stores the id. */
export function newId(now: Instant): string {
  if (usedBytes + 10 > randomPool.length) {
    randomFillSync(randomPool)
    usedBytes = 0
  }
  const random = randomPool.toString('hex', usedBytes, usedBytes + 10)
  usedBytes += 10
  return idOf(now, random)
}

/** The instant of the latest id of `newOrderedId`, and the number of earlier ids with the same instant. */
let lastInstant: Instant = 0
let idsOfInstant = 0

/** The largest number in the 12 bits after the time. */
const MAX_COUNTER = 0xfff

/**
 * As `newId`, but ids of the same millisecond also sort by their order of creation: a counter replaces 12 of the random
 * bits (RFC 9562, section 6.2, method 1). This holds for the ids of one process, not between processes.
 */
export function newOrderedId(now: Instant): string {
  idsOfInstant = now === lastInstant ? Math.min(idsOfInstant + 1, MAX_COUNTER) : 0
  lastInstant = now
  const id = newId(now)
  return `${id.slice(0, 15)}${idsOfInstant.toString(16).padStart(3, '0')}${id.slice(18)}`
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
