/**
 * How many counters, from the highest received one downwards, may still be accepted. Events arrive out of order, since
 * transactions seal events before they commit.
 */
const WINDOW_SIZE = 16_384

/** Replay protection for one sender: a sliding window of received counters, as in RFC 4303 section 3.4.3. */
export class SeenCounters {
  #highest = -1
  #bits = new Uint32Array(WINDOW_SIZE / 32)

  /** Returns false for a counter that was received already, or is older than the window. */
  isNew(counter: number): boolean {
    if (counter > this.#highest) return true
    return this.#highest - counter < WINDOW_SIZE && (this.#bits[this.#word(counter)]! & bitOf(counter)) === 0
  }

  add(counter: number): void {
    if (counter > this.#highest) this.#slideTo(counter)
    this.#bits[this.#word(counter)]! |= bitOf(counter)
  }

  #slideTo(counter: number): void {
    if (counter - this.#highest >= WINDOW_SIZE) this.#bits.fill(0)
    else
      for (let each = this.#highest + 1; each <= counter; each++)
        this.#bits[this.#word(each)]! &= ~bitOf(each)
    this.#highest = counter
  }

  #word(counter: number): number {
    return (counter % WINDOW_SIZE) >>> 5
  }
}

function bitOf(counter: number): number {
  return 1 << (counter % 32)
}
