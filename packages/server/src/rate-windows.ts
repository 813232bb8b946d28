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
 * @param nthLast time of the `limit`-th last event, which counts until just before `nthLast` plus the window's length
 */
export function windowWait({ window }: RateWindow, nthLast: Instant | null, now: Instant): Wait | null {
  if (nthLast === null) return null
  // If the clock was stepped back, events may be in the future; they count as if they happened now.
  const remaining = Math.min(nthLast, now) + WINDOW_LENGTHS[window] - now
  return remaining > 0 ? { retryAfter: Math.ceil(remaining / 1000), window } : null
}

export function longestOf(waits: readonly (Wait | null)[]): Wait | null {
  return waits.reduce(
    (longest, wait) => (wait && wait.retryAfter > (longest?.retryAfter ?? 0) ? wait : longest),
    null,
  )
}
