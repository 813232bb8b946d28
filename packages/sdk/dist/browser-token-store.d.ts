import { type StoredTokens, type TokenStore } from './token-store.js';
export interface BrowserTokenStore extends TokenStore {
    /**
     * Calls the listener with the stored tokens after another tab has changed them: by a sign-in, when it begins or ends
     * a refresh, or with undefined by a sign-out. Returns a function that removes the listener.
     */
    onChange(listener: (tokens: StoredTokens | undefined) => void): () => void;
}
export interface BrowserTokenStoreOptions {
    /** The item of localStorage. Default `keyway`. */
    name?: string | undefined;
}
/**
 * A store in `localStorage`, shared by all tabs of an origin; Web Locks let one tab at a time refresh. Browsers
 * have them on https and on localhost only; without them tabs may refresh concurrently. Scripts of the origin can read
 * the store, so where a server renders the pages `cookieTokenStores` is safer. There is no store in `sessionStorage`: a
 * duplicated tab would copy it, and with it the refresh token.
 *
 * @throws KeywayError `invalid_configuration` where there is no `localStorage`, or the browser blocks it
 */
export declare function browserTokenStore({ name }?: BrowserTokenStoreOptions): BrowserTokenStore;
