/** The tokens of a signed-in client. */
export interface StoredTokens {
    access: string;
    refresh: string;
    sessionId: string;
    /** The Idempotency-Key of a refresh whose answer has not arrived yet. */
    refreshKey?: string;
}
/**
 * Storage for a client's tokens, which several clients (tabs, processes) may share: `memoryTokenStore`,
 * `browserTokenStore`, `cookieTokenStores`, `fileTokenStore` of `@keyway/sdk/node`, or one of your own, for example in
 * the system's keychain.
 */
export interface TokenStore {
    get(): Promise<StoredTokens | undefined> | StoredTokens | undefined;
    set(tokens: StoredTokens): Promise<void> | void;
    delete(): Promise<void> | void;
    /**
     * Runs `work` while no other client of this storage runs any: refresh tokens rotate, and two clients that use the
     * same one would end the session. Clients read, refresh and write within `work`. Without it the client uses the Web
     * Locks of the platform, if it has them.
     */
    exclusive?<Answer>(work: () => Promise<Answer>): Promise<Answer>;
}
/** A store in memory, the default. */
export declare function memoryTokenStore(tokens?: StoredTokens): TokenStore;
/** Tokens as `JSON.stringify` wrote them; undefined if the text is anything else. */
export declare function parseTokens(text: string): StoredTokens | undefined;
