import type { IntrospectionAnswer, LedgerEntryObject, Page, RevocationObject } from '../protocol.js';
import type { Transport } from '../transport.js';
export interface Charge {
    user_id: string;
    /** A positive decimal with at most 6 places. */
    amount: string;
    description: string;
    /** Names this charge: repeated with the same key it is made once. Default: a random one for each call. */
    idempotencyKey?: string;
}
/** What registered apps call, with their id and secret. */
export declare class AppCalls {
    #private;
    constructor(transport: Transport);
    /** Takes money from a user who authorised it. Safe to repeat with the same `idempotencyKey`. */
    charge({ idempotencyKey, ...body }: Charge): Promise<LedgerEntryObject>;
    /** What a key, access token or agent token is worth now (RFC 7662). */
    introspect(token: string): Promise<IntrospectionAnswer>;
    /** What ended in the last 20 minutes, or since `cursor`. */
    revocations({ cursor, signal, }?: {
        cursor?: string;
        signal?: AbortSignal;
    }): Promise<Page<RevocationObject>>;
    /** Everything that ends from now on (and in the 20 minutes before), for a hub of your own. Ends by the signal. */
    followRevocations(options?: {
        cursor?: string;
        everyMs?: number;
        signal?: AbortSignal;
    }): AsyncGenerator<RevocationObject, void>;
}
