import { pause, systemClock } from '../clock.js';
import { randomId } from '../environment.js';
import { KeywayError } from '../errors.js';
import { KeyVerifier } from './key-verifier.js';
const POLL_INTERVAL_MS = 1_000;
/** Calls of registered apps, with their id and secret. */
export class AppCalls {
    #transport;
    #verifier;
    constructor(transport) {
        this.#transport = transport;
        this.#verifier = new KeyVerifier(transport);
    }
    /** Charges a user who authorised the app. Safe to retry with the same `idempotencyKey`. */
    charge({ idempotencyKey = randomId(), ...body }) {
        const headers = { 'idempotency-key': idempotencyKey };
        return this.#transport.call('POST', '/v1/charges', { body, headers, as: 'app', repeatable: true });
    }
    /** Introspects a key, access token or agent token (RFC 7662). */
    introspect(token, { consume } = {}) {
        const body = consume === undefined ? { token } : { token, consume };
        return this.#transport.call('POST', '/auth/introspect', { body, as: 'app', repeatable: !consume });
    }
    /**
     * Verifies a key that a client of your own API presented, and counts `consume` calls against its limits; none is
     * counted if a limit would be exceeded. Not retried, since your client is waiting and a retry could count the calls
     * twice. Concurrent verifications share requests.
     *
     * @throws KeywayError `rate_limited` (429) and `quota_exhausted` (402), with `retryAfter` where waiting helps;
     *   `forbidden` for a key whose calls this app may not count
     */
    verifyKey(key, { consume } = {}) {
        return this.#verifier.verify(key, consume);
    }
    /**
     * A page of the keys, sessions and accounts that ended after `cursor`, but within the last 20 minutes, oldest first.
     * Without a cursor the page begins 20 minutes ago. A later page may repeat an entry.
     */
    revocations({ cursor, signal, } = {}) {
        return this.#transport.call('GET', '/v1/revocations', { query: { cursor }, as: 'app', signal });
    }
    /**
     * Yields the keys, sessions and accounts that ended in the last 20 minutes (or within them since `cursor`), and those
     * that end from now on, so that a server of your own can end their connections. An entry may come twice. Continues
     * after outages of the service; returns when the signal aborts; throws an error that is not retryable.
     */
    async *followRevocations(options = {}) {
        const { everyMs = POLL_INTERVAL_MS, signal, onCaughtUp } = options;
        let { cursor } = options;
        while (!signal?.aborted) {
            const page = await this.revocations({ cursor, signal }).catch(error => {
                if (!signal?.aborted && !(error instanceof KeywayError && error.retryable))
                    throw error;
            });
            if (page) {
                yield* page.data;
                cursor = page.next_cursor ?? cursor;
                if (page.has_more)
                    continue;
                onCaughtUp?.();
            }
            await pause(systemClock, everyMs, signal).catch(() => { });
        }
    }
}
