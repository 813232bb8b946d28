import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { longestOf, type RateWindow, type Wait, WINDOW_LENGTHS, windowWait } from '../rate-windows.ts'
import { KeyCounts } from './key-counts.ts'

/**
 * Maximum number of keys with counts in memory. To have a count that still matters evicted, an attacker would have to
 * exchange at least half this many other keys (see `createExchangeLimits`).
 */
export const MAX_REMEMBERED_KEYS = 50_000

export interface ExchangeLimits {
  /** Counts an exchange that is about to succeed; refused ones do not count. @throws KeywayError `rate_limited` */
  take(keyId: string): void
  /** Number of keys with counts in memory. */
  readonly size: number
}

/**
 * Limits how often one key may be exchanged on this node, in sliding windows. The counts are per node and in memory:
 * they protect a node from one misbehaving client and need not be exact across nodes.
 *
 * There are two generations of counts, current and previous. A key moves to the current generation when it is used.
 * When the longest window has passed, or the current generation has half of the maximum number of keys, it becomes the
 * previous generation, and keys that were only in the old previous generation are evicted.
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
  const lengths = windows.map(({ window }) => WINDOW_LENGTHS[window])
  const longestWindow = Math.max(0, ...lengths)
  let current = new KeyCounts(lengths, Math.floor(maxKeys / 2))
  let previous = new KeyCounts(lengths, Math.floor(maxKeys / 2))
  let currentSince = clock.now()

  return {
    take(keyId) {
      const now = clock.now()
      const record = findOrInsertRecord(keyId, now)
      let isFull = false
      for (let index = 0; index < windows.length; index++)
        isFull = current.count(record, index, now) >= windows[index]!.limit || isFull
      if (isFull) throw rateLimited(longestWait(record, now))
      for (let index = 0; index < windows.length; index++) current.add(record, index, now)
    },
    get size() {
      return current.size + previous.size
    },
  }

  function findOrInsertRecord(keyId: string, now: Instant): number {
    if (now - currentSince >= 2 * longestWindow) current.clear()
    if (now - currentSince >= longestWindow) rotate(now)
    const existing = current.find(keyId)
    if (existing >= 0) return existing
    if (current.isFull) rotate(now)
    return current.insert(keyId, previous)
  }

  function rotate(now: Instant): void {
    const nextCurrent = previous
    previous = current
    current = nextCurrent
    current.clear()
    currentSince = now
  }

  function longestWait(record: number, now: Instant): Wait {
    const waits = windows.map((window, index) =>
      current.count(record, index, now) >= window.limit
        ? windowWait(window, now - current.oldestAge(record, index, now), now)
        : null,
    )
    return longestOf(waits)!
  }
}

function rateLimited({ retryAfter, window }: Wait): KeywayError {
  const detail = `This key was exchanged too often within this ${window}. A token works for 15 minutes: keep it. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, { retryAfter, window, setting: 'KEYWAY_EXCHANGE_LIMITS' })
}
