import type { Page, SessionObject } from '../protocol.js';
import { type Transport } from '../transport.js';
import type { PageOptions } from './paging.js';
/** The account's sessions. All calls need a session, or a key without scopes. */
export declare class SessionCalls {
    #private;
    constructor(transport: Transport);
    list({ limit, cursor }?: PageOptions): Promise<Page<SessionObject>>;
    revoke(sessionId: string): Promise<void>;
    /** Revokes all sessions but the calling one; all of them if called with a key. */
    revokeOthers(): Promise<void>;
}
