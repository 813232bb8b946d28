/** Number of ids kept: more than arrive while two connections overlap. */
const CAPACITY = 1024;
/**
 * Deduplicates messages that were written to two overlapping sessions (`HubSession`) of an agent. Repeated ids in one
 * session are not dropped, so a sender that reuses ids loses nothing.
 */
export class RecentIds {
    #firstSessions = new Map();
    /** False if the id arrived in another session before. */
    add(id, session) {
        const firstSession = this.#firstSessions.get(id);
        if (firstSession)
            return firstSession === session;
        this.#firstSessions.set(id, session);
        if (this.#firstSessions.size > CAPACITY)
            this.#firstSessions.delete(this.#firstSessions.keys().next().value);
        return true;
    }
}
