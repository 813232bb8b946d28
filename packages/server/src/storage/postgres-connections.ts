import pg from 'pg'
import { SECOND } from '../clock.ts'
import { unavailable } from '../errors.ts'
import type { Result } from './engine.ts'
import { createWriteSemaphore } from './write-semaphore.ts'

/** Fraction of the pool that writers may use; the rest is reserved for reads, which never wait for row locks. */
const WRITERS_SHARE = 0.7
/** Maximum number of calls waiting for a connection; further calls are refused at once. */
const MAX_WAITING = 1000
/** How long to wait for a new or free connection; `connect_timeout` in the URL (seconds, as for libpq) overrides it. */
const CONNECT_TIMEOUT_MS = 2000
const STATEMENT_TIMEOUT_MS = 5000
const LOCK_TIMEOUT_MS = 2000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000

const INT8_OID = 20

/**
 * Lends connections of the pool; writers get at most WRITERS_SHARE of them. `acquire` rejects with KeywayError
 * `unavailable` if it gets none. `release(true)` discards a connection.
 */
export interface Connections {
  acquire(purpose: 'read' | 'write'): Promise<{ client: pg.PoolClient; release(broken?: boolean): void }>
}

export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'keyway',
    keepAlive: true,
    connectionTimeoutMillis: connectTimeoutMs(url),
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    // The client's own timeout, for a database that is too overloaded to apply the timeouts above.
    query_timeout: STATEMENT_TIMEOUT_MS + 1000,
    // Parsers are set for these connections only, not for all users of the library. The service's 64-bit integers are
    // instants, counts and micro-dollars, which are exact as doubles.
    types: {
      getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
        oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  }
}

function connectTimeoutMs(url: string): number {
  const seconds = Number(new URL(url).searchParams.get('connect_timeout'))
  return seconds > 0 ? seconds * SECOND : CONNECT_TIMEOUT_MS
}

export function createConnections(pool: pg.Pool, poolSize: number): Connections {
  const writeSemaphore = createWriteSemaphore({
    permits: Math.max(1, Math.floor(poolSize * WRITERS_SHARE)),
    maxWaiting: MAX_WAITING,
    timeoutMs: pool.options.connectionTimeoutMillis ?? CONNECT_TIMEOUT_MS,
  })
  return {
    async acquire(purpose) {
      if (purpose === 'read') return connect()
      await writeSemaphore.acquire()
      try {
        const { client, release } = await connect()
        return {
          client,
          release(broken) {
            release(broken)
            writeSemaphore.release()
          },
        }
      } catch (error) {
        writeSemaphore.release()
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

/**
 * Lends a connection to `work`. Discards it after an error, unless the database reported the error and left the
 * connection open.
 */
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

export async function runStatement(
  client: pg.ClientBase,
  sql: string,
  parameters: readonly unknown[],
): Promise<Result> {
  const result = await client.query(sql, parameters as unknown[])
  return { rows: result.rows, changes: result.rowCount ?? 0 }
}
