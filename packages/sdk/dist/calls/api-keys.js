import { segment } from '../transport.js';
import { everyItem } from './paging.js';
/** API keys. Making and rotating them needs a session; a key with `keys:read` or `keys:write` may do the rest. */
export class ApiKeyCalls {
    #transport;
    constructor(transport) {
        this.#transport = transport;
    }
    /** The one answer that holds the whole key. Not repeated by itself: it would make two. */
    create(body = {}) {
        return this.#transport.call('POST', '/v1/api-keys', { body });
    }
    list({ limit, cursor, status } = {}) {
        return this.#transport.call('GET', '/v1/api-keys', { query: { limit, cursor, status } });
    }
    /** All of them, newest first, over as many pages as there are. */
    all(options = {}) {
        return everyItem(cursor => this.list({ ...options, cursor }));
    }
    get(keyId) {
        return this.#transport.call('GET', `/v1/api-keys/${segment(keyId)}`);
    }
    update(keyId, body) {
        return this.#transport.call('PATCH', `/v1/api-keys/${segment(keyId)}`, { body });
    }
    /** A successor with the same rights; the old key works for `overlap_seconds` (default 86400) more. */
    rotate(keyId, body = {}) {
        return this.#transport.call('POST', `/v1/api-keys/${segment(keyId)}/rotate`, { body });
    }
    /** For good, at once and everywhere; repeating it changes nothing. */
    revoke(keyId) {
        return this.#transport.call('DELETE', `/v1/api-keys/${segment(keyId)}`);
    }
}
