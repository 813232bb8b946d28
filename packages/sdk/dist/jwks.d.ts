/** An issuer's public keys: cached, fetched anew when they are old or a key id is unknown, one request at a time. */
export declare class Jwks {
    #private;
    constructor(url: string, fetch: typeof globalThis.fetch);
    /** The key with this id; undefined when the issuer has none. Rejects with `unavailable` when that cannot be known. */
    key(id: string): Promise<CryptoKey | undefined>;
}
