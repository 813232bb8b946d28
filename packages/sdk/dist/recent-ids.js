/** How many ids are remembered: more than any overlap of two connections brings. */
const CAPACITY = 1024;
/**
 * Remembers which message came over which connection, so that one that was written to two connections of an agent
 * is given out once. Over one connection ids are the sender's affair: who numbers carelessly loses nothing.
 */
export class RecentIds {
    #first = new Map();
    /** True unless the id came over another connection before. */
    add(id, connection) {
        const first = this.#first.get(id);
        if (first)
            return first === connection;
        this.#first.set(id, connection);
        if (this.#first.size > CAPACITY)
            this.#first.delete(this.#first.keys().next().value);
        return true;
    }
}
