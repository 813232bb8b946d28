import type { Page } from '@keyway/sdk/protocol'
import { DAY, type Instant } from './clock.ts'

/** Where a list goes on: everything strictly older than this row. Ids are UUIDv7 and break ties of one millisecond. */
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
  /** Null when nothing older is left. */
  next: Position | null
}

/** Cuts what a store read with `limit + 1` rows into one slice. */
export function toSlice<Row>(rows: Row[], limit: number, position: (row: Row) => Position): Slice<Row> {
  const kept = rows.slice(0, limit)
  const last = kept.at(-1)
  return { rows: kept, next: rows.length > limit && last ? position(last) : null }
}

/** How every list is answered. */
export function page<Row, Item>(slice: Slice<Row>, toItem: (row: Row) => Item): Page<Item> {
  return {
    data: slice.rows.map(toItem),
    has_more: slice.next !== null,
    next_cursor: slice.next && encodeCursor(slice.next),
  }
}

/** Opaque to clients; holds nothing that could be used to read another's rows, since every list is scoped by its owner. */
export function encodeCursor(position: Position): string {
  return Buffer.from(`${position.at.toString(36)}.${position.id}`).toString('base64url')
}

const FARTHEST: Instant = 100_000 * DAY

/** The position that a cursor names, or null for what no list here made. */
export function decodeCursor(cursor: string): Position | null {
  const match = /^([0-9a-z]{1,10})\.([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString())
  if (!match) return null
  const at = Number.parseInt(match[1]!, 36)
  return at <= FARTHEST ? { at, id: match[2]! } : null
}
