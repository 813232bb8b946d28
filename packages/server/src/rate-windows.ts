import { DAY, HOUR, type Instant, MINUTE } from './clock.ts'

export type WindowName = 'minute' | 'hour' | 'day'

export const WINDOW_LENGTHS: Record<WindowName, number> = { minute: MINUTE, hour: HOUR, day: DAY }

/** At most `limit` events in any sliding window of this length. */
export interface RateWindow {
  window: WindowName
  limit: number
}

/** How long a window stays full. */
export interface Wait {
  /** Whole seconds, rounded up, at least 1; after them the next request is accepted. */
  retryAfter: number
  window: WindowName
}

/**
 * The wait for a full window, or null if it is not full.
 *
 * @param nthLast time of the `limit`-th last event; it counts until just before `nthLast` + window
 */
export function waitFor({ window }: RateWindow, nthLast: Instant | null, now: Instant): Wait | null {
  if (nthLast === null) return null
  // After the clock stepped back, events in the future count as made now.
  const left = Math.min(nthLast, now) + WINDOW_LENGTHS[window] - now
  return left > 0 ? { retryAfter: Math.ceil(left / 1000), window } : null
}

export function longestOf(waits: readonly (Wait | null)[]): Wait | null {
  return waits.reduce(
    (longest, wait) => (wait && wait.retryAfter > (longest?.retryAfter ?? 0) ? wait : longest),
    null,
  )
}
