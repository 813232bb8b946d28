/** Longer than the hub itself waits for its other nodes before it answers. */
const LONGEST_WAIT_MS = 2_500;
/**
 * Keeps messages in their order while an agent moves from one connection to the next. What the old one has taken may
 * still be on its way when the new one brings what came after it; so the old one is asked for a pong, and what the new
 * one brings waits until it is there.
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
    /** That connection has brought all that it had taken: it answered the ping, or it is over. */
    caughtUp(connection) {
        if (this.#under?.from === connection || this.#under?.to === connection)
            this.end();
    }
    /** What waits is given out. */
    end() {
        const ended = this.#under;
        this.#under = undefined;
        ended?.cancel();
        for (const frame of ended?.waiting ?? [])
            this.#deliver(ended.to, frame);
    }
}
