import type { Reconnect } from './stop-reasons.js';
/** Longest random delay before the first attempt, so that not all agents reconnect to a restarted service at once. */
export declare const RESTART_JITTER_MS = 1000;
/**
 * Decides how long to wait before the next connection attempt: at most a second before the first one after a planned
 * close or a refused or expired token, otherwise longer with each failure.
 */
export declare class Retries {
    #private;
    /** The delay in milliseconds. A back-off is longer by the `retryAfter` of `failure`, if that is an error with one. */
    next(reconnect: Reconnect, failure: unknown, random: number): number;
    /** Resets the back-off if the connection that ended was stable. @param ms how long it was ready, in milliseconds */
    afterConnectionOf(ms: number): void;
}
