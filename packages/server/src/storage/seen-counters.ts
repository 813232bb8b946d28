/** Events of one sender that may overtake each other: transactions seal before they commit, and commit in any order. */
const WINDOW = 16_384

/** Which counters of one sender were received already: a sliding window, as in RFC 4303, section 3.4.3. */
export class SeenCounters {
  #highest = -1
  #bits = new Uint32Array(WINDOW / 32)

  /** False for one that was received, and for one so far behind the highest that this is not known any more. */
  isNew(counter: number): boolean {
    if (counter > this.#highest) return true
    return this.#highest - counter < WINDOW && (this.#bits[this.#word(counter)]! & bitOf(counter)) === 0
  }

  add(counter: number): void {
    if (counter > this.#highest) this.#slideTo(counter)
    this.#bits[this.#word(counter)]! |= bitOf(counter)
  }

  #slideTo(counter: number): void {
    if (counter - this.#highest >= WINDOW) this.#bits.fill(0)
    else
      for (let each = this.#highest + 1; each <= counter; each++)
        this.#bits[this.#word(each)]! &= ~bitOf(each)
    this.#highest = counter
  }

  #word(counter: number): number {
    return (counter % WINDOW) >>> 5
  }
}

function bitOf(counter: number): number {
  return 1 << (counter % 32)
}
