import type { Clock, Instant } from './clock.ts'
import { longestOf, type RateWindow, type Wait, WINDOW_LENGTHS, waitFor } from './rate-windows.ts'

/** Slots per window, so that memory per name does not depend on the limit. */
const SLOTS = 12
/** Array elements per slot. */
const WIDTH = 3

export interface KeyedWindows {
  /** Counts one event of this name; or, if a window is full, counts nothing and returns the wait. */
  take(name: string): Wait | null
  /** The wait of this name, if a window is full; counts nothing. */
  wait(name: string): Wait | null
  /** Names with counts in memory. */
  readonly size: number
}

/**
 * Limits how often something happens by name, in sliding windows. The counts are per node and in memory: they protect
 * a node from one misbehaving client and need not be exact across nodes.
 *
 * Two generations of counts: current and previous. A name moves to the current one when it is used. When the longest
 * window has passed, or the current one holds half of the maximum, it becomes the previous one, and names that were
 * only in the old previous generation are evicted.
 */
export function createKeyedWindows({
  clock,
  windows,
  maxNames,
}: {
  clock: Pick<Clock, 'now'>
  windows: readonly RateWindow[]
  maxNames: number
}): KeyedWindows {
  const longest = Math.max(0, ...windows.map(({ window }) => WINDOW_LENGTHS[window]))
  let current = new Map<string, SlidingCount[]>()
  let previous = new Map<string, SlidingCount[]>()
  let currentSince = clock.now()

  return {
    take(name) {
      const now = clock.now()
      const counts = countsOf(name, now)
      let isFull = false
      for (const count of counts) isFull = count.isFull(now) || isFull
      if (isFull) return longestOf(counts.map(count => count.wait(now)))
      for (const count of counts) count.add(now)
      return null
    },
    wait(name) {
      const now = clock.now()
      const counts = current.get(name) ?? previous.get(name) ?? []
      return longestOf(counts.map(count => count.wait(now)))
    },
    get size() {
      return current.size + previous.size
    },
  }

  function countsOf(name: string, now: Instant): SlidingCount[] {
    const known = current.get(name)
    if (known && now - currentSince < longest) return known
    if (now - currentSince >= longest || current.size >= maxNames / 2) {
      previous = current
      current = new Map()
      currentSince = now
    }
    const counts = previous.get(name) ?? windows.map(window => new SlidingCount(window))
    previous.delete(name)
    current.set(name, counts)
    return counts
  }
}

/**
 * A sliding-window counter with slots of 1/12 of the window. A slot counts until its latest entry leaves the window:
 * never more than the limit passes in any window, and a caller waits at most one slot longer than necessary.
 */
class SlidingCount {
  readonly #window: RateWindow
  readonly #length: number
  #total = 0
  /** Flat triples, oldest first: start of the slot, its latest entry, its count. */
  readonly #slots: number[] = []
  /** Index of the oldest slot that still counts. */
  #head = 0

  constructor(window: RateWindow) {
    this.#window = window
    this.#length = WINDOW_LENGTHS[window.window]
  }

  isFull(now: Instant): boolean {
    const slots = this.#slots
    while (this.#head < slots.length && slots[this.#head + 1]! <= now - this.#length) {
      this.#total -= slots[this.#head + 2]!
      this.#head += WIDTH
    }
    return this.#total >= this.#window.limit
  }

  wait(now: Instant): Wait | null {
    return this.isFull(now) ? waitFor(this.#window, this.#slots[this.#head + 1]!, now) : null
  }

  add(now: Instant): void {
    const slots = this.#slots
    const last = slots.length - WIDTH
    this.#total++
    if (last >= this.#head && now - slots[last]! < this.#length / SLOTS) {
      slots[last + 1] = Math.max(slots[last + 1]!, now)
      slots[last + 2]!++
      return
    }
    // Drop expired slots in bulk, once they are as many as the slots of a window.
    if (this.#head >= SLOTS * WIDTH) {
      slots.splice(0, this.#head)
      this.#head = 0
    }
    slots.push(now, now, 1)
  }
}
