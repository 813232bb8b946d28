/**
 * Deduplicates messages that were written to two overlapping sessions (`HubSession`) of an agent. Repeated ids in one
 * session are not dropped, so a sender that reuses ids loses nothing.
 */
export declare class RecentIds {
    #private;
    /** False if the id arrived in another session before. */
    add(id: string, session: object): boolean;
}
