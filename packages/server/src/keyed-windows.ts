import type { Clock, Instant } from './clock.ts'
import { longestOf, type RateWindow, type Wait, WINDOW_LENGTHS, windowWait } from './rate-windows.ts'
import { SlidingCount } from './sliding-count.ts'

/** Number of slots in which a window is counted, so that memory per name does not depend on the limit. */
const SLOTS = 12

export interface KeyedWindows {
  /** Counts one event of this name; or, if a window is full, counts nothing and returns the wait. */
  count(name: string): Wait | null
  /** The wait for this name if a window is full; counts nothing. */
  wait(name: string): Wait | null
  /** Number of names with counts in memory. */
  readonly size: number
}

/**
 * Limits how many events of one name, such as a network or a user id, may happen in each sliding window. The counts are
 * per node and in memory: they protect a node from one misbehaving client and need not be exact across nodes.
 *
 * There are two generations of counts, current and previous. A name moves to the current generation when it is used.
 * When the longest window has passed, or the current generation has half of the maximum number of names, it becomes the
 * previous one; names that were only in the old previous generation are thereby evicted.
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
  const longestWindow = Math.max(0, ...windows.map(({ window }) => WINDOW_LENGTHS[window]))
  let currentCounts = new Map<string, SlidingCount[]>()
  let previousCounts = new Map<string, SlidingCount[]>()
  let currentGenerationStartedAt = clock.now()

  return {
    count(name) {
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
      const counts = currentCounts.get(name) ?? previousCounts.get(name)
      return counts ? waitOf(counts, now) : null
    },
    get size() {
      return currentCounts.size + previousCounts.size
    },
  }

  function countsOf(name: string, now: Instant): SlidingCount[] {
    const slidingCounts = currentCounts.get(name)
    if (slidingCounts && now - currentGenerationStartedAt < longestWindow) return slidingCounts
    if (now - currentGenerationStartedAt >= longestWindow || currentCounts.size >= maxNames / 2) {
      previousCounts = currentCounts
      currentCounts = new Map()
      currentGenerationStartedAt = now
    }
    const counts =
      previousCounts.get(name) ?? windows.map(({ window }) => new SlidingCount(WINDOW_LENGTHS[window], SLOTS))
    previousCounts.delete(name)
    currentCounts.set(name, counts)
    return counts
  }

  function waitOf(counts: readonly SlidingCount[], now: Instant): Wait | null {
    const waits = windows.map((window, index) => {
      const count = counts[index]!
      return count.total(now) >= window.limit ? windowWait(window, count.oldest(now), now) : null
    })
    return longestOf(waits)
  }
}
