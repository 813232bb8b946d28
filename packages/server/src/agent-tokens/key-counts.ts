import type { Instant } from '../clock.ts'

/** Slots per window. Entries are counted by slot, so that the memory for a key does not depend on the limit. */
const SLOTS = 12
/** Maximum number of slots that count at once: those that began within the window, and the one before them. */
const RING_SIZE = SLOTS + 1
/**
 * The array elements of a window before its slots: total count, index of the oldest slot, number of slots in use, and
 * the instant at which the newest slot began.
 */
const TOTAL_OFFSET = 0
const OLDEST_SLOT_OFFSET = 1
const SLOT_COUNT_OFFSET = 2
const NEWEST_START_OFFSET = 3
const HEADER_WIDTH = 4
/** Array elements of a slot: the instant of its latest entry, and its count. */
const SLOT_WIDTH = 2
const WINDOW_WIDTH = HEADER_WIDTH + RING_SIZE * SLOT_WIDTH
/** Array elements of a record before its windows: the hash of its key. */
const HASH_WIDTH = 2
/** The last 18 characters of a UUID version 7 hold 62 random bits; hashing all 36 would take twice as long. */
const RANDOM_SUFFIX_LENGTH = 18

/**
 * Sliding-window counters of up to `capacity` keys, for windows of the given lengths (ms), in one typed array: with
 * objects, lists and a map of strings, cache misses and garbage collection would cost far more than the counting.
 *
 * A slot lasts 1/12 of the window, and counts until its latest entry leaves the window. So a limit on these counts is
 * never exceeded in any window, and a caller waits at most one slot longer than necessary. A key is identified by a
 * 64-bit hash of its id; ids are random and made by this service, so a collision among 50,000 keys has a chance below
 * 1e-9.
 *
 * Instants are kept modulo 2^32 ms, so a record must not be read more than 24 days after it was last written.
 */
export class KeyCounts {
  readonly #lengths: readonly number[]
  readonly #capacity: number
  readonly #width: number
  /** Empty until the first key is inserted. */
  #records = new Int32Array(0)
  /** A hash table with linear probing, at most half full. An element is a record number from 1, or 0 if it is empty. */
  #table = new Int32Array(1)
  #mask = 0
  #inserted = 0
  #moved = 0
  /** The two halves of the key's hash that `#hash` computed last. */
  #low = 0
  #high = 0

  constructor(lengths: readonly number[], capacity: number) {
    this.#lengths = lengths
    this.#capacity = capacity
    this.#width = HASH_WIDTH + lengths.length * WINDOW_WIDTH
  }

  /** Number of keys, without those that newer counters took over by `insert` with these counters as `previous`. */
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

  /**
   * Adds a record for a key that has none, with the key's counts from `previous`, or zeros if it has none there either.
   * Must not be called when full.
   */
  insert(keyId: string, previous: KeyCounts): number {
    if (this.#records.length === 0) this.#allocate()
    this.#hash(keyId)
    const record = this.#inserted * this.#width
    const tableIndex = this.#tableIndex()
    const previousRecord = previous.find(keyId)
    if (previousRecord < 0) this.#records.fill(0, record, record + this.#width)
    else {
      this.#records.set(previous.#records.subarray(previousRecord, previousRecord + this.#width), record)
      previous.#moved++
    }
    this.#records[record] = this.#low
    this.#records[record + 1] = this.#high
    this.#table[tableIndex] = ++this.#inserted
    return record
  }

  /** Takes memory only as keys are inserted: the operating system provides pages when they are first written. */
  #allocate(): void {
    this.#records = new Int32Array(this.#capacity * this.#width)
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(2 * this.#capacity + 1)))
    this.#mask = this.#table.length - 1
  }

  /** Number of entries in the window now. */
  count(record: number, index: number, now: Instant): number {
    const records = this.#records
    const window = record + HASH_WIDTH + index * WINDOW_WIDTH
    while (
      records[window + SLOT_COUNT_OFFSET]! > 0 &&
      this.oldestAge(record, index, now) >= this.#lengths[index]!
    ) {
      const oldestSlot = records[window + OLDEST_SLOT_OFFSET]!
      records[window + TOTAL_OFFSET]! -= records[window + HEADER_WIDTH + oldestSlot * SLOT_WIDTH + 1]!
      records[window + OLDEST_SLOT_OFFSET] = oldestSlot === RING_SIZE - 1 ? 0 : oldestSlot + 1
      records[window + SLOT_COUNT_OFFSET]!--
    }
    return records[window + TOTAL_OFFSET]!
  }

  /** Age (ms) of the oldest slot's latest entry. The window must have entries. */
  oldestAge(record: number, index: number, now: Instant): number {
    const window = record + HASH_WIDTH + index * WINDOW_WIDTH
    return elapsedSince(
      this.#records[window + HEADER_WIDTH + this.#records[window + OLDEST_SLOT_OFFSET]! * SLOT_WIDTH]!,
      now,
    )
  }

  /** Counts one more entry. Call `count` before, which drops outdated slots: otherwise no slot might be free. */
  add(record: number, index: number, now: Instant): void {
    const records = this.#records
    const window = record + HASH_WIDTH + index * WINDOW_WIDTH
    const usedSlots = records[window + SLOT_COUNT_OFFSET]!
    records[window + TOTAL_OFFSET]!++
    const isNewestSlotOpen =
      usedSlots > 0 &&
      elapsedSince(records[window + NEWEST_START_OFFSET]!, now) < this.#lengths[index]! / SLOTS
    const position = records[window + OLDEST_SLOT_OFFSET]! + usedSlots - (isNewestSlotOpen ? 1 : 0)
    const slot = window + HEADER_WIDTH + (position < RING_SIZE ? position : position - RING_SIZE) * SLOT_WIDTH
    if (isNewestSlotOpen) {
      // A clock that steps back must not end earlier entries sooner.
      if (elapsedSince(records[slot]!, now) > 0) records[slot] = now
      records[slot + 1]!++
      return
    }
    records[window + SLOT_COUNT_OFFSET] = usedSlots + 1
    records[window + NEWEST_START_OFFSET] = now
    records[slot] = now
    records[slot + 1] = 1
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
function elapsedSince(storedInstant: number, now: Instant): number {
  return ((now | 0) - storedInstant) | 0
}
