import { systemClock } from './clock.js';
import { KeywayError } from './errors.js';
import { requestJson, withRetries } from './http.js';
import { importKey } from './verification-key.js';
/** Maximum age of a cached key set before it is fetched again. */
const FRESH_FOR_MS = 5 * 60_000;
/** Maximum age of cached keys that are used while the issuer is unreachable. */
const STALE_FOR_MS = 60 * 60_000;
/** Unknown key ids and stale keys cause at most one request in this time. */
const UNKNOWN_KEY_PAUSE_MS = 10_000;
const FETCH_TIMEOUT_MS = 5_000;
/**
 * Cache of an issuer's public keys; fetched again when they are stale or a key id is unknown, one request at a time.
 */
export class Jwks {
    #url;
    #fetch;
    #set;
    #triedAt = Number.NEGATIVE_INFINITY;
    #refreshInProgress;
    constructor(url, fetch) {
        this.#url = url;
        this.#fetch = fetch;
    }
    /**
     * The key with this id; undefined if the issuer's keys, as last fetched, have none. Rejects with `unavailable` if
     * they cannot be fetched and no copy younger than an hour is cached.
     */
    async key(id) {
        const cachedKey = this.#set?.keys.get(id);
        if (cachedKey && this.#age() < FRESH_FOR_MS)
            return cachedKey;
        if (systemClock.now() - this.#triedAt >= UNKNOWN_KEY_PAUSE_MS || this.#refreshInProgress)
            await this.#refresh();
        if (this.#age() < STALE_FOR_MS)
            return this.#set?.keys.get(id);
        const message = `The keys of ${this.#url} cannot be fetched. Check the issuer and the network.`;
        throw new KeywayError('unavailable', message, { retryable: true });
    }
    #age() {
        return this.#set ? systemClock.now() - this.#set.fetchedAt : Number.POSITIVE_INFINITY;
    }
    async #refresh() {
        this.#refreshInProgress ??= this.#load().finally(() => {
            this.#refreshInProgress = undefined;
        });
        await this.#refreshInProgress.catch(() => { }); // cached keys may still be used
    }
    async #load() {
        this.#triedAt = systemClock.now();
        const retryOptions = { maxRetries: 0, longestWaitSeconds: 0, timeoutMs: FETCH_TIMEOUT_MS };
        const document = await withRetries(signal => requestJson(this.#fetch, this.#url, { signal }), retryOptions);
        const keys = await importKeys(Array.isArray(document?.keys) ? document.keys : []);
        this.#set = { keys, fetchedAt: systemClock.now() };
    }
}
/** Imports the keys that can verify tokens, and skips all others. */
async function importKeys(documents) {
    const keys = new Map();
    for (const document of documents) {
        const members = (document ?? {});
        const key = typeof members.kid === 'string' ? await importKey(members) : undefined;
        if (key)
            keys.set(members.kid, key);
    }
    return keys;
}
