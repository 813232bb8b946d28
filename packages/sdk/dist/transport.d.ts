import { type JsonRequest, type RetryOptions } from './http.js';
import { type SessionTokens } from './session-tokens.js';
export interface TransportOptions {
    origin: string;
    apiKey: string | undefined;
    app: {
        id: string;
        secret: string;
    } | undefined;
    tokens: SessionTokens;
    fetch: typeof fetch;
    retry: RetryOptions;
}
type Method = NonNullable<JsonRequest['method']>;
export interface CallOptions {
    body?: object;
    query?: Record<string, string | number | undefined>;
    headers?: Record<string, string>;
    /** The credential of the call. Default: the user's (API key or session). */
    as?: 'user' | 'app' | 'none';
    /** Whether the call may be repeated without a second effect. Default: true, except for POST. */
    repeatable?: boolean;
    signal?: AbortSignal;
}
/** Sends calls to the service, with credentials, retries, and one refresh if the access token is rejected. */
export declare class Transport {
    #private;
    constructor(options: TransportOptions);
    call<Answer>(method: Method, path: string, options?: CallOptions): Promise<Answer>;
}
/** Encodes one path segment, so that its value cannot change the path. */
export declare function segment(id: string): string;
export {};
