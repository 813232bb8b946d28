import { segment } from '../transport.js';
/** The account's sessions. All calls need a session, or a key without scopes. */
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
    /** Revokes all sessions but the calling one; all of them if called with a key. */
    revokeOthers() {
        return this.#transport.call('DELETE', '/v1/sessions');
    }
}
