import type { SendOptions } from '../agent-options.js';
import type { Delivery } from '../pending-sends.js';
import type { AgentConnectionObject, Json, Page } from '../protocol.js';
import { type Transport } from '../transport.js';
import { type PageOptions } from './paging.js';
/** The caller's live connections, on all nodes. */
export declare class AgentCalls {
    #private;
    constructor(transport: Transport);
    list({ limit, cursor }?: PageOptions): Promise<Page<AgentConnectionObject>>;
    all({ limit }?: Omit<PageOptions, 'cursor'>): AsyncGenerator<AgentConnectionObject, void>;
    /**
     * Sends to one connection, or to all of a key. Not retried: the message could arrive twice.
     *
     * @throws KeywayError `not_found` when there is no such connection, neither an open one nor a broken one that can
     *   resume
     */
    send(connectionOrKeyId: string, data: Json, { replyTo }?: Pick<SendOptions, 'replyTo'>): Promise<Delivery>;
    /** Closes a connection; its agent may reconnect while its key is active. */
    disconnect(connectionId: string): Promise<void>;
}
