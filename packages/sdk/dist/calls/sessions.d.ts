import type { Page, SessionObject } from '../protocol.js';
import { type Transport } from '../transport.js';
import type { PageOptions } from './paging.js';
/** Where the account is signed in. Ending sessions needs a session. */
export declare class SessionCalls {
    #private;
    constructor(transport: Transport);
    list({ limit, cursor }?: PageOptions): Promise<Page<SessionObject>>;
    revoke(sessionId: string): Promise<void>;
    /** All but the calling session. */
    revokeOthers(): Promise<void>;
}
