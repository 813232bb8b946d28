/** First and largest upper bound of a delay, in milliseconds. */
export const BACKOFF_BASE_MS = 500;
export const BACKOFF_CAP_MS = 20_000;
/**
 * Full jitter: uniform between 0 and a bound that doubles from 0.5 s to 20 s, so that ten thousand agents that lost
 * one server do not reconnect at the same time.
 *
 * @param attempt 0 for the first wait
 * @param random uniform in [0, 1)
 * @returns milliseconds
 */
export function fullJitter(attempt, random) {
    return random * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** Math.min(attempt, 30));
}
