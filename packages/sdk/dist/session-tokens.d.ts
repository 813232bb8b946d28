import { KeywayError } from './errors.js';
import type { SessionAnswer } from './protocol.js';
import type { TokenStore } from './token-store.js';
export interface SessionTokensOptions {
    origin: string;
    store: TokenStore;
    /** `POST /auth/refresh`, retried with the same Idempotency-Key. */
    refresh(refreshToken: string, idempotencyKey: string): Promise<SessionAnswer>;
}
/** A session's tokens. Of all clients that share the storage, one at a time refreshes or replaces them. */
export declare class SessionTokens {
    #private;
    constructor(options: SessionTokensOptions);
    access(): Promise<string | undefined>;
    /** Stores the tokens of a sign-in. Waits for a refresh in progress, whose answer would otherwise replace them. */
    storeSignIn(answer: SessionAnswer): Promise<void>;
    delete(): Promise<void>;
    refreshToken(): Promise<string | undefined>;
    /**
     * Refreshes the tokens, unless another client has meanwhile replaced the access token `rejectedToken`.
     *
     * @returns the server's answer, or undefined if another client has refreshed them meanwhile
     * @throws KeywayError `authentication_required` if there are no tokens; after a refusal with 401 the tokens are
     *   deleted
     */
    refresh(rejectedToken?: string): Promise<SessionAnswer | undefined>;
}
export declare function notSignedInError(): KeywayError;
