import { DAY, MINUTE, SECOND } from '../clock.ts'

/**
 * Attempts wait 2 s, 4 s, 8 s … up to this, each with jitter. Short, so that everything has left within a minute of
 * a provider that comes back.
 */
export const MAX_BACKOFF = MINUTE
export const MIN_BACKOFF = 2 * SECOND
/** Mail without an expiry of its own is not retried after this. */
export const GIVE_UP_AFTER = 3 * DAY

/** The delay after `failures` failed attempts: exponential, with jitter of one half (`random` in [0, 1)). */
export function backoff(failures: number, random: number): number {
  const longest = Math.min(MAX_BACKOFF, MIN_BACKOFF * 2 ** Math.min(failures - 1, 16))
  return Math.round(longest / 2 + (longest / 2) * random)
}
