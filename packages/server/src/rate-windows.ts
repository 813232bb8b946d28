import { DAY, HOUR, type Instant, MINUTE } from './clock.ts'

export type WindowName = 'minute' | 'hour' | 'day'

export const WINDOW_LENGTHS: Record<WindowName, number> = { minute: MINUTE, hour: HOUR, day: DAY }

/** At most `limit` of what is counted in any stretch of time as long as the window. */
export interface RateWindow {
  window: WindowName
  limit: number
}

/** How long it takes until a full window has room again. */
export interface Wait {
  /** Whole seconds, rounded up, at least 1: who waits them is let through. */
  retryAfter: number
  window: WindowName
}

/**
 * The wait for a full window, or null where there is room.
 *
 * @param nthLast when that was which lies `limit` back: it counts until just before `nthLast` + window
 */
export function waitFor({ window }: RateWindow, nthLast: Instant | null, now: Instant): Wait | null {
  if (nthLast === null) return null
  // What lies ahead of a clock that stepped back counts as made now.
  const left = Math.min(nthLast, now) + WINDOW_LENGTHS[window] - now
  return left > 0 ? { retryAfter: Math.ceil(left / 1000), window } : null
}

export function longestOf(waits: readonly (Wait | null)[]): Wait | null {
  return waits.reduce(
    (longest, wait) => (wait && wait.retryAfter > (longest?.retryAfter ?? 0) ? wait : longest),
    null,
  )
}
