import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { longestOf, type RateWindow, type Wait, WINDOW_LENGTHS, waitFor } from '../rate-windows.ts'

/**
 * Keys remembered at most. Beyond it those are forgotten that were used longest ago, which no key can bring about for
 * itself: whoever wants one forgotten spends at least half as many exchanges of other keys, each under its own limit.
 */
export const MAX_REMEMBERED_KEYS = 50_000
/** Exchanges of a window are counted in so many slots, so that a key takes the same memory whatever the limit is. */
const SLOTS = 12
/** Numbers of one slot. */
const WIDTH = 3

export interface ExchangeLimits {
  /** Counts an exchange that is about to succeed. What is refused is not counted. @throws KeywayError `rate_limited` */
  take(keyId: string): void
  /** Keys remembered now. */
  readonly size: number
}

/**
 * How often one key may be exchanged on this node, in sliding windows. Counts are this node's own and in memory: they
 * keep one client that went wrong from taking the node, and guess at nothing that must be exact over all nodes.
 *
 * Two generations of counts: one that is being filled, and the one before. A key moves to the first when it is used. When
 * the longest window has passed, or the first is half of all, it becomes the second, and what only that had is forgotten.
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
  let filling = new Map<string, SlidingCount[]>()
  let before = new Map<string, SlidingCount[]>()
  let fillingSince = clock.now()

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
      return filling.size + before.size
    },
  }

  function countsOf(keyId: string, now: Instant): SlidingCount[] {
    const known = filling.get(keyId)
    if (known && now - fillingSince < longest) return known
    if (now - fillingSince >= longest || filling.size >= maxKeys / 2) {
      before = filling
      filling = new Map()
      fillingSince = now
    }
    const counts = before.get(keyId) ?? windows.map(window => new SlidingCount(window))
    before.delete(keyId)
    filling.set(keyId, counts)
    return counts
  }
}

/**
 * What happened within a window, in slots of a twelfth of it. A slot counts until its latest entry leaves the window:
 * never more than the limit passes in any window, and a steady stream waits at most a slot longer than it had to.
 */
class SlidingCount {
  readonly #window: RateWindow
  readonly #length: number
  #total = 0
  /** Of each slot, the oldest first: when it began, when its latest entry was, how many there are. */
  readonly #slots: number[] = []
  /** Where the oldest slot begins that still counts. */
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
    // What has left the window goes when it is as much as can stay.
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
