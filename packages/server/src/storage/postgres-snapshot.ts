import type pg from 'pg'
import type { ReadInBatches } from './engine.ts'
import type { Connections } from './postgres-connections.ts'
import { toStorageError } from './postgres-errors.ts'

const ROWS_PER_BATCH = 1000

export async function readSnapshot<Outcome>(
  connections: Connections,
  work: (read: ReadInBatches) => Promise<Outcome>,
): Promise<Outcome> {
  const { client, release } = await connections.acquire('read')
  try {
    await client.query('begin isolation level repeatable read read only')
    const outcome = await work(sql => readBatches(client, sql))
    await client.query('commit')
    release()
    return outcome
  } catch (error) {
    release(true)
    throw toStorageError(error)
  }
}

async function* readBatches(client: pg.PoolClient, sql: string): AsyncIterable<Record<string, unknown>[]> {
  await client.query(`declare reading no scroll cursor for ${sql}`)
  for (;;) {
    const { rows } = await client.query(`fetch ${ROWS_PER_BATCH} from reading`)
    if (rows.length === 0) break
    yield rows
  }
  await client.query('close reading')
}
