import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { makeFolder, makePrivateFile, restrictToOwner } from '../folders.ts'
import type { Log } from '../log.ts'
import type { Connection, Engine, LookUp, Result } from './engine.ts'
import { createListeners } from './listeners.ts'
import { toReadError, toStartError } from './sqlite-errors.ts'
import { createGroupCommit } from './sqlite-group-commit.ts'
import { readSnapshot } from './sqlite-snapshot.ts'
import { type SqliteValue, toSqliteValues } from './sqlite-values.ts'
import { startWriter, type Writer } from './sqlite-writer-client.ts'
import { retryAtStart } from './start-retries.ts'

/** Lets Kysely send statements concurrently, which its SQLite adapter does not do; the writer queues them. */
class QueueingAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Interval at which a server polls for changes by commands, which run in other processes and send it no events. */
const POLL_INTERVAL_MS = 500

export interface SqliteEngine extends Engine {
  /** Number of commits. Under load it is lower than that of transactions, several of which share a commit. */
  readonly commitCount: number
}

/**
 * SQLite in WAL mode: every commit is on disk before it is acknowledged. One thread writes, and the main thread only
 * reads. A second process (a command while the service runs) may write too, and waits up to two seconds for the lock.
 */
export async function openSqlite(file: string, log: Log): Promise<SqliteEngine> {
  const writer = await retryAtStart(log, () =>
    startWriterOn(file).catch(error => {
      throw toStartError(file, error)
    }),
  )
  const reader = openReader(file)
  const { subscribe, deliver } = createListeners(log)
  const groupCommit = createGroupCommit(writer, deliver)

  return {
    get commitCount() {
      return groupCommit.commitCount
    },
    dialect: {
      createAdapter: () => new QueueingAdapter(),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createIntrospector: db => new SqliteIntrospector(db),
    },
    connection: {
      async execute(sql, parameters) {
        if (isRead(sql)) return reader.execute(sql, parameters)
        return groupCommit.transaction(tx => tx.execute(sql, parameters))
      },
    },
    events: {
      subscribe,
      async publish(event) {
        deliver(event)
      },
      health: () => ({ listening: true }),
    },
    pollInterval: POLL_INTERVAL_MS,
    failure: writer.failure,
    // `readBack` is not needed: the outcome of a COMMIT is known unless the process ends.
    transaction: work => groupCommit.transaction(work),
    // No mutex: transactions are serialized anyway and share commits.
    runExclusive: (_rows, work) => work(),
    async lookUp(definition, key) {
      return reader.findFirst(definition, key)
    },
    binaryCollation: 'collate binary',
    jsonElements: 'json_each',
    indexedBy,
    snapshot: work => readSnapshot(file, work),
    appendOnly: (table, mayDelete) => {
      const triggerBody = `begin select raise(abort, '${table} only grows'); end`
      const condition = mayDelete ? `when (${mayDelete}) is not true ` : ''
      return [
        `create trigger ${table}_no_update before update on ${table} ${triggerBody}`,
        `create trigger ${table}_no_delete before delete on ${table} ${condition}${triggerBody}`,
      ]
    },
    trigramIndex: () => [],
    refuseTruncate: () => [], // SQLite has no TRUNCATE, and an unconditional DELETE fires the trigger
    clockReference: 'system',
    async readClock() {
      const { rows } = await reader.execute(
        `select cast((julianday('now') - 2440587.5) * 86400000.0 as integer) as now`,
        [],
      )
      return (rows[0] as { now: number }).now
    },
    toStartError: error => error, // startWriterOn has already converted errors of the file
    load: () => ({ connections: 1, idle: groupCommit.waiting === 0 ? 1 : 0, waiting: groupCommit.waiting }),
    async close() {
      await groupCommit.finish()
      // The reader is closed before the writer: the last connection checkpoints the WAL, which a read-only one cannot.
      reader.close()
      await writer.close()
    },
  }
}

const COMPANION_SUFFIXES = ['-wal', '-shm', '-journal']

async function startWriterOn(file: string): Promise<Writer> {
  makeFolder(dirname(file))
  // SQLite creates its companion files with the mode of the database file; those that a killed process left may have
  // another mode.
  makePrivateFile(file)
  for (const companion of COMPANION_SUFFIXES) restrictToOwner(file + companion)
  return startWriter(file)
}

function indexedBy(index: string): string {
  return `indexed by ${index}`
}

function isRead(sql: string): boolean {
  return /^\s*select\b/i.test(sql)
}

interface Reader extends Connection {
  findFirst(definition: LookUp, key: string): unknown
  close(): void
}

/** Maximum number of cached prepared statements. */
const MAX_STATEMENTS = 500
/**
 * Maximum size of the page cache. SQLite's default of 2 MiB holds the pages of some hundred keys: with that default a
 * look-up of one of a thousand keys among ten million took 12 µs instead of 7, before there was the partial index of
 * owners that are not active (see bench/growth.ts).
 */
const READ_CACHE_KIB = 32 * 1024

function openReader(file: string): Reader {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 1000 })
  database.exec(`pragma cache_size = -${READ_CACHE_KIB}`)
  const statementsBySql = new Map<string, PreparedQuery>()
  const lookUps = new Map<LookUp, PreparedQuery>()
  const prepare = (sql: string) => {
    let statement = statementsBySql.get(sql)
    if (!statement) {
      if (statementsBySql.size >= MAX_STATEMENTS) statementsBySql.clear()
      statement = prepareQuery(database, sql)
      statementsBySql.set(sql, statement)
    }
    return statement
  }
  return {
    async execute(sql, parameters): Promise<Result> {
      return convertReadErrors(() => ({ rows: prepare(sql)(toSqliteValues(parameters)), changes: 0 }))
    },
    findFirst(definition, key) {
      return convertReadErrors(() => {
        let lookUp = lookUps.get(definition)
        if (!lookUp) {
          lookUp = prepareQuery(
            database,
            `${definition.select({ indexedBy })} where ${definition.column} = ?`,
          )
          lookUps.set(definition, lookUp)
        }
        return lookUp([key])[0]
      })
    },
    close: () => database.close(),
  }
}

type PreparedQuery = (parameters: SqliteValue[]) => Record<string, unknown>[]

/**
 * Prepares a query that reads rows as arrays, and converts them to objects here, which is not slower. A row that Node
 * builds as an object leaves 72 bytes in the old generation; at ten thousand exchanges a second that causes a full
 * garbage collection, with a pause of 20 ms, every few seconds.
 */
function prepareQuery(database: DatabaseSync, sql: string): PreparedQuery {
  const statement = database.prepare(sql)
  const names = statement.columns().map(({ name }) => name)
  statement.setReturnArrays(true)
  return parameters => {
    const rows = statement.all(...parameters) as unknown as SqliteValue[][]
    return rows.map(values => toRow(names, values))
  }
}

function toRow(names: readonly string[], values: readonly SqliteValue[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let index = 0; index < names.length; index++) row[names[index]!] = values[index]
  return row
}

function convertReadErrors<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw toReadError(error)
  }
}
