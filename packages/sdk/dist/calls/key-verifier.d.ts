import type { KeyVerification } from '../protocol.js';
import type { Transport } from '../transport.js';
/**
 * Verifies API keys; concurrent verifications share requests. Under load this saves most requests; without load no
 * verification waits.
 */
export declare class KeyVerifier {
    #private;
    constructor(transport: Transport);
    verify(key: string, consume: number | undefined): Promise<KeyVerification>;
}
