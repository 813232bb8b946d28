import { randomId } from './environment.js';
import { KeywayError } from './errors.js';
import { REQUEST_ID_PREFIX } from './protocol.js';
/** Maximum number of requests without an answer; more are refused at once. */
export const MAX_PENDING_REQUESTS = 1000;
const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 86_400_000;
/** The requests of this agent that have no answer yet (docs/hub-protocol.md, section 3). */
export class Requests {
    #clock;
    #send;
    #pending = new Map();
    #idPrefix = `${REQUEST_ID_PREFIX}${randomId()}-`;
    #counter = 0;
    constructor(clock, send) {
        this.#clock = clock;
        this.#send = send;
    }
    /**
     * Resolves with the first result. Rejects once every receiver answered with an error, at the timeout, when the signal
     * aborts, or if the request is refused or cannot be sent.
     */
    async request(to, data, { timeout = DEFAULT_TIMEOUT_MS, signal }) {
        if (!(timeout > 0 && timeout <= MAX_TIMEOUT_MS))
            throw invalidTimeoutError();
        signal?.throwIfAborted();
        if (this.#pending.size >= MAX_PENDING_REQUESTS)
            throw tooManyPendingError();
        const id = this.#idPrefix + ++this.#counter;
        const sendController = new AbortController();
        const abort = () => this.#remove(id)?.reject(signal?.reason);
        const cancel = this.#clock.after(timeout, () => this.#remove(id)?.reject(timeoutError(timeout)));
        signal?.addEventListener('abort', abort, { once: true });
        try {
            return await new Promise((resolve, reject) => {
                const acknowledgement = this.#send({ id, to, data }, sendController.signal);
                this.#pending.set(id, {
                    resolve,
                    reject,
                    receivers: null,
                    refusedBy: new Set(),
                    refusal: undefined,
                });
                acknowledgement.then(delivery => this.#sent(id, delivery), error => this.#remove(id)?.reject(error));
            });
        }
        finally {
            cancel();
            signal?.removeEventListener('abort', abort);
            sendController.abort(); // Has no effect on sends that the hub has acknowledged.
        }
    }
    /**
     * Handles a message that is an answer, and returns whether it is; drops an answer that no request of this agent
     * awaits.
     */
    handleAnswer({ from, reply_to, data }) {
        if (reply_to === undefined || !reply_to.startsWith(REQUEST_ID_PREFIX))
            return false;
        const pending = this.#pending.get(reply_to);
        if (!pending)
            return true;
        const answer = toAnswer(data);
        if ('result' in answer)
            this.#remove(reply_to)?.resolve(answer.result);
        else {
            pending.refusedBy.add(from);
            if (answer.error.code !== 'no_handler' || !pending.refusal)
                pending.refusal = refusalError(answer.error);
            this.#rejectIfAllRefused(reply_to, pending);
        }
        return true;
    }
    rejectAll(error) {
        for (const id of [...this.#pending.keys()])
            this.#remove(id)?.reject(error);
    }
    #sent(id, { delivered, held = 0 }) {
        const pending = this.#pending.get(id);
        if (!pending)
            return;
        pending.receivers = delivered + held;
        if (pending.receivers === 0)
            this.#remove(id)?.reject(noRespondersError());
        else
            this.#rejectIfAllRefused(id, pending);
    }
    /** The number of receivers comes with the acknowledgement, which may arrive after their answers. */
    #rejectIfAllRefused(id, { receivers, refusedBy, refusal }) {
        if (receivers !== null && refusedBy.size >= receivers)
            this.#remove(id)?.reject(refusal);
    }
    #remove(id) {
        const pending = this.#pending.get(id);
        this.#pending.delete(id);
        return pending;
    }
}
/** Data that is not an `Answer` is itself the result, so that clients without this convention can answer. */
function toAnswer(data) {
    if (typeof data !== 'object' || data === null || Array.isArray(data))
        return { result: data };
    const { result, error } = data;
    if (isErrorMember(error))
        return { error };
    return { result: result === undefined ? data : result };
}
function isErrorMember(error) {
    if (typeof error !== 'object' || error === null || Array.isArray(error))
        return false;
    return typeof error.code === 'string' && typeof error.message === 'string';
}
function refusalError({ code, message }) {
    if (code === 'no_handler')
        return noRespondersError();
    return new KeywayError('request_failed', message, { reason: code, retryable: code === 'busy' });
}
function noRespondersError() {
    const advice = 'No agent that answers requests is connected there. Check the id, or try again later.';
    return new KeywayError('no_responders', advice, { retryable: true });
}
function timeoutError(timeout) {
    const message = `No answer came within ${timeout} ms. The request may have been handled all the same.`;
    return new KeywayError('timeout', message, { retryable: true });
}
function tooManyPendingError() {
    const message = `${MAX_PENDING_REQUESTS} requests wait for their answers. Await request() before sending more.`;
    return new KeywayError('queue_full', message, { retryable: true });
}
function invalidTimeoutError() {
    const message = `timeout: must be more than 0 and at most ${MAX_TIMEOUT_MS} milliseconds, for example 5000.`;
    return new KeywayError('invalid_configuration', message);
}
