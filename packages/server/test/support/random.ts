/** A seeded random number generator (mulberry32), so that a run can be repeated. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** An integer from 0 to `limit`, exclusive. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.between(0, 255)))
  }
}
