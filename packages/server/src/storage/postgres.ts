import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import pg from 'pg'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import { createEventCarrier } from './configured-carrier.ts'
import type { Engine, LookUp, Result } from './engine.ts'
import { createKeyedMutex } from './keyed-mutex.ts'
import { createBatchLoader } from './postgres-batch-loader.ts'
import { connectionOptions, createConnections, runStatement, withConnection } from './postgres-connections.ts'
import {
  describeError,
  isConnectionRefusedOrClosed,
  isRetryable,
  toStartError,
  toStorageError,
} from './postgres-errors.ts'
import { readSnapshot } from './postgres-snapshot.ts'
import { createTransactions } from './postgres-transactions.ts'

const POOL_SIZE = 20

/**
 * Opens PostgreSQL or a compatible database, which several nodes may share.
 *
 * @throws CannotStart, KeywayError `unavailable`, or another error of the database unchanged
 */
export async function openPostgres(
  {
    url,
    events: carrierConfig,
    secrets,
    poolSize = POOL_SIZE,
  }: { url: string; poolSize?: number } & Pick<Config, 'events' | 'secrets'>,
  log: Log,
): Promise<Engine> {
  const pool = new pg.Pool({
    ...connectionOptions(url),
    pipeline: true,
    max: poolSize,
    onConnect: refuseStandby,
  })
  // The pool removes a broken idle connection; without a listener its `error` event would end the process.
  pool.on('error', error => log.warn({ error: describeError(error) }, 'an idle database connection broke'))
  // A connection that breaks in use rejects its pending queries and also emits `error`. The listener is added at once,
  // since a server that shuts down may send the error in the same packet as the end of the handshake.
  pool.on('connect', client => client.on('error', ignore))
  const connections = createConnections(pool, poolSize)

  const execute = async (sql: string, parameters: readonly unknown[]): Promise<Result> =>
    withConnection(connections, isRead(sql) ? 'read' : 'write', client =>
      runStatement(client, sql, parameters),
    )
  const statementNames = { areUsable: true }
  const batchLoaders = new Map<LookUp, (key: string) => Promise<unknown>>()
  const events = await createEventCarrier(carrierConfig, { secrets, log, execute })
  try {
    await events.start()
  } catch (error) {
    // `start` also queries through the pool: if only that failed, the connection for events is open.
    await events.stop()
    await pool.end()
    throw toStartError(toStorageError(error))
  }

  return {
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: db => new PostgresIntrospector(db),
    },
    connection: { execute: (sql, parameters) => withRetries(isRead(sql), () => execute(sql, parameters)) },
    events,
    transaction: createTransactions(connections, events, log),
    runExclusive: createKeyedMutex(),
    lookUp(definition, key) {
      let load = batchLoaders.get(definition)
      if (!load) {
        const query = (config: pg.QueryConfig) =>
          withRetries(true, () =>
            withConnection(connections, 'read', async client => (await client.query(config)).rows),
          )
        load = createBatchLoader(definition.select({ indexedBy }), definition.column, query, statementNames)
        batchLoaders.set(definition, load)
      }
      return load(key)
    },
    binaryCollation: 'collate "C"',
    jsonElements: 'jsonb_array_elements',
    indexedBy,
    snapshot: work => readSnapshot(connections, work),
    appendOnly: (table, mayDelete) => [
      `create function ${table}_refuse() returns trigger language plpgsql as $$ begin
        ${mayDelete ? `if tg_op = 'DELETE' and (${mayDelete}) then return old; end if;` : ''}
        raise exception '${table} only grows'; end $$`,
      `create trigger ${table}_only_grows before update or delete on ${table} for each row execute function ${table}_refuse()`,
    ],
    // TRUNCATE fires no row triggers. This trigger also fires for TRUNCATE ... CASCADE on a referenced table.
    refuseTruncate: table => [
      `create trigger ${table}_no_truncate before truncate on ${table} for each statement execute function ${table}_refuse()`,
    ],
    // A separate block, whose failure undoes nothing else: the extension may be missing, or not allowed. New entries of
    // the index are collected in a pending list until an insert merges them all; the list is short (64 kB, some hundred
    // sign-ups), so that this insert does not take long.
    trigramIndex: (name, table, column) => [
      `do $$ begin
        create extension if not exists pg_trgm;
        create index ${name} on ${table} using gin (${column} gin_trgm_ops) with (gin_pending_list_limit = 64);
      exception when others then raise notice 'no index by trigrams: %', sqlerrm;
      end $$`,
    ],
    async hasIndex(name) {
      const { rows } = await execute('select to_regclass($1) is not null as found', [name])
      return (rows[0] as { found: boolean }).found
    },
    clockReference: 'database',
    async readClock() {
      const queryTime = () =>
        execute(`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now`, [])
      const { rows } = await withRetries(true, queryTime)
      return (rows[0] as { now: number }).now
    },
    async standbys() {
      // An ordinary role sees that there are standbys, but not their state.
      const { rows } = await withRetries(true, () =>
        execute(
          `select count(*) as count, coalesce(current_setting('synchronous_standby_names', true), '') <> ''
            and current_setting('synchronous_commit', true) not in ('off', 'local') as "isSynchronous"
            from pg_stat_replication where coalesce(state, 'streaming') <> 'backup'`,
          [],
        ),
      )
      return rows[0] as { count: number; isSynchronous: boolean }
    },
    async hasTimeouts() {
      const settings = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
      const { rows } = await execute(
        `select bool_and(setting <> '0') as "all" from pg_settings where name = any($1)`,
        [settings],
      )
      return (rows[0] as { all: boolean }).all
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
 * A single statement is its own transaction, so it is retried, up to three times, after the errors of `isRetryable`. A
 * read is also retried after a connection error other than a timeout, since a restart of the server closes all
 * connections of the pool. Rejects with the last error, converted by `toStorageError`.
 */
export async function withRetries<Outcome>(isRead: boolean, work: () => Promise<Outcome>): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const mayRetry = isRetryable(error) || (isRead && isConnectionRefusedOrClosed(error))
      if (attempt > 3 || !mayRetry) throw toStorageError(error)
    }
  }
}

/**
 * Rejects a connection to a standby, which the database's host name may resolve to during a failover: a standby's rows
 * may be stale, so that a revoked key would still work.
 */
async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query('select pg_is_in_recovery() as standby')
  if (rows[0].standby) throw new Error('the connection leads to a standby, and the service needs the primary')
}

function isRead(sql: string): boolean {
  return /^select\b/i.test(sql.trimStart()) && !sql.toLowerCase().includes('pg_notify')
}

/** Returns no hint, since PostgreSQL chooses the right index by its statistics, partial ones too. */
function indexedBy(): string {
  return ''
}

function ignore(): void {}
