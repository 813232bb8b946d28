import type { Instant } from './clock.ts'

/** Array elements per slot. */
const SLOT_WIDTH = 3

/** A number of entries, with the time of the latest one. */
export type TimedCount = readonly [at: Instant, count: number]

/**
 * Counts entries in a sliding window, in slots of 1/`slots` of its length, so that memory does not depend on the number
 * of entries. A slot counts until its latest entry leaves the window, so no entry is missed, and an entry counts for at
 * most the length of a slot too long.
 */
export class SlidingCount {
  readonly #length: number
  readonly #slots: number
  #total = 0
  /** Flat triples, one per slot, oldest first: start of the slot, time of its latest entry, number of its entries. */
  readonly #triples: number[] = []
  /** Index in `#triples` of the oldest slot that still counts. */
  #head = 0

  /** @param length of the window, in milliseconds */
  constructor(length: number, slots: number) {
    this.#length = length
    this.#slots = slots
  }

  /** Number of entries in the window. */
  total(now: Instant): number {
    const triples = this.#triples
    while (this.#head < triples.length && triples[this.#head + 1]! <= now - this.#length) {
      this.#total -= triples[this.#head + 2]!
      this.#head += SLOT_WIDTH
    }
    return this.#total
  }

  /** Time of the latest entry of the oldest slot that counts; null if there is none. */
  oldest(now: Instant): Instant | null {
    return this.total(now) > 0 ? this.#triples[this.#head + 1]! : null
  }

  add(now: Instant, count = 1): void {
    const triples = this.#triples
    const lastSlot = triples.length - SLOT_WIDTH
    this.#total += count
    if (lastSlot >= this.#head && now - triples[lastSlot]! < this.#length / this.#slots) {
      triples[lastSlot + 1] = Math.max(triples[lastSlot + 1]!, now)
      triples[lastSlot + 2]! += count
      return
    }
    // Expired slots are removed in bulk, once there are as many as a window has.
    if (this.#head >= this.#slots * SLOT_WIDTH) {
      triples.splice(0, this.#head)
      this.#head = 0
    }
    triples.push(now, now, count)
  }

  /** For each slot that counts, oldest first: the time of its latest entry, and the number of its entries. */
  history(now: Instant): TimedCount[] {
    this.total(now)
    const entries: TimedCount[] = []
    for (let index = this.#head; index < this.#triples.length; index += SLOT_WIDTH)
      entries.push([this.#triples[index + 1]!, this.#triples[index + 2]!])
    return entries
  }
}
