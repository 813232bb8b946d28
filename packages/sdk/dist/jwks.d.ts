import { type VerificationKey } from './verification-key.js';
/**
 * Cache of an issuer's public keys; fetched again when they are stale or a key id is unknown, one request at a time.
 */
export declare class Jwks {
    #private;
    constructor(url: string, fetch: typeof globalThis.fetch);
    /**
     * The key with this id; undefined if the issuer has none. Rejects with `unavailable` if the keys cannot be fetched.
     */
    key(id: string): Promise<VerificationKey | undefined>;
}
