import { type StoredTokens, type TokenStore } from './token-store.js';
export interface BrowserTokenStore extends TokenStore {
    /**
     * Calls back after another tab has signed in, refreshed or signed out (then with undefined). Returns how to stop it.
     */
    onChange(listener: (tokens: StoredTokens | undefined) => void): () => void;
}
export interface BrowserTokenStoreOptions {
    /** The item of localStorage. Default `keyway`. */
    name?: string | undefined;
}
/**
 * A store in `localStorage`, for all tabs of an origin: one at a time refreshes, by Web Locks. These exist on https and on
 * localhost; without them only the calls of one tab are ordered. Scripts of the origin can read it, so where a server
 * renders the pages `cookieTokenStores` is safer. There is none in `sessionStorage`: a duplicated tab would copy it, and with it
 * the refresh token.
 *
 * @throws KeywayError `invalid_configuration` where there is no `localStorage`, or the browser blocks it
 */
export declare function browserTokenStore({ name }?: BrowserTokenStoreOptions): BrowserTokenStore;
