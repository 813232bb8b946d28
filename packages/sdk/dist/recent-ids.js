/** Number of ids kept: more than arrive while two connections overlap. */
const CAPACITY = 1024;
/**
 * Deduplicates messages that were written to two overlapping connections of an agent. Repeated ids on the same
 * connection are not dropped, so a sender that reuses ids loses nothing.
 */
export class RecentIds {
    #firstConnections = new Map();
    /** False if the id arrived over another connection before. */
    add(id, connection) {
        const firstConnection = this.#firstConnections.get(id);
        if (firstConnection)
            return firstConnection === connection;
        this.#firstConnections.set(id, connection);
        if (this.#firstConnections.size > CAPACITY)
            this.#firstConnections.delete(this.#firstConnections.keys().next().value);
        return true;
    }
}
