import { type SdkClock } from './clock.js';
export interface JsonRequest {
    method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
    body?: object;
    headers?: Record<string, string>;
    signal?: AbortSignal;
}
/** One request without retries. A response without a body is `undefined`. */
export declare function requestJson<Answer>(fetch: typeof globalThis.fetch, url: string, { method, body, headers, signal }: JsonRequest): Promise<Answer>;
export interface RetryOptions {
    /** Maximum number of retries. */
    maxRetries: number;
    /** Longest `Retry-After` to wait for, in seconds; beyond it the error is thrown. */
    longestWaitSeconds: number;
    /** Timeout of each attempt, in milliseconds. */
    timeoutMs: number;
    clock?: SdkClock;
}
/** Retries with full jitter, and never earlier than `Retry-After`. Only for idempotent calls. */
export declare function withRetries<Answer>(attempt: (signal: AbortSignal) => Promise<Answer>, { maxRetries, longestWaitSeconds, timeoutMs, clock }: RetryOptions, signal?: AbortSignal): Promise<Answer>;
