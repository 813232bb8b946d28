import { DatabaseSync } from 'node:sqlite'
import type { ReadInBatches } from './engine.ts'

const ROWS_PER_BATCH = 1000

/** Reads in one transaction: in WAL mode it sees a snapshot as of its first read, and blocks no writer. */
export async function readSnapshot<Outcome>(
  file: string,
  work: (read: ReadInBatches) => Promise<Outcome>,
): Promise<Outcome> {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 2000 })
  try {
    database.exec('begin')
    return await work(sql => readBatches(database, sql))
  } finally {
    database.close()
  }
}

async function* readBatches(database: DatabaseSync, sql: string): AsyncIterable<Record<string, unknown>[]> {
  let batch: Record<string, unknown>[] = []
  for (const row of database.prepare(sql).iterate()) {
    batch.push({ ...row })
    if (batch.length < ROWS_PER_BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
