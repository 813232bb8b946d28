/** Maximum wait for the pong, which a node that shuts down delays by up to 2 s, until earlier messages have arrived. */
const MAX_PONG_WAIT_MS = 2_500;
/**
 * Preserves message order while an agent moves to a new connection. Messages on the old connection may arrive after
 * later ones on the new connection; so the old connection is pinged, and messages of the new one are buffered until the
 * pong arrives.
 */
export class Handover {
    #clock;
    #deliver;
    #inProgress;
    constructor(clock, deliver) {
        this.#clock = clock;
        this.#deliver = deliver;
    }
    begin(from, to) {
        this.end();
        if (!from.send({ type: 'ping' }))
            return;
        const cancel = this.#clock.after(MAX_PONG_WAIT_MS, () => this.end());
        this.#inProgress = { from, to, buffered: [], cancel };
    }
    arrived(connection, frame) {
        if (this.#inProgress?.to === connection)
            this.#inProgress.buffered.push(frame);
        else
            this.#deliver(connection, frame);
    }
    /**
     * Called when a connection received a pong or was closed: ends the handover from it or to it. After the pong or the
     * close of the old one, no earlier message can arrive any more; after the close of the new one, none is buffered.
     */
    caughtUp(connection) {
        if (this.#inProgress?.from === connection || this.#inProgress?.to === connection)
            this.end();
    }
    /** Ends the handover, and delivers the buffered messages. */
    end() {
        const handover = this.#inProgress;
        this.#inProgress = undefined;
        handover?.cancel();
        for (const frame of handover?.buffered ?? [])
            this.#deliver(handover.to, frame);
    }
}
