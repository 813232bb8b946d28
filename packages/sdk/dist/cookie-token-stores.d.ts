import type { TokenStore } from './token-store.js';
export interface CookieTokenStoresOptions {
    /**
     * At least 32 characters that only the servers of your site know, the same in all of their processes. The
     * Idempotency-Key of a refresh is derived from it.
     */
    secret: string;
    /** The cookie's name after the prefix `__Host-`. Default `keyway-tokens`. */
    name?: string | undefined;
    /** False, for development over http only, omits `Secure` and the prefix `__Host-`. Default true. */
    secure?: boolean | undefined;
    /**
     * How long the browser keeps the cookie, in seconds. Default 30 days, after which the service ends an unused session.
     */
    maxAgeSeconds?: number | undefined;
}
/** The tokens of one request's browser. */
export interface CookieTokenStore extends TokenStore {
    /**
     * Values for `Set-Cookie` headers of the response; empty if nothing changed. A response with one must not be cached.
     */
    readonly setCookies: string[];
}
/**
 * Stores tokens in a cookie, for sites whose server calls the service for its visitors. Call it once per process, and
 * the returned function for each request with its `Cookie` header. The cookie is HttpOnly, Secure, SameSite=Lax and
 * bound to its host (`__Host-`): neither scripts nor other sites can read it.
 *
 *     const tokensOf = cookieTokenStores({ secret })
 *     const tokens = tokensOf(request.headers.get('cookie'))
 *     const keyway = new Keyway({ url, tokens })
 *     for (const cookie of tokens.setCookies) response.headers.append('set-cookie', cookie)
 *
 * Concurrent requests with one expired token share one refresh within a process. Different processes send the same
 * Idempotency-Key, which is derived from the token and the secret, so all get the same new tokens.
 *
 * @throws KeywayError `invalid_configuration` for an invalid option; the store's methods throw `bad_response` for
 *   tokens that no cookie can hold
 */
export declare function cookieTokenStores(options: CookieTokenStoresOptions): (cookieHeader: string | null | undefined) => CookieTokenStore;
