import { DAY, MINUTE, SECOND } from '../clock.ts'

/**
 * The longest delay between attempts (2 s, 4 s, 8 s … with jitter). Short, so that all mail is sent within a minute
 * after an outage of the provider.
 */
export const MAX_BACKOFF = MINUTE
export const MIN_BACKOFF = 2 * SECOND
/** Mail without an expiry is retried for this long. */
export const GIVE_UP_AFTER = 3 * DAY

/**
 * The delay after `failures` failed attempts: exponential with jitter, at most `maxDelay`. The jitter subtracts up to
 * half of the delay; `random` in [0, 1) chooses how much.
 */
export function backoff(failures: number, random: number, maxDelay = MAX_BACKOFF): number {
  const delay = Math.min(maxDelay, MIN_BACKOFF * 2 ** Math.min(failures - 1, 16))
  return Math.round(delay / 2 + (delay / 2) * random)
}
