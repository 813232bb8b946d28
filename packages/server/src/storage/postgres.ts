import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import pg from 'pg'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import { createEventCarrier } from './configured-carrier.ts'
import type { Engine, LookUp, Result } from './engine.ts'
import { connectionOptions, createConnections, run, withConnection } from './postgres-connections.ts'
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

const POOL_SIZE = 20

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
  const connections = createConnections(pool, poolSize)

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

/** The planner knows how many users are not active, and takes the partial index by itself where that helps. */
function indexedBy(): string {
  return ''
}

function ignore(): void {}
