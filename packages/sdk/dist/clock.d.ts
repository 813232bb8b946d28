/**
 * The SDK's clock: monotonic, so that a wrong date, a stepped clock or a wrong time zone affects no lifetime. Tests
 * pass a clock of their own; the default is `systemClock`.
 */
export interface SdkClock {
    /** Monotonic milliseconds. */
    now(): number;
    /** Calls back once after `ms` milliseconds. Returns a function that cancels it. */
    after(ms: number, callback: () => void): () => void;
    /** Uniform in [0, 1). */
    random(): number;
}
export declare const systemClock: SdkClock;
/** Waits `ms` milliseconds, or rejects with the signal's reason. */
export declare function pause(clock: SdkClock, ms: number, signal?: AbortSignal): Promise<void>;
