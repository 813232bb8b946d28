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
export interface FollowOptions {
    /** `next_cursor` of an earlier page. Default: 20 minutes back. */
    cursor?: string;
    /** Milliseconds between two looks. Default 1000. */
    everyMs?: number;
    signal?: AbortSignal;
    /** Called after each look that found nothing more: what ended until then has been given out. */
    onCaughtUp?: () => void;
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
    /** Everything that ends from now on (and in the 20 minutes before), for a hub of your own. Goes on when the service cannot be reached for a while; ends by the signal. */
    followRevocations(options?: FollowOptions): AsyncGenerator<RevocationObject, void>;
}
