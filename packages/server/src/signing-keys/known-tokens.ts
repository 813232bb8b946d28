import { timingSafeEqual } from 'node:crypto'

const SLOTS = 8192
/** Longer tokens (with very long issuers or scopes) are not cached. */
const SLOT_BYTES = 1024
/** Base-2 logarithm of the number of slots in a page of memory. A page has 64 KB and is allocated as a whole. */
const PAGE_BITS = 6
const PAGE_SLOTS = 2 ** PAGE_BITS

/**
 * Cache of tokens whose signature this process recently made or verified, since verifying is the most expensive step
 * when an agent connects (docs/decisions/0011-hot-path.md).
 *
 * A direct-mapped table of fixed size outside the JavaScript heap; a new token overwrites the slot's old one. Ten
 * thousand strings a second on the heap would reach the old generation, whose collection pauses the process. At most
 * 8 MB, allocated in pages as slots fill.
 */
export class KnownTokens {
  #pages = new Array<Buffer | undefined>(SLOTS / PAGE_SLOTS).fill(undefined)
  #lengths = new Uint16Array(SLOTS)

  /** Whether exactly this token was added and not yet overwritten. The caller checks its times. */
  has(token: string): boolean {
    const slot = slotOf(token)
    const page = this.#pages[pageOf(slot)]
    if (page === undefined) return false
    const bytes = Buffer.from(token)
    const offset = offsetOf(slot)
    return (
      bytes.length > 0 && // an empty slot has length 0
      this.#lengths[slot] === bytes.length &&
      timingSafeEqual(bytes, page.subarray(offset, offset + bytes.length))
    )
  }

  add(token: string): void {
    if (token.length > SLOT_BYTES) return
    const slot = slotOf(token)
    this.#pages[pageOf(slot)] ??= Buffer.alloc(PAGE_SLOTS * SLOT_BYTES)
    this.#lengths[slot] = this.#pages[pageOf(slot)]!.write(token, offsetOf(slot), 'latin1')
  }
}

function pageOf(slot: number): number {
  return slot >>> PAGE_BITS
}

/** Offset of a slot in its page. */
function offsetOf(slot: number): number {
  return (slot & (PAGE_SLOTS - 1)) * SLOT_BYTES
}

/** Hashes six characters of the signature, which are uniformly distributed. */
function slotOf(token: string): number {
  let hash = 0
  for (let from = token.length - 40; from < token.length - 34; from++)
    hash = hash * 31 + token.charCodeAt(from)
  return hash & (SLOTS - 1)
}
