import { DAY, MINUTE, SECOND } from '../clock.ts'

/**
 * The longest delay between attempts (2 s, 4 s, 8 s … with jitter). Short, so that all mail is sent within a minute
 * after an outage of the provider.
 */
export const MAX_BACKOFF = MINUTE
export const MIN_BACKOFF = 2 * SECOND
/** Mail without an expiry is not retried after this. */
export const GIVE_UP_AFTER = 3 * DAY

/**
 * The delay after `failures` failed attempts: exponential, at most `most`, with jitter of one half (`random` in
 * [0, 1)).
 */
export function backoff(failures: number, random: number, most = MAX_BACKOFF): number {
  const longest = Math.min(most, MIN_BACKOFF * 2 ** Math.min(failures - 1, 16))
  return Math.round(longest / 2 + (longest / 2) * random)
}
