import type { Page } from '../protocol.js';
/** Parameters of a list. */
export interface PageOptions {
    /** 1 to 100, default 50. */
    limit?: number | undefined;
    /** `next_cursor` of the previous page. */
    cursor?: string | undefined;
}
/** Every item of a list, page by page. */
export declare function everyItem<Item>(page: (cursor: string | undefined) => Promise<Page<Item>>): AsyncGenerator<Item, void>;
