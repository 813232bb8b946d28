import type { Page } from '@keyway/sdk/protocol'
import { DAY, type Instant } from './clock.ts'

/**
 * Position of a row for keyset pagination: the next page has strictly older rows; in the feed of revocations, newer
 * ones. Ids break ties within a millisecond.
 */
export interface Position {
  at: Instant
  id: string
}

export interface PageRequest {
  limit: number
  after: Position | null
}

export interface Slice<Row> {
  rows: Row[]
  /** Null on the last page. */
  next: Position | null
}

/** Builds a slice from up to `limit + 1` rows; the extra row shows that there are more. */
export function toSlice<Row>(rows: Row[], limit: number, position: (row: Row) => Position): Slice<Row> {
  const pageRows = rows.slice(0, limit)
  const lastRow = pageRows.at(-1)
  return { rows: pageRows, next: rows.length > limit && lastRow ? position(lastRow) : null }
}

/** The response body of a list. */
export function page<Row, Item>(slice: Slice<Row>, toItem: (row: Row) => Item): Page<Item> {
  return {
    data: slice.rows.map(toItem),
    has_more: slice.next !== null,
    next_cursor: slice.next && encodeCursor(slice.next),
  }
}

/**
 * Opaque to clients, but not secret: a forged cursor only names another position in the same list, and every list
 * contains only rows that its reader may see.
 */
export function encodeCursor(position: Position): string {
  return Buffer.from(`${position.at.toString(36)}.${position.id}`).toString('base64url')
}

/** In the year 2243. No row has a later time, so a cursor with one is forged. */
const LATEST_POSITION: Instant = 100_000 * DAY

/** Null if the cursor is invalid. */
export function decodeCursor(cursor: string): Position | null {
  const match = /^([0-9a-z]{1,10})\.([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString())
  if (!match) return null
  const at = Number.parseInt(match[1]!, 36)
  return at <= LATEST_POSITION ? { at, id: match[2]! } : null
}
