import type { Clock, Instant } from './clock.ts'
import { longestOf, type RateWindow, type Wait, WINDOW_LENGTHS, waitFor } from './rate-windows.ts'
import { SlidingCount } from './sliding-count.ts'

/** Slots per window, so that memory per name does not depend on the limit. */
const SLOTS = 12

export interface KeyedWindows {
  /** Counts one event of this name; or, if a window is full, counts nothing and returns the wait. */
  take(name: string): Wait | null
  /** The wait of this name if a window is full; counts nothing. */
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
      windows.forEach(({ limit }, index) => {
        isFull = counts[index]!.total(now) >= limit || isFull
      })
      if (isFull) return waitOf(counts, now)
      for (const count of counts) count.add(now)
      return null
    },
    wait(name) {
      const now = clock.now()
      const counts = current.get(name) ?? previous.get(name)
      return counts ? waitOf(counts, now) : null
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
    const counts =
      previous.get(name) ?? windows.map(({ window }) => new SlidingCount(WINDOW_LENGTHS[window], SLOTS))
    previous.delete(name)
    current.set(name, counts)
    return counts
  }

  function waitOf(counts: readonly SlidingCount[], now: Instant): Wait | null {
    const waits = windows.map((window, index) => {
      const count = counts[index]!
      return count.total(now) >= window.limit ? waitFor(window, count.oldest(now), now) : null
    })
    return longestOf(waits)
  }
}
