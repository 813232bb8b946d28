import type { SdkClock } from './clock.js';
/** What `getToken` may return: the exchange's answer as it is, or the bare token. */
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
 * Where agent tokens come from: the exchange of an API key, or the caller's `getToken`. Callers that ask at the same
 * time share one exchange; a token is reused for 80 % of its lifetime, by the monotonic clock.
 */
export declare class AgentTokenSource {
    #private;
    constructor(options: AgentTokenSourceOptions);
    /** A token that is good for a new connection. */
    get(): Promise<string>;
    /** A token made now, or by the exchange that is under way. */
    fresh(): Promise<string>;
    /** The held token was refused: the next one is made anew. */
    forget(): void;
}
/** Seconds that a token lives, whatever the answer claims. */
export declare function lifetimeSeconds(expiresIn: unknown): number;
