import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import pg from 'pg'
import type { Config } from '../config.ts'
import { unavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Engine, LookUp, Result } from './engine.ts'
import { createEventCarrier } from './event-carrier.ts'
import {
  describeError,
  isConnectionGone,
  isRetryable,
  toStartError,
  toStorageError,
} from './postgres-errors.ts'
import { createGatherer } from './postgres-gather.ts'
import { snapshotOf } from './postgres-snapshot.ts'
import { createTransactions } from './postgres-transactions.ts'
import { createRowTurns } from './row-turns.ts'
import { createWritePlaces, type WritePlaces } from './write-places.ts'

const POOL_SIZE = 20
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

/** PostgreSQL, or what speaks its protocol. Several nodes share one. */
export async function openPostgres(
  {
    url,
    events: carrier,
    secrets,
    poolSize = POOL_SIZE,
  }: { url: string; poolSize?: number } & Pick<Config, 'events' | 'secrets'>,
  log: Log,
): Promise<Engine> {
  const pool = new pg.Pool({ ...connectionOptions(url), pipeline: true, max: poolSize })
  // An idle connection that breaks is taken out of the pool; unheard, its error would end the process.
  pool.on('error', error => log.warn({ error: describeError(error) }, 'an idle database connection broke'))
  // A lent one tells whoever waits for an answer, and emits a second copy of the error. Heard from the first moment:
  // a server that shuts down can say so in the very packet that lets the connection in.
  pool.on('connect', client => client.on('error', ignore))
  const writers = createWritePlaces({
    places: Math.max(1, Math.floor(poolSize * WRITERS_SHARE)),
    maxWaiting: MAX_WAITING,
    patience: CONNECT_TIMEOUT_MS,
  })
  const connections = toConnections(pool, writers)

  const execute = async (sql: string, parameters: readonly unknown[]): Promise<Result> =>
    withConnection(connections, isRead(sql) ? 'read' : 'write', client => run(client, sql, parameters))
  const gatherers = new Map<LookUp, (key: string) => Promise<unknown>>()
  const events = await createEventCarrier(carrier, { secrets, log, execute })
  try {
    await events.start()
  } catch (error) {
    await pool.end()
    throw toStartError(toStorageError(error))
  }

  return {
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: db => new PostgresIntrospector(db),
    },
    connection: { execute: (sql, parameters) => retrying(isRead(sql), () => execute(sql, parameters)) },
    events,
    transaction: createTransactions(connections, events, log),
    inTurn: createRowTurns(),
    lookUp(what, key) {
      let gather = gatherers.get(what)
      if (!gather) {
        gather = createGatherer(what.select({ indexedBy }), what.column, (query: pg.QueryConfig) =>
          retrying(true, () =>
            withConnection(connections, 'read', async client => (await client.query(query)).rows),
          ),
        )
        gatherers.set(what, gather)
      }
      return gather(key)
    },
    indexedBy,
    snapshot: work => snapshotOf(connections, work),
    appendOnly: table => [
      `create function ${table}_refuse() returns trigger language plpgsql as $$ begin raise exception '${table} only grows'; end $$`,
      `create trigger ${table}_only_grows before update or delete on ${table} for each row execute function ${table}_refuse()`,
    ],
    // TRUNCATE fires no trigger of rows. Also where it comes from a table that this one refers to, by CASCADE.
    refuseTruncate: table => [
      `create trigger ${table}_no_truncate before truncate on ${table} for each statement execute function ${table}_refuse()`,
    ],
    clockReference: 'database',
    async readClock() {
      const read = () =>
        execute(`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now`, [])
      const { rows } = await retrying(true, read)
      return (rows[0] as { now: number }).now
    },
    async standbys() {
      const { rows } = await retrying(true, () =>
        execute(
          `select count(*) filter (where sync_state in ('sync', 'quorum')) as synchronous,
            count(*) filter (where sync_state = 'async') as asynchronous from pg_stat_replication`,
          [],
        ),
      )
      return rows[0] as { synchronous: number; asynchronous: number }
    },
    toStartError,
    load: () => ({ connections: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    async close() {
      await events.stop()
      await pool.end()
    },
  }
}

function toConnections(pool: pg.Pool, writers: WritePlaces): Connections {
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

/**
 * A single statement is its own transaction, so what the engine refused to serialize is simply asked again. A
 * read may be asked again also where the connection was gone already, as all are when a server restarts.
 */
async function retrying<Outcome>(isRead: boolean, work: () => Promise<Outcome>): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const again = isRetryable(error) || (isRead && isConnectionGone(error))
      if (attempt > 3 || !again) throw toStorageError(error)
    }
  }
}

function isRead(sql: string): boolean {
  return /^\s*select\b(?!.*\bpg_notify\b)/is.test(sql)
}

async function withConnection<Outcome>(
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

/** The planner knows how many users are not active, and takes the partial index by itself where that helps. */
function indexedBy(): string {
  return ''
}

function ignore(): void {}
