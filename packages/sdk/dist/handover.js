/** Longer than the hub itself waits for its other nodes. */
const LONGEST_WAIT_MS = 2_500;
/**
 * Preserves message order while an agent moves to a new connection. Messages on the old connection may arrive after
 * later ones on the new connection; so the old one is pinged, and messages of the new one are buffered until its
 * pong.
 */
export class Handover {
    #clock;
    #deliver;
    #under;
    constructor(clock, deliver) {
        this.#clock = clock;
        this.#deliver = deliver;
    }
    begin(from, to) {
        this.end();
        if (!from.send({ type: 'ping' }))
            return;
        const cancel = this.#clock.after(LONGEST_WAIT_MS, () => this.end());
        this.#under = { from, to, waiting: [], cancel };
    }
    arrived(connection, frame) {
        if (this.#under?.to === connection)
            this.#under.waiting.push(frame);
        else
            this.#deliver(connection, frame);
    }
    /** Called when all messages of that connection have arrived: it answered the ping, or it is closed. */
    caughtUp(connection) {
        if (this.#under?.from === connection || this.#under?.to === connection)
            this.end();
    }
    /** Delivers the buffered messages. */
    end() {
        const ended = this.#under;
        this.#under = undefined;
        ended?.cancel();
        for (const frame of ended?.waiting ?? [])
            this.#deliver(ended.to, frame);
    }
}
