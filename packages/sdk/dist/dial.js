/** Timeout of an attempt: exchange, handshake and `ready` together. */
const DIAL_TIMEOUT_MS = 10_000;
/**
 * If the handshake has no response after this time, its connection is closed and another one opened, once. Node opens
 * WebSockets over pooled connections, so after a network interruption the first handshake may use a dead one.
 */
const SECOND_HANDSHAKE_AFTER_MS = 3_000;
/** One connection attempt: token, handshake, and `ready` within 10 s. */
export class Dial {
    #options;
    #connection;
    #ended = false;
    #cancelTimers = [];
    constructor(options) {
        this.#options = options;
        this.#after(DIAL_TIMEOUT_MS, () => this.fail({ code: 1006, reason: 'no answer in time' }));
        options.tokens
            .get()
            .then(token => this.#open(token))
            .catch(error => this.fail(error));
    }
    owns(connection) {
        return this.#connection === connection;
    }
    /** Ends the attempt and leaves its connection open. */
    finish() {
        this.#ended = true;
        for (const cancel of this.#cancelTimers)
            cancel();
    }
    giveUp() {
        this.finish();
        this.#connection?.close();
    }
    fail(failure) {
        if (this.#ended)
            return;
        this.giveUp();
        this.#options.onFailed(failure);
    }
    #open(token) {
        if (this.#ended)
            return;
        this.#connection = this.#options.open(token);
        this.#after(SECOND_HANDSHAKE_AFTER_MS, () => {
            if (this.#connection?.isOpen)
                return;
            this.#connection?.close();
            this.#connection = this.#options.open(token);
        });
    }
    #after(ms, callback) {
        this.#cancelTimers.push(this.#options.clock.after(ms, callback));
    }
}
