import type { Position, Slice } from '../paging.ts'

/** Maximum number of rows that are read for a page if a filter has no index, so that no filter makes a page slow. */
export const MAX_SCANNED = 1000

/** The number of rows to read for a page: one more than it shows, or the maximum if they are filtered afterwards. */
export function rowsToRead(limit: number, isFiltered: boolean): number {
  return isFiltered ? MAX_SCANNED : limit + 1
}

/**
 * A page of the rows that match the filter. The next page continues after the last row shown, or, if all matches are
 * shown but more rows may be unread, after the last row read. `next` is null if no rows are left.
 */
export function filteredSlice<Row>(
  rowsRead: readonly Row[],
  limit: number,
  isFiltered: boolean,
  matches: (row: Row) => boolean,
  position: (row: Row) => Position,
): Slice<Row> {
  const matchingRows = rowsRead.filter(matches)
  const rows = matchingRows.slice(0, limit)
  if (matchingRows.length > limit) return { rows, next: position(rows.at(-1)!) }
  const mayHaveMore = isFiltered && rowsRead.length === MAX_SCANNED
  return { rows, next: mayHaveMore ? position(rowsRead.at(-1)!) : null }
}
