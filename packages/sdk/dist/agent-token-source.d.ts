import type { SdkClock } from './clock.js';
/** What `getToken` may return: the exchange's response unchanged, or the bare token. */
export type ProvidedToken = string | {
    token: string;
    expires_in?: number;
};
export interface AgentTokenSourceOptions {
    origin: string;
    apiKey: string | undefined;
    getToken: ((signal: AbortSignal) => Promise<ProvidedToken> | ProvidedToken) | undefined;
    fetch: typeof fetch;
    clock: SdkClock;
}
/**
 * Provides agent tokens, by the exchange of an API key or the caller's `getToken`. Concurrent calls share one
 * exchange; a token is reused for 80 % of its lifetime, by the monotonic clock.
 */
export declare class AgentTokenSource {
    #private;
    constructor(options: AgentTokenSourceOptions);
    /** A token for a new connection. */
    get(): Promise<string>;
    /** A new token, or that of the exchange in progress. */
    fresh(): Promise<string>;
    /** Discards the cached token, which was refused. */
    forget(): void;
}
/** Lifetime of a token in seconds, validated. */
export declare function lifetimeSeconds(expiresIn: unknown): number;
