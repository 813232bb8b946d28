/** The tokens of a signed-in client. */
export interface StoredTokens {
    access: string;
    refresh: string;
    sessionId: string;
    /** The Idempotency-Key of a refresh whose answer has not arrived yet. */
    refreshKey?: string;
}
/**
 * Storage for a client's tokens: for example a file with mode 0600, the system's keychain, or a browser's storage.
 * Several clients (tabs) may share one.
 */
export interface TokenStore {
    get(): Promise<StoredTokens | undefined> | StoredTokens | undefined;
    set(tokens: StoredTokens): Promise<void> | void;
    delete(): Promise<void> | void;
}
/** A store in memory, the default. */
export declare function memoryTokenStore(tokens?: StoredTokens): TokenStore;
