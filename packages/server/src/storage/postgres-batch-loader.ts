import { hash } from 'node:crypto'
import type pg from 'pg'
import { isStatementNameConflict, toStorageError } from './postgres-errors.ts'

/** Keys per query. */
const MAX_KEYS = 500

interface Waiting {
  key: string
  resolve(row: unknown): void
  reject(error: unknown): void
}

/**
 * Whether named prepared statements work. They do not behind a pooler in transaction mode that does not track them
 * (PgBouncer before 1.21): on the next connection a statement may be missing, or exist already.
 */
export interface StatementNames {
  areUsable: boolean
}

/**
 * Look-ups of one turn of the event loop share one prepared query. Nothing is cached: each key is read after its
 * look-up was called, so earlier revocations are always seen.
 */
export function createBatchLoader(
  select: string,
  column: string,
  query: (config: pg.QueryConfig) => Promise<unknown[]>,
  names: StatementNames,
): (key: string) => Promise<unknown> {
  const returned = column.slice(column.lastIndexOf('.') + 1)
  const text = `${select} where ${column} = any($1)`
  // Derived from the text: on a connection that others used before, a name must never stand for another statement.
  const name = `look_up_${hash('sha256', text).slice(0, 32)}`
  let waiting: Waiting[] = []

  async function load(asked: Waiting[]): Promise<void> {
    try {
      const rows = await queryByName([...new Set(asked.map(one => one.key))])
      const found = new Map(rows.map(row => [(row as Record<string, string>)[returned], row]))
      for (const one of asked) one.resolve(found.get(one.key))
    } catch (error) {
      for (const one of asked) one.reject(toStorageError(error))
    }
  }

  async function queryByName(keys: string[]): Promise<unknown[]> {
    const unnamed = { text, values: [keys] }
    if (!names.areUsable) return query(unnamed)
    try {
      return await query({ ...unnamed, name })
    } catch (error) {
      if (!isStatementNameConflict(error)) throw error
      names.areUsable = false
      return query(unnamed)
    }
  }

  function flush(): void {
    const asked = waiting
    waiting = []
    for (let start = 0; start < asked.length; start += MAX_KEYS) {
      void load(asked.slice(start, start + MAX_KEYS))
    }
  }

  return key =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush)
      waiting.push({ key, resolve, reject })
    })
}
