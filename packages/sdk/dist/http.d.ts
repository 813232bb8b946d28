import { type SdkClock } from './clock.js';
export interface JsonRequest {
    method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
    body?: object;
    headers?: Record<string, string>;
    signal?: AbortSignal;
}
/** One request without retries. Resolves with undefined for a response with status 204. */
export declare function requestJson<Answer>(fetch: typeof globalThis.fetch, url: string, { method, body, headers, signal }: JsonRequest): Promise<Answer>;
export interface RetryOptions {
    maxRetries: number;
    /** Longest `Retry-After` to wait for, in seconds; beyond it the error is thrown. */
    longestWaitSeconds: number;
    /** For each attempt. */
    timeoutMs: number;
    clock?: SdkClock;
}
/**
 * Retries after retryable errors, with full jitter and never earlier than `Retry-After`. For a call that is not
 * idempotent, `maxRetries` must be 0.
 */
export declare function withRetries<Answer>(attempt: (signal: AbortSignal) => Promise<Answer>, { maxRetries, longestWaitSeconds, timeoutMs, clock }: RetryOptions, signal?: AbortSignal): Promise<Answer>;
