import { segment } from '../transport.js';
import { everyItem } from './paging.js';
import { usageQuery } from './usage.js';
/**
 * Calls about API keys. Creating and rotating keys needs a session. A key with `keys:read` may read keys, and one with
 * `keys:write` may change and revoke them, but only narrow their networks and tighten their limits.
 */
export class ApiKeyCalls {
    #transport;
    constructor(transport) {
        this.#transport = transport;
    }
    /** Creates a key. Only this response contains the key itself. Not retried: a retry could create a second key. */
    create(body = {}) {
        return this.#transport.call('POST', '/v1/api-keys', { body });
    }
    list({ limit, cursor, status, external_id } = {}) {
        return this.#transport.call('GET', '/v1/api-keys', { query: { limit, cursor, status, external_id } });
    }
    /** All keys, newest first, over all pages. */
    all(options = {}) {
        return everyItem(cursor => this.list({ ...options, cursor }));
    }
    get(keyId) {
        return this.#transport.call('GET', `/v1/api-keys/${segment(keyId)}`);
    }
    update(keyId, body) {
        return this.#transport.call('PATCH', `/v1/api-keys/${segment(keyId)}`, { body });
    }
    /** The usage of the key by hour or day, complete up to some seconds ago. */
    usage(keyId, range = {}) {
        return this.#transport.call('GET', `/v1/api-keys/${segment(keyId)}/usage`, { query: usageQuery(range) });
    }
    /**
     * Creates a successor with the same rights. The old key works for another `overlap_seconds` (default 86400), but not
     * beyond its own expiry.
     */
    rotate(keyId, body = {}) {
        return this.#transport.call('POST', `/v1/api-keys/${segment(keyId)}/rotate`, { body });
    }
    /** Revokes the key permanently, at once on all nodes. Idempotent. */
    revoke(keyId) {
        return this.#transport.call('DELETE', `/v1/api-keys/${segment(keyId)}`);
    }
}
