/**
 * Time as the SDK sees it: monotonic, so that a board that boots in 1970, a stepped clock or a wrong time zone
 * changes no lifetime. Tests hand in a clock of their own; everyone else uses `systemClock`.
 */
export interface SdkClock {
    /** Milliseconds since some fixed moment; never goes back. */
    now(): number;
    /** Calls back once after `ms` milliseconds; the answer cancels it. */
    after(ms: number, callback: () => void): () => void;
    /** Uniform in [0, 1). */
    random(): number;
}
export declare const systemClock: SdkClock;
/** Waits `ms` milliseconds, or rejects with the signal's reason. */
export declare function pause(clock: SdkClock, ms: number, signal?: AbortSignal): Promise<void>;
