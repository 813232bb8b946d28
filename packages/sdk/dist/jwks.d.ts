import { type VerificationKey } from './verification-key.js';
/**
 * Cache of an issuer's public keys; fetched again when they are stale or a key id is unknown, one request at a time.
 */
export declare class Jwks {
    #private;
    constructor(url: string, fetch: typeof globalThis.fetch);
    /**
     * The key with this id; undefined if the issuer's keys, as last fetched, have none. Rejects with `unavailable` if
     * they cannot be fetched and no copy younger than an hour is cached.
     */
    key(id: string): Promise<VerificationKey | undefined>;
}
