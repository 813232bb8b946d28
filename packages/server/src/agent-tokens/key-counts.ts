import type { Instant } from '../clock.ts'

/** Slots per window, so that memory per key does not depend on the limit. */
const SLOTS = 12
/** Maximum number of slots that count at once: those that began within the window, and the one before them. */
const RING = SLOTS + 1
/**
 * Array elements of a window before its slots: total, index of the oldest slot, number of slots, start of the newest.
 */
const TOTAL = 0
const HEAD = 1
const USED = 2
const BEGAN = 3
const HEADER = 4
/** Array elements per slot: its latest entry, its count. */
const WIDTH = 2
const WINDOW_WIDTH = HEADER + RING * WIDTH
/** Array elements of a record before its windows: the hash of its key. */
const HASH = 2
/** Length of the end of a UUID version 7 that holds 62 random bits; hashing the rest too would cost as much again. */
const RANDOM_SUFFIX_LENGTH = 18

/**
 * Sliding-window counters of up to `capacity` keys, for windows of the given lengths (ms), in one typed array: objects,
 * lists and a map of strings cost far more than the counting, in cache misses and garbage collection.
 *
 * Slots are 1/12 of the window. A slot counts until its latest entry leaves the window: never more than the limit
 * passes in any window, and a caller waits at most one slot longer than necessary. A key is identified by a 64-bit
 * hash of its id; ids are random and made by this service, so a collision among 50,000 keys has a chance below 1e-9.
 *
 * Instants are kept modulo 2^32 ms, so a record must not be read more than 24 days after it was last written.
 */
export class KeyCounts {
  readonly #lengths: readonly number[]
  readonly #capacity: number
  readonly #width: number
  /** Empty until the first key needs it. */
  #records = new Int32Array(0)
  /** Open addressing with linear probing, at most half full: record numbers from 1, 0 where empty. */
  #table = new Int32Array(1)
  #mask = 0
  #inserted = 0
  #moved = 0
  /** Hash of the key of the last call of `find`. */
  #low = 0
  #high = 0

  constructor(lengths: readonly number[], capacity: number) {
    this.#lengths = lengths
    this.#capacity = capacity
    this.#width = HASH + lengths.length * WINDOW_WIDTH
  }

  /** Keys with a record that was not moved to the next generation. */
  get size(): number {
    return this.#inserted - this.#moved
  }

  get isFull(): boolean {
    return this.#inserted === this.#capacity
  }

  clear(): void {
    if (this.#inserted > 0) this.#table.fill(0)
    this.#inserted = 0
    this.#moved = 0
  }

  /** Offset of the key's record; negative if it has none. */
  find(keyId: string): number {
    this.#hash(keyId)
    return (this.#table[this.#tableIndex()]! - 1) * this.#width
  }

  /** Adds a record for a key that has none, with the key's counts from `previous`. Must not be called when full. */
  insert(keyId: string, previous: KeyCounts): number {
    if (this.#records.length === 0) this.#allocate()
    this.#hash(keyId)
    const record = this.#inserted * this.#width
    const tableIndex = this.#tableIndex()
    const earlier = previous.find(keyId)
    if (earlier < 0) this.#records.fill(0, record, record + this.#width)
    else {
      this.#records.set(previous.#records.subarray(earlier, earlier + this.#width), record)
      previous.#moved++
    }
    this.#records[record] = this.#low
    this.#records[record + 1] = this.#high
    this.#table[tableIndex] = ++this.#inserted
    return record
  }

  /** The operating system allocates pages when they are first written, so few keys take little memory. */
  #allocate(): void {
    this.#records = new Int32Array(this.#capacity * this.#width)
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(2 * this.#capacity + 1)))
    this.#mask = this.#table.length - 1
  }

  /** Number of entries in the window now. */
  count(record: number, index: number, now: Instant): number {
    const numbers = this.#records
    const window = record + HASH + index * WINDOW_WIDTH
    while (numbers[window + USED]! > 0 && this.oldestAge(record, index, now) >= this.#lengths[index]!) {
      const head = numbers[window + HEAD]!
      numbers[window + TOTAL]! -= numbers[window + HEADER + head * WIDTH + 1]!
      numbers[window + HEAD] = head === RING - 1 ? 0 : head + 1
      numbers[window + USED]!--
    }
    return numbers[window + TOTAL]!
  }

  /** Age (ms) of the oldest slot's latest entry. The window must have entries. */
  oldestAge(record: number, index: number, now: Instant): number {
    const window = record + HASH + index * WINDOW_WIDTH
    return elapsedSince(this.#records[window + HEADER + this.#records[window + HEAD]! * WIDTH]!, now)
  }

  /** Counts one more entry. Must follow a call of `count`, which frees a slot. */
  add(record: number, index: number, now: Instant): void {
    const numbers = this.#records
    const window = record + HASH + index * WINDOW_WIDTH
    const usedSlots = numbers[window + USED]!
    numbers[window + TOTAL]!++
    const isNewest =
      usedSlots > 0 && elapsedSince(numbers[window + BEGAN]!, now) < this.#lengths[index]! / SLOTS
    const position = numbers[window + HEAD]! + usedSlots - (isNewest ? 1 : 0)
    const slot = window + HEADER + (position < RING ? position : position - RING) * WIDTH
    if (isNewest) {
      // A clock that steps back must not end earlier entries sooner.
      if (elapsedSince(numbers[slot]!, now) > 0) numbers[slot] = now
      numbers[slot + 1]!++
      return
    }
    numbers[window + USED] = usedSlots + 1
    numbers[window + BEGAN] = now
    numbers[slot] = now
    numbers[slot + 1] = 1
  }

  /** Table index of the key that was hashed last, or the empty index at which it is to be inserted. */
  #tableIndex(): number {
    const table = this.#table
    const records = this.#records
    let tableIndex = this.#low & this.#mask
    for (let number = table[tableIndex]!; number !== 0; number = table[tableIndex]!) {
      const record = (number - 1) * this.#width
      if (records[record] === this.#low && records[record + 1] === this.#high) break
      tableIndex = (tableIndex + 1) & this.#mask
    }
    return tableIndex
  }

  /** Two FNV-1a hashes in one pass, with different bases and factors. */
  #hash(text: string): void {
    let low = 0x811c9dc5 | 0
    let high = 0x9e3779b9 | 0
    for (let index = Math.max(0, text.length - RANDOM_SUFFIX_LENGTH); index < text.length; index++) {
      const code = text.charCodeAt(index)
      low = Math.imul(low ^ code, 0x01000193)
      high = Math.imul(high ^ code, 0x85ebca6b)
    }
    this.#low = low ^ (high >>> 15)
    this.#high = high
  }
}

/** Elapsed milliseconds; negative if the clock stepped back. An `Int32Array` keeps instants modulo 2^32. */
function elapsedSince(kept: number, now: Instant): number {
  return ((now | 0) - kept) | 0
}
