import type { Reconnect } from './stop-reasons.js';
/** A restarted service is not met by all its agents in the same instant. */
export declare const RESTART_JITTER_MS = 1000;
/** How long to wait before the next attempt: at once after a planned end, longer after every failure. */
export declare class Retries {
    #private;
    /** Milliseconds. `why` may be an error whose server asked for patience. */
    next(reconnect: Reconnect, why: unknown, random: number): number;
    /** A connection ended that had been ready for so long. */
    afterConnectionOf(ms: number): void;
}
