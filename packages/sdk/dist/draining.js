/** How long after the announced time a connection that the node has not closed is kept open. */
const MARGIN_MS = 5_000;
/** Longest announced time until the close that is believed. */
const MAX_CLOSE_IN_MS = 60_000;
/** Connections whose nodes shut down, until they are closed. */
export class Draining {
    #clock;
    #cancelTimers = new Map();
    constructor(clock) {
        this.#clock = clock;
    }
    /**
     * @param onOverdue called when the node has not closed the connection in time
     * @returns milliseconds until the node closes the connection; undefined if it is draining already
     */
    begin(connection, closeInSeconds, onOverdue) {
        if (this.#cancelTimers.has(connection))
            return undefined;
        const closesInMs = Math.max(0, Math.min(closeInSeconds * 1000, MAX_CLOSE_IN_MS));
        this.#cancelTimers.set(connection, this.#clock.after(closesInMs + MARGIN_MS, onOverdue));
        return closesInMs;
    }
    ended(connection) {
        this.#cancelTimers.get(connection)?.();
        this.#cancelTimers.delete(connection);
    }
    closeAll() {
        for (const connection of [...this.#cancelTimers.keys()]) {
            this.ended(connection);
            connection.close();
        }
    }
}
