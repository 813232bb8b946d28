import { KeywayError } from './errors.js';
/** Maximum number of buffered messages of a slow iterator. */
const MAX_BUFFERED = 10_000;
/** An asynchronous iterator over items that are pushed into it, for one consumer. */
export class MessageStream {
    #buffer = [];
    #pendingReads = [];
    #ended;
    #items;
    #onReturn;
    /** @param items what the messages are called in errors, in the plural */
    constructor(onReturn, items = 'messages') {
        this.#onReturn = onReturn;
        this.#items = items;
    }
    push(message) {
        if (this.#ended)
            return;
        const read = this.#pendingReads.shift();
        if (read)
            read.resolve({ value: message, done: false });
        else
            this.#buffer.push(message);
        if (this.#buffer.length <= MAX_BUFFERED)
            return;
        this.#buffer.length = 0;
        const advice = `More than ${MAX_BUFFERED} ${this.#items} waited to be read. Read faster.`;
        this.end(new KeywayError('queue_full', advice));
        this.#onReturn(this);
    }
    /** Buffered messages are still delivered; then the iteration ends, or throws the error. */
    end(error) {
        if (this.#ended)
            return;
        this.#ended = { error };
        for (const read of this.#pendingReads.splice(0))
            this.#finish(read);
    }
    next() {
        const result = newResult();
        const message = this.#buffer.shift();
        if (message !== undefined)
            result.resolve({ value: message, done: false });
        else if (this.#ended)
            this.#finish(result);
        else
            this.#pendingReads.push(result);
        return result.promise;
    }
    return() {
        this.end();
        this.#onReturn(this);
        return Promise.resolve({ value: undefined, done: true });
    }
    [Symbol.asyncIterator]() {
        return this;
    }
    #finish(result) {
        const error = this.#ended?.error;
        this.#ended = {}; // an error is thrown once
        if (error)
            result.reject(error);
        else
            result.resolve({ value: undefined, done: true });
    }
}
/** `Promise.withResolvers` is not in Node 20. */
function newResult() {
    let callbacks;
    const promise = new Promise((resolve, reject) => {
        callbacks = { resolve, reject };
    });
    return { promise, ...callbacks };
}
