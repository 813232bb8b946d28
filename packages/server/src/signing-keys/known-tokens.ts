import { timingSafeEqual } from 'node:crypto'

const SLOTS = 8192
/** Longer tokens (by very long issuers or scopes) are not kept. */
const SLOT_BYTES = 1024

/**
 * Tokens whose signature this process made or verified lately, so that it need not be made again when they come
 * back: it is the dearest step of a connect (decision 11).
 *
 * A table of fixed size outside the heap, where a newcomer takes the place of whoever had it: strings by the ten
 * thousand a second would grow old, and collecting them holds up everyone. Its pages take memory as they fill,
 * 8 MB at most.
 */
export class KnownTokens {
  #bytes = Buffer.alloc(SLOTS * SLOT_BYTES)
  #lengths = new Uint16Array(SLOTS)

  /** Whether this very token, byte for byte, was added and not yet displaced. Its times are the caller's to look at. */
  has(token: string): boolean {
    const slot = slotOf(token)
    const bytes = Buffer.from(token)
    const at = slot * SLOT_BYTES
    return (
      bytes.length > 0 && // an empty place has the length 0
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

/** By some characters of the signature, which are as good as random. */
function slotOf(token: string): number {
  let hash = 0
  for (let from = token.length - 40; from < token.length - 34; from++)
    hash = hash * 31 + token.charCodeAt(from)
  return hash & (SLOTS - 1)
}
