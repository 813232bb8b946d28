import { type SdkClock } from './clock.js';
export interface JsonRequest {
    method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
    body?: object;
    headers?: Record<string, string>;
    signal?: AbortSignal;
}
/** One request without retries. An answer without a body is `undefined`. */
export declare function requestJson<Answer>(fetch: typeof globalThis.fetch, url: string, { method, body, headers, signal }: JsonRequest): Promise<Answer>;
export interface RetryOptions {
    /** How often a call is repeated at most. */
    maxRetries: number;
    /** A longer `Retry-After` is not waited for but thrown. Seconds. */
    longestWaitSeconds: number;
    /** Each try's. Milliseconds. */
    timeoutMs: number;
    clock?: SdkClock;
}
/**
 * Tries until it works, with full jitter and never sooner than `Retry-After` says. Only for calls that may be
 * repeated without a second effect.
 */
export declare function withRetries<Answer>(attempt: (signal: AbortSignal) => Promise<Answer>, { maxRetries, longestWaitSeconds, timeoutMs, clock }: RetryOptions, signal?: AbortSignal): Promise<Answer>;
