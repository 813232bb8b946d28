import pg from 'pg'
import { unavailable } from '../errors.ts'
import type { Result } from './engine.ts'
import { createWritePlaces } from './write-places.ts'

/** The part of the pool that writers may hold; the rest is for reads, which wait for nobody's row. */
const WRITERS_SHARE = 0.7
/** More waiting than this is a stuck database: say so at once instead of queueing up. */
const MAX_WAITING = 1000
/** Also how long a call may wait for a free connection. */
const CONNECT_TIMEOUT_MS = 2000
const STATEMENT_TIMEOUT_MS = 5000
const LOCK_TIMEOUT_MS = 2000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000

const INT8 = 20

/** Gives one connection for a while, to writers only as many as their share. `broken`: it shall not be used again. */
export interface Connections {
  acquire(purpose: 'read' | 'write'): Promise<{ client: pg.PoolClient; release(broken?: boolean): void }>
}

export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'keyway',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    // For a database that has stopped answering at all, so that its own timeouts never arrive.
    query_timeout: STATEMENT_TIMEOUT_MS + 1000,
    // On the connection, not for the whole process: 64-bit integers here are instants and micro-dollars, all
    // of them exact in a double.
    types: {
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  }
}

/** @param poolSize connections of the pool at most */
export function createConnections(pool: pg.Pool, poolSize: number): Connections {
  const writers = createWritePlaces({
    places: Math.max(1, Math.floor(poolSize * WRITERS_SHARE)),
    maxWaiting: MAX_WAITING,
    patience: CONNECT_TIMEOUT_MS,
  })
  return {
    async acquire(purpose) {
      if (purpose === 'read') return connect()
      await writers.enter()
      try {
        const { client, release } = await connect()
        return {
          client,
          release(broken) {
            release(broken)
            writers.leave()
          },
        }
      } catch (error) {
        writers.leave()
        throw error
      }
    },
  }

  async function connect(): ReturnType<Connections['acquire']> {
    if (pool.waitingCount >= MAX_WAITING) {
      throw unavailable(new Error('too many calls wait for a database connection'))
    }
    try {
      const client = await pool.connect()
      return { client, release: broken => client.release(broken) }
    } catch (error) {
      throw unavailable(error)
    }
  }
}

/** Lends a connection to `work`; one that broke is not used again. */
export async function withConnection<Outcome>(
  connections: Connections,
  purpose: 'read' | 'write',
  work: (client: pg.PoolClient) => Promise<Outcome>,
): Promise<Outcome> {
  const { client, release } = await connections.acquire(purpose)
  try {
    const outcome = await work(client)
    release()
    return outcome
  } catch (error) {
    release(!(error instanceof pg.DatabaseError) || error.severity === 'FATAL')
    throw error
  }
}

export async function run(
  client: pg.ClientBase,
  sql: string,
  parameters: readonly unknown[],
): Promise<Result> {
  const result = await client.query(sql, parameters as unknown[])
  return { rows: result.rows, changes: result.rowCount ?? 0 }
}
