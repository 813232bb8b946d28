/**
 * Remembers which message came over which connection, so that one that was written to two connections of an agent
 * is given out once. Over one connection ids are the sender's affair: who numbers carelessly loses nothing.
 */
export declare class RecentIds {
    #private;
    /** True unless the id came over another connection before. */
    add(id: string, connection: object): boolean;
}
