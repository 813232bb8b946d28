/** How many ids are remembered: more than any overlap of two connections brings. */
const CAPACITY = 1024;
/** Remembers the last 1024 ids, so that a message which came twice is given out once. */
export class RecentIds {
    #ids = new Set();
    /** True when the id was not seen lately. */
    add(id) {
        if (this.#ids.has(id))
            return false;
        this.#ids.add(id);
        if (this.#ids.size > CAPACITY)
            this.#ids.delete(this.#ids.values().next().value);
        return true;
    }
}
