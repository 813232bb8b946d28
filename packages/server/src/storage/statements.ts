import { type RawBuilder, sql } from 'kysely'
import type { Db, LookUp } from './engine.ts'

/** Executes the statements of a store, within a transaction or outside. */
export interface Statements {
  db: Db
  /** Runs several statements in the current transaction, or in a new one. */
  atomically<Outcome>(work: (db: Db) => Promise<Outcome>): Promise<Outcome>
  lookUp(definition: LookUp, key: string): Promise<unknown>
  /** See `Engine.binaryCollation`. */
  binaryCollation: string
  /** See `Engine.jsonElements`. */
  jsonElements: string
  /** See `Engine.hasIndex`. */
  hasIndex?(name: string): Promise<boolean>
  /** See `Engine.indexedBy`. */
  indexedBy(index: string): string
}

export function toList(text: string): string[] {
  // Parsing is skipped for the empty list, which most keys have as their scopes and as their networks.
  return text === '[]' ? [] : (JSON.parse(text) as string[])
}

/** The number of rows that a DELETE removed. */
export function countOf(result: { numDeletedRows: bigint }): number {
  return Number(result.numDeletedRows)
}

/** Rows per statement, so that building it blocks the event loop for less than a millisecond. */
export const CHUNK_SIZE = 100

export function* inChunks<Item>(items: readonly Item[], size = CHUNK_SIZE): Generator<Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

/** Rows per statement with `jsonRows`: more than CHUNK_SIZE, since a statement with one parameter is built faster. */
export const JSON_CHUNK_SIZE = 1000

/**
 * Rows of values for a statement that writes many, as one parameter: a parameter for each value costs more than the
 * write itself, on the way to SQLite's thread or to PostgreSQL. Column n is `value->>n`. Numbers must be cast, since
 * PostgreSQL returns them as text and SQLite as numbers.
 */
export function jsonRows(
  { jsonElements }: Pick<Statements, 'jsonElements'>,
  rows: readonly (readonly (string | number | null)[])[],
): RawBuilder<unknown> {
  return sql`${sql.raw(jsonElements)}(${JSON.stringify(rows)})`
}
