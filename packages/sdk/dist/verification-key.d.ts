/** A public key of the issuer, for one algorithm. */
export interface VerificationKey {
    alg: TokenAlg;
    verify(message: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>): Promise<boolean>;
}
export declare const TOKEN_ALGS: readonly ['EdDSA', 'ES256', 'RS256'];
export type TokenAlg = (typeof TOKEN_ALGS)[number];
type Jwk = Record<string, unknown>;
/**
 * Imports a key, for the algorithm of its type; undefined if it cannot verify tokens on this platform, or names another
 * `alg` or `use`.
 */
export declare function importKey(document: Jwk): Promise<VerificationKey | undefined>;
export {};
