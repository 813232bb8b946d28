import { fullJitter } from './backoff.js';
import { KeywayError } from './errors.js';
/** Longest random delay before the first attempt, so that not all agents reconnect to a restarted service at once. */
export const RESTART_JITTER_MS = 1_000;
/** A connection that was ready for this long counts as stable. */
const STABLE_AFTER_MS = 5_000;
/**
 * Decides how long to wait before the next connection attempt: at most a second before the first one after a planned
 * close or a refused or expired token, otherwise longer with each failure.
 */
export class Retries {
    #failures = 0;
    /** The delay in milliseconds. A back-off is longer by the `retryAfter` of `failure`, if that is an error with one. */
    next(reconnect, failure, random) {
        const attempt = this.#failures++;
        if (attempt === 0 && reconnect !== 'backoff')
            return random * RESTART_JITTER_MS;
        const retryAfterMs = failure instanceof KeywayError ? (failure.retryAfter ?? 0) * 1000 : 0;
        return retryAfterMs + fullJitter(attempt, random);
    }
    /** Resets the back-off if the connection that ended was stable. @param ms how long it was ready, in milliseconds */
    afterConnectionOf(ms) {
        if (ms >= STABLE_AFTER_MS)
            this.#failures = 0;
    }
}
