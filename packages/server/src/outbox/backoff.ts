import { DAY, MINUTE, SECOND } from '../clock.ts'

/**
 * Attempts wait 2 s, 4 s, 8 s … up to this, each with jitter. Short, so that everything has left within a minute of
 * a provider that comes back.
 */
export const MAX_BACKOFF = MINUTE
export const MIN_BACKOFF = 2 * SECOND
/** Mail without a validity of its own is given up after this. */
export const GIVE_UP_AFTER = 3 * DAY

/** The wait before the next attempt after `failures` of them: doubling, and half of it drawn (`random` in [0, 1)). */
export function backoff(failures: number, random: number): number {
  const longest = Math.min(MAX_BACKOFF, MIN_BACKOFF * 2 ** Math.min(failures - 1, 16))
  return Math.round(longest / 2 + (longest / 2) * random)
}
