import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { longestOf, type RateWindow, type Wait, WINDOW_LENGTHS, waitFor } from '../rate-windows.ts'

/**
 * Maximum number of keys with counts in memory. Beyond it the least recently used are evicted. Evicting a key on
 * purpose takes exchanges of at least half as many other keys, each of them limited itself.
 */
export const MAX_REMEMBERED_KEYS = 50_000
/** Slots per window, so that memory per key does not depend on the limit. */
const SLOTS = 12
/** Array elements per slot. */
const WIDTH = 3

export interface ExchangeLimits {
  /** Counts an exchange that is about to succeed; refused ones do not count. @throws KeywayError `rate_limited` */
  take(keyId: string): void
  /** Keys with counts in memory. */
  readonly size: number
}

/**
 * Limits how often one key may be exchanged on this node, in sliding windows. The counts are per node and in memory:
 * they protect a node from one misbehaving client and need not be exact across nodes.
 *
 * Two generations of counts: current and previous. A key moves to the current one when it is used. When the longest
 * window has passed, or the current one holds half of the maximum, it becomes the previous one, and keys that were
 * only in the old previous generation are evicted.
 */
export function createExchangeLimits({
  clock,
  windows,
  maxKeys = MAX_REMEMBERED_KEYS,
}: {
  clock: Pick<Clock, 'now'>
  windows: readonly RateWindow[]
  maxKeys?: number
}): ExchangeLimits {
  const longest = Math.max(0, ...windows.map(({ window }) => WINDOW_LENGTHS[window]))
  let current = new Map<string, SlidingCount[]>()
  let previous = new Map<string, SlidingCount[]>()
  let currentSince = clock.now()

  return {
    take(keyId) {
      const now = clock.now()
      const counts = countsOf(keyId, now)
      let isFull = false
      for (const count of counts) isFull = count.isFull(now) || isFull
      if (isFull) throw rateLimited(longestOf(counts.map(count => count.wait(now)))!)
      for (const count of counts) count.add(now)
    },
    get size() {
      return current.size + previous.size
    },
  }

  function countsOf(keyId: string, now: Instant): SlidingCount[] {
    const known = current.get(keyId)
    if (known && now - currentSince < longest) return known
    if (now - currentSince >= longest || current.size >= maxKeys / 2) {
      previous = current
      current = new Map()
      currentSince = now
    }
    const counts = previous.get(keyId) ?? windows.map(window => new SlidingCount(window))
    previous.delete(keyId)
    current.set(keyId, counts)
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

function rateLimited({ retryAfter, window }: Wait): KeywayError {
  const detail = `This key was exchanged too often within this ${window}. A token works for 15 minutes: keep it. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, { retryAfter, window, setting: 'KEYWAY_EXCHANGE_LIMITS' })
}
