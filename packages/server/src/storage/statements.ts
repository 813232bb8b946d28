import type { Db, LookUp } from './engine.ts'

/** Where a noun's statements run: inside one transaction, or outside of any. */
export interface Statements {
  db: Db
  /** Several statements as one: joins the transaction that is open, or opens one. */
  atomically<Outcome>(work: (db: Db) => Promise<Outcome>): Promise<Outcome>
  lookUp(what: LookUp, key: string): Promise<unknown>
}

export function toList(text: string): string[] {
  return JSON.parse(text) as string[]
}

/** What a bounded clean-up removed. */
export function countOf(result: { numDeletedRows: bigint }): number {
  return Number(result.numDeletedRows)
}
