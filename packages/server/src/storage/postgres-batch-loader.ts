import { hash } from 'node:crypto'
import type pg from 'pg'
import { isStatementNameConflict, toStorageError } from './postgres-errors.ts'

const MAX_KEYS = 500

interface PendingLookUp {
  key: string
  resolve(row: unknown): void
  reject(error: unknown): void
}

/** Shared by the loaders of one pool: after the first error of named statements none of the loaders uses them. */
export interface StatementNames {
  /**
   * Whether named prepared statements work. They do not work behind a pooler in transaction mode that does not track
   * them (PgBouncer before 1.21): on the next connection a statement may be missing, or exist already.
   */
  areUsable: boolean
}

/**
 * Returns a function that looks up a row by its key, and resolves with undefined if there is none. The look-ups of one
 * turn of the event loop are batched in prepared queries of at most MAX_KEYS keys. Nothing is cached: each key is read
 * after its look-up was called, so earlier revocations are always seen.
 */
export function createBatchLoader(
  select: string,
  column: string,
  query: (config: pg.QueryConfig) => Promise<unknown[]>,
  names: StatementNames,
): (key: string) => Promise<unknown> {
  const resultColumn = column.slice(column.lastIndexOf('.') + 1)
  const text = `${select} where ${column} = any($1)`
  // The name is derived from the text, since a pooler may lend a connection on which another version of this service
  // has prepared its statements: a name must not refer to a different statement there.
  const name = `look_up_${hash('sha256', text).slice(0, 32)}`
  let pendingLookUps: PendingLookUp[] = []

  async function load(batch: PendingLookUp[]): Promise<void> {
    try {
      const rows = await queryByName([...new Set(batch.map(({ key }) => key))])
      const rowsByKey = new Map(rows.map(row => [(row as Record<string, string>)[resultColumn], row]))
      for (const { key, resolve } of batch) resolve(rowsByKey.get(key))
    } catch (error) {
      for (const { reject } of batch) reject(toStorageError(error))
    }
  }

  async function queryByName(keys: string[]): Promise<unknown[]> {
    const unnamedQuery = { text, values: [keys] }
    if (!names.areUsable) return query(unnamedQuery)
    try {
      return await query({ ...unnamedQuery, name })
    } catch (error) {
      if (!isStatementNameConflict(error)) throw error
      names.areUsable = false
      return query(unnamedQuery)
    }
  }

  function flush(): void {
    const lookUps = pendingLookUps
    pendingLookUps = []
    for (let start = 0; start < lookUps.length; start += MAX_KEYS) {
      void load(lookUps.slice(start, start + MAX_KEYS))
    }
  }

  return key =>
    new Promise((resolve, reject) => {
      if (pendingLookUps.length === 0) setImmediate(flush)
      pendingLookUps.push({ key, resolve, reject })
    })
}
