import type { KeyVerification } from '../protocol.js';
import type { Transport } from '../transport.js';
/**
 * Verifies keys, those that are asked for at the same time by one request: a busy API then spends a fraction of the
 * requests, and one that is not waits no longer.
 */
export declare class KeyVerifier {
    #private;
    constructor(transport: Transport);
    verify(key: string, consume: number | undefined): Promise<KeyVerification>;
}
