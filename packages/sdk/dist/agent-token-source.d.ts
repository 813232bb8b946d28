import type { SdkClock } from './clock.js';
/** What `getToken` may return: the response of `POST /auth/agent-token`, or only the token in it. */
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
    get(): Promise<string>;
    /** A new token, or that of the exchange in progress. */
    fresh(): Promise<string>;
    /** Discards the cached token, because the hub refused it. */
    forget(): void;
}
/** The lifetime in seconds, or FALLBACK_LIFETIME_SECONDS if it is invalid; at most a day. */
export declare function lifetimeSeconds(expiresIn: unknown): number;
