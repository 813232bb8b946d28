/** The part of the Web Locks API that is used. A lock ends with the tab that holds it. */
export interface WebLocks {
    request<Answer>(name: string, callback: () => Promise<Answer>): Promise<Answer>;
}
/** The Web Locks of the platform; undefined if it has none. Browsers have them on https and localhost only. */
export declare function webLocks(): WebLocks | undefined;
