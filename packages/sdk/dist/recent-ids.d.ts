/** Remembers the last 1024 ids, so that a message which came twice is given out once. */
export declare class RecentIds {
    #private;
    /** True when the id was not seen lately. */
    add(id: string): boolean;
}
