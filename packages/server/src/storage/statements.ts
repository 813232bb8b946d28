import type { Db, LookUp } from './engine.ts'

/** Executes the statements of a store, within a transaction or outside. */
export interface Statements {
  db: Db
  /** Runs several statements in the current transaction, or in a new one. */
  atomically<Outcome>(work: (db: Db) => Promise<Outcome>): Promise<Outcome>
  lookUp(definition: LookUp, key: string): Promise<unknown>
  /** See `Engine.binaryCollation`. */
  binaryCollation: string
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

export function* inChunks<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let start = 0; start < items.length; start += CHUNK_SIZE) yield items.slice(start, start + CHUNK_SIZE)
}
