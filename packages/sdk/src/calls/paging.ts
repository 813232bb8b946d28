import type { Page } from '../protocol.ts'

/** Parameters of a list. */
export interface PageOptions {
  /** 1 to 100, default 50. */
  limit?: number | undefined
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined
}

/** Every item of a list, page by page. */
export async function* everyItem<Item>(
  page: (cursor: string | undefined) => Promise<Page<Item>>,
): AsyncGenerator<Item, void> {
  let cursor: string | undefined
  do {
    const { data, next_cursor } = await page(cursor)
    yield* data
    cursor = next_cursor ?? undefined
  } while (cursor !== undefined)
}
