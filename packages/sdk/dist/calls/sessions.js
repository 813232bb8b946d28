import { segment } from '../transport.js';
/** The account's sessions. Ending them requires a session. */
export class SessionCalls {
    #transport;
    constructor(transport) {
        this.#transport = transport;
    }
    list({ limit, cursor } = {}) {
        return this.#transport.call('GET', '/v1/sessions', { query: { limit, cursor } });
    }
    revoke(sessionId) {
        return this.#transport.call('DELETE', `/v1/sessions/${segment(sessionId)}`);
    }
    /** Revokes all sessions but the calling one. */
    revokeOthers() {
        return this.#transport.call('DELETE', '/v1/sessions');
    }
}
