import { errorFromProblem, KeywayError } from '../errors.js';
/** With this many requests in progress further verifications wait, and then share one request. */
const MAX_IN_PROGRESS = 4;
/** The number of keys that the service accepts in one request. */
const MAX_KEYS = 32;
/** Maximum characters of the keys of one request. The service accepts a body of 24 KiB. */
const MAX_CHARACTERS = 20_000;
/**
 * Credentials that may share a request: keys and tokens have no other characters (RFC 6750 section 2.1). Anything else
 * is verified in a request of its own, so that no stranger's malformed credential can make a shared request fail.
 */
const SHAREABLE_CREDENTIAL = /^[\w.~+/=-]{1,2000}$/;
/**
 * Verifies API keys; concurrent verifications share requests. Under load this saves most requests; without load no
 * verification waits.
 */
export class KeyVerifier {
    #transport;
    #waiting = [];
    #inProgress = 0;
    constructor(transport) {
        this.#transport = transport;
    }
    verify(key, consume) {
        return new Promise((resolve, reject) => {
            this.#waiting.push({ key, consume, resolve, reject });
            if (this.#inProgress < MAX_IN_PROGRESS)
                void this.#sendBatches();
        });
    }
    async #sendBatches() {
        this.#inProgress++;
        for (;;) {
            // Lets the running synchronous code finish, so that all verifications it starts are sent together.
            await Promise.resolve();
            const batch = this.#waiting.splice(0, nextBatchSize(this.#waiting));
            if (batch.length === 0)
                break;
            await this.#send(batch);
        }
        this.#inProgress--;
    }
    /** Never rejects: an error rejects the promises of the batch instead. */
    async #send(batch) {
        if (batch.length === 1)
            return this.#sendAlone(batch[0]);
        try {
            const tokens = batch.map(({ key, consume }) => ({ token: key, consume }));
            const { data } = await this.#transport.call('POST', '/auth/introspections', { body: { tokens }, as: 'app' });
            for (const [n, { resolve, reject }] of batch.entries()) {
                const answer = data[n];
                if (answer === undefined)
                    reject(new KeywayError('bad_response', 'The response lacks a key.'));
                else if ('error' in answer)
                    reject(errorFromProblem(answer.error));
                else
                    resolve(answer);
            }
        }
        catch (error) {
            if (countedNothing(error))
                await Promise.all(batch.map(each => this.#sendAlone(each)));
            else
                for (const { reject } of batch)
                    reject(error);
        }
    }
    async #sendAlone({ key, consume, resolve, reject }) {
        await this.#transport
            .call('POST', '/auth/introspect', { body: { token: key, consume }, as: 'app' })
            .then(resolve, reject);
    }
}
/** How many of the waiting verifications, from the first one on, share the next request. */
function nextBatchSize(waiting) {
    let characters = 0;
    const end = waiting.slice(0, MAX_KEYS).findIndex(each => {
        characters += isShareable(each) ? each.key.length : Number.POSITIVE_INFINITY;
        return characters > MAX_CHARACTERS;
    });
    return end < 0 ? Math.min(waiting.length, MAX_KEYS) : Math.max(1, end);
}
/** Whether it may share a request with others. Checks types too, since callers may use plain JavaScript. */
function isShareable({ key, consume }) {
    return (typeof key === 'string' &&
        SHAREABLE_CREDENTIAL.test(key) &&
        (consume === undefined || Number.isInteger(consume)));
}
/**
 * Whether the service refused the whole request, as malformed, as too large, or because an older version does not know
 * its path. No call was counted then, so each key may be sent again, alone.
 */
function countedNothing(error) {
    return error instanceof KeywayError && [400, 404, 413].includes(error.status ?? 0);
}
