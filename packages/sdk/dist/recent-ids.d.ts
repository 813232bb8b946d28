/**
 * Deduplicates messages that were written to two overlapping connections of an agent. Repeated ids on the same
 * connection are not dropped, so a sender that reuses ids loses nothing.
 */
export declare class RecentIds {
    #private;
    /** False if the id arrived over another connection before. */
    add(id: string, connection: object): boolean;
}
