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
     * Called when a connection received a pong. Ends the handover from it with the pong that answers the handover's ping,
     * the last of its pings: then no earlier message can arrive any more.
     */
    pongArrived(connection) {
        if (this.#inProgress?.from === connection && !connection.awaitsPong)
            this.end();
    }
    /**
     * Called when a connection was closed: ends the handover from it or to it. After the close of the old connection no
     * earlier message can arrive any more; after that of the new one no further message is buffered.
     */
    closed(connection) {
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
