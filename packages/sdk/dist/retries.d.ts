import type { Reconnect } from './stop-reasons.js';
/** Jitter, so that not all agents reconnect to a restarted service at once. */
export declare const RESTART_JITTER_MS = 1000;
/** How long to wait before the next attempt: at once after a planned end, longer after every failure. */
export declare class Retries {
    #private;
    /** Milliseconds. `why` may be an error with `retryAfter`. */
    next(reconnect: Reconnect, why: unknown, random: number): number;
    /** Called when a connection ends that was ready for `ms` milliseconds. */
    afterConnectionOf(ms: number): void;
}
