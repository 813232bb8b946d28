import type pg from 'pg'
import { toStorageError } from './postgres-errors.ts'

/** Keys per query. */
const MAX_KEYS = 500

interface Waiting {
  key: string
  resolve(row: unknown): void
  reject(error: unknown): void
}

let names = 0

/**
 * Look-ups of one turn of the event loop share one prepared query. Nothing is cached: each key is read after its
 * look-up was called, so earlier revocations are always seen.
 */
export function createBatchLoader(
  select: string,
  column: string,
  query: (config: pg.QueryConfig) => Promise<unknown[]>,
): (key: string) => Promise<unknown> {
  const name = `look_up_${++names}`
  const returned = column.slice(column.lastIndexOf('.') + 1)
  const text = `${select} where ${column} = any($1)`
  let waiting: Waiting[] = []

  async function load(asked: Waiting[]): Promise<void> {
    try {
      const rows = await query({ name, text, values: [[...new Set(asked.map(one => one.key))]] })
      const found = new Map(rows.map(row => [(row as Record<string, string>)[returned], row]))
      for (const one of asked) one.resolve(found.get(one.key))
    } catch (error) {
      for (const one of asked) one.reject(toStorageError(error))
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
