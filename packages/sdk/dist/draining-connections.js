/** How long a connection is kept open after the announced time of its close, for the node to close it. */
const MARGIN_MS = 5_000;
/** Upper bound of the time after which a node announces to close a connection; a longer announced time is cut. */
const MAX_CLOSE_IN_MS = 60_000;
/** The open connections to nodes that are shutting down. */
export class DrainingConnections {
    #clock;
    #cancelTimers = new Map();
    constructor(clock) {
        this.#clock = clock;
    }
    /**
     * @param onOverdue called when the node has not closed the connection in time
     * @returns milliseconds until the node closes the connection; undefined if it was added before
     */
    add(connection, closeInSeconds, onOverdue) {
        if (this.#cancelTimers.has(connection))
            return undefined;
        const closesInMs = Math.max(0, Math.min(closeInSeconds * 1000, MAX_CLOSE_IN_MS));
        this.#cancelTimers.set(connection, this.#clock.after(closesInMs + MARGIN_MS, onOverdue));
        return closesInMs;
    }
    remove(connection) {
        this.#cancelTimers.get(connection)?.();
        this.#cancelTimers.delete(connection);
    }
    closeAll() {
        for (const connection of [...this.#cancelTimers.keys()]) {
            this.remove(connection);
            connection.close();
        }
    }
}
