import { errorFromProblem, KeywayError } from '../errors.js';
/** Requests in progress beyond which further verifications wait, and then share one request. */
const MAX_IN_PROGRESS = 4;
/** The service's limit for one request. */
const MAX_KEYS = 32;
/**
 * Verifies keys, those that are asked for at the same time by one request: a busy API then spends a fraction of the
 * requests, and one that is not waits no longer.
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
                void this.#work();
        });
    }
    async #work() {
        this.#inProgress++;
        for (;;) {
            // The calls of one turn of the event loop come together.
            await Promise.resolve();
            const batch = this.#waiting.splice(0, MAX_KEYS);
            if (batch.length === 0)
                break;
            await this.#send(batch);
        }
        this.#inProgress--;
    }
    /** Never rejects. */
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
            // A service of an earlier version, which counted nothing.
            if (error instanceof KeywayError && error.status === 404)
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
