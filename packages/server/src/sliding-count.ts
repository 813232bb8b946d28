import type { Instant } from './clock.ts'

/** Array elements per slot. */
const WIDTH = 3

/** A number of entries, with the time of the latest. */
export type CountedAt = readonly [at: Instant, count: number]

/**
 * Counts entries in a sliding window, in slots of 1/`slots` of its length, so that memory does not depend on the number
 * of entries. A slot counts until its latest entry leaves the window: no entry is missed, and one counts at most a
 * slot's length too long.
 */
export class SlidingCount {
  readonly #length: number
  readonly #slots: number
  #total = 0
  /** Flat triples, oldest first: start of the slot, its latest entry, its count. */
  readonly #triples: number[] = []
  /** Index of the oldest slot that still counts. */
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
      this.#head += WIDTH
    }
    return this.#total
  }

  /** Time of the latest entry of the oldest slot that counts; null if there is none. */
  oldest(now: Instant): Instant | null {
    return this.total(now) > 0 ? this.#triples[this.#head + 1]! : null
  }

  add(now: Instant, count = 1): void {
    const triples = this.#triples
    const last = triples.length - WIDTH
    this.#total += count
    if (last >= this.#head && now - triples[last]! < this.#length / this.#slots) {
      triples[last + 1] = Math.max(triples[last + 1]!, now)
      triples[last + 2]! += count
      return
    }
    // Remove expired slots in bulk, once they are as many as a window has.
    if (this.#head >= this.#slots * WIDTH) {
      triples.splice(0, this.#head)
      this.#head = 0
    }
    triples.push(now, now, count)
  }

  /** The entries that count, oldest first. */
  history(now: Instant): CountedAt[] {
    this.total(now)
    const counted: CountedAt[] = []
    for (let index = this.#head; index < this.#triples.length; index += WIDTH)
      counted.push([this.#triples[index + 1]!, this.#triples[index + 2]!])
    return counted
  }
}
