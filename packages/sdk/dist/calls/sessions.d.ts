import type { Page, SessionObject } from '../protocol.js';
import { type Transport } from '../transport.js';
import type { PageOptions } from './paging.js';
/** The account's sessions. Ending them requires a session. */
export declare class SessionCalls {
    #private;
    constructor(transport: Transport);
    list({ limit, cursor }?: PageOptions): Promise<Page<SessionObject>>;
    revoke(sessionId: string): Promise<void>;
    /** Revokes all sessions but the calling one. */
    revokeOthers(): Promise<void>;
}
