import { segment } from '../transport.js';
import { everyItem } from './paging.js';
/** The caller's live connections, on all nodes. */
export class AgentCalls {
    #transport;
    constructor(transport) {
        this.#transport = transport;
    }
    list({ limit, cursor } = {}) {
        return this.#transport.call('GET', '/v1/agents', { query: { limit, cursor } });
    }
    all({ limit } = {}) {
        return everyItem(cursor => this.list({ limit, cursor }));
    }
    /**
     * Sends to one connection, or to all of a key. Not retried: the message could arrive twice.
     *
     * @throws KeywayError `not_found` when there is no such connection, neither an open one nor a broken one that can
     *   resume
     */
    send(connectionOrKeyId, data, { replyTo } = {}) {
        const path = `/v1/agents/${segment(connectionOrKeyId)}/messages`;
        return this.#transport.call('POST', path, { body: { data, reply_to: replyTo } });
    }
    /** Closes a connection; its agent may reconnect while its key is active. */
    disconnect(connectionId) {
        return this.#transport.call('DELETE', `/v1/agents/${segment(connectionId)}`);
    }
}
