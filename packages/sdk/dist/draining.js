/** How long after the announced end a drained connection is kept open. */
const MARGIN_MS = 5_000;
const LONGEST_MS = 60_000;
/** Connections whose nodes shut down, until they are closed. */
export class Draining {
    #clock;
    #cancels = new Map();
    constructor(clock) {
        this.#clock = clock;
    }
    /**
     * @param onOverdue called when the node has not closed it in time
     * @returns milliseconds until the node closes it; undefined if it is drained already
     */
    begin(connection, closeInSeconds, onOverdue) {
        if (this.#cancels.has(connection))
            return undefined;
        const endsIn = Math.max(0, Math.min(closeInSeconds * 1000, LONGEST_MS));
        this.#cancels.set(connection, this.#clock.after(endsIn + MARGIN_MS, onOverdue));
        return endsIn;
    }
    ended(connection) {
        this.#cancels.get(connection)?.();
        this.#cancels.delete(connection);
    }
    closeAll() {
        for (const connection of [...this.#cancels.keys()]) {
            this.ended(connection);
            connection.close();
        }
    }
}
