/** What a signed-in client keeps between calls. */
export interface StoredTokens {
    access: string;
    refresh: string;
    sessionId: string;
    /** The Idempotency-Key of a refresh whose answer has not arrived yet. */
    refreshKey?: string;
}
/**
 * Where a client keeps its tokens. Back it with whatever survives as long as the sign-in shall: a file with mode
 * 0600, the system's keychain, a browser's storage. Several clients (tabs) may share one.
 */
export interface TokenStore {
    get(): Promise<StoredTokens | undefined> | StoredTokens | undefined;
    set(tokens: StoredTokens): Promise<void> | void;
    delete(): Promise<void> | void;
}
/** Forgets with the process; the default. */
export declare function memoryTokenStore(tokens?: StoredTokens): TokenStore;
