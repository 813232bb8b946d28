/** Exchange, handshake and `ready` together may take this long; then the attempt counts as failed. */
const DIAL_TIMEOUT_MS = 10_000;
/**
 * A handshake that nobody has answered by then is begun anew. Node opens WebSockets over connections that it kept
 * from earlier requests, so after a silence of the line the first handshake may go to nobody.
 */
const SECOND_LINE_AFTER_MS = 3_000;
/** One attempt to be connected: a token, a handshake, and `ready` within 10 s. */
export class Dial {
    #options;
    #connection;
    #over = false;
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
    /** Its connection is ready, and no longer its matter. */
    succeeded() {
        this.#over = true;
        for (const cancel of this.#cancelTimers)
            cancel();
    }
    giveUp() {
        this.succeeded();
        this.#connection?.close();
    }
    fail(why) {
        if (this.#over)
            return;
        this.giveUp();
        this.#options.onFailed(why);
    }
    #open(token) {
        if (this.#over)
            return;
        this.#connection = this.#options.open(token);
        this.#after(SECOND_LINE_AFTER_MS, () => {
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
