import { KeywayError } from './errors.js';
import type { SessionAnswer } from './protocol.js';
import type { TokenStore } from './token-store.js';
export interface SessionTokensOptions {
    origin: string;
    store: TokenStore;
    /** `POST /auth/refresh`, repeated with the same key until an answer arrives or patience ends. */
    refresh(refreshToken: string, idempotencyKey: string): Promise<SessionAnswer>;
}
/** A session's tokens: handed out, renewed one at a time per process and, with Web Locks, across tabs. */
export declare class SessionTokens {
    #private;
    constructor(options: SessionTokensOptions);
    access(): Promise<string | undefined>;
    keep(answer: SessionAnswer): Promise<void>;
    forget(): Promise<void>;
    refreshToken(): Promise<string | undefined>;
    /**
     * Renews the tokens unless somebody else already replaced `refused`, the access token that no longer works.
     *
     * @returns the server's answer, or undefined when another tab had refreshed meanwhile
     */
    refresh(refused?: string): Promise<SessionAnswer | undefined>;
}
export declare function notSignedIn(): KeywayError;
