import { timingSafeEqual } from 'node:crypto'

const SLOTS = 8192
/** Longer tokens (with very long issuers or scopes) are not cached. */
const SLOT_BYTES = 1024

/**
 * Cache of tokens whose signature this process recently made or verified, since verifying is the most expensive step
 * of a connect (decision 11).
 *
 * A direct-mapped table of fixed size outside the JavaScript heap; a new token overwrites the slot's old one. Ten
 * thousand strings a second on the heap would reach the old generation, whose collection pauses the process. At most
 * 8 MB, committed as slots fill.
 */
export class KnownTokens {
  #bytes = Buffer.alloc(SLOTS * SLOT_BYTES)
  #lengths = new Uint16Array(SLOTS)

  /** Whether exactly this token was added and not yet overwritten. The caller checks its times. */
  has(token: string): boolean {
    const slot = slotOf(token)
    const bytes = Buffer.from(token)
    const at = slot * SLOT_BYTES
    return (
      bytes.length > 0 && // an empty slot has length 0
      this.#lengths[slot] === bytes.length &&
      timingSafeEqual(bytes, this.#bytes.subarray(at, at + bytes.length))
    )
  }

  add(token: string): void {
    if (token.length > SLOT_BYTES) return
    const slot = slotOf(token)
    this.#lengths[slot] = this.#bytes.write(token, slot * SLOT_BYTES, 'latin1')
  }
}

/** Hashes six characters of the signature, which are uniformly distributed. */
function slotOf(token: string): number {
  let hash = 0
  for (let from = token.length - 40; from < token.length - 34; from++)
    hash = hash * 31 + token.charCodeAt(from)
  return hash & (SLOTS - 1)
}
