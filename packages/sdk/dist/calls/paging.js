/** Every item of a list, page by page. */
export async function* everyItem(page) {
    let cursor;
    do {
        const { data, next_cursor } = await page(cursor);
        yield* data;
        cursor = next_cursor ?? undefined;
    } while (cursor !== undefined);
}
