/** First and largest upper bound of a delay, in milliseconds. */
export declare const BACKOFF_BASE_MS = 500;
export declare const BACKOFF_CAP_MS = 20000;
/**
 * Full jitter: uniform between 0 and a bound that doubles from 0.5 s to 20 s, so that ten thousand agents that lost
 * one server do not reconnect at the same time.
 *
 * @param attempt 0 for the first wait
 * @param random uniform in [0, 1)
 * @returns milliseconds
 */
export declare function fullJitter(attempt: number, random: number): number;
