import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { makeFolder, makePrivateFile, withdrawFromOthers } from '../folders.ts'
import type { Log } from '../log.ts'
import type { Connection, Engine, LookUp, Result } from './engine.ts'
import { createListeners } from './listeners.ts'
import { toReadError, toStartError } from './sqlite-errors.ts'
import { createGroupCommit } from './sqlite-group-commit.ts'
import { snapshotOf } from './sqlite-snapshot.ts'
import { type SqliteValue, toSqliteValues } from './sqlite-values.ts'
import { startWriter, type Writer } from './sqlite-writer-client.ts'

/** Kysely would send one statement at a time; the writer's own queue is there to take many. */
class QueueingAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Events stay within one process: a server notices by looking, and so within a second, what a command changed. */
const LOOK_AGAIN_EVERY_MS = 500

export interface SqliteEngine extends Engine {
  /** Outer commits so far: far fewer than transactions when many come at once. */
  readonly commits: number
}

/**
 * SQLite in this process: WAL, every commit on disk before it is acknowledged, one writer thread, and this
 * thread only reads. A second process may write too (commands beside a running service) and waits its turn.
 */
export async function openSqlite(file: string, log: Log): Promise<SqliteEngine> {
  const writer = await startWriterOn(file).catch(error => {
    throw toStartError(file, error)
  })
  const reader = openReader(file)
  const { subscribe, deliver } = createListeners(log)
  const group = createGroupCommit(writer, deliver)

  return {
    get commits() {
      return group.commits
    },
    dialect: {
      createAdapter: () => new QueueingAdapter(),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createIntrospector: db => new SqliteIntrospector(db),
    },
    connection: {
      async execute(sql, parameters) {
        if (isRead(sql)) return reader.execute(sql, parameters)
        return group.transaction(tx => tx.execute(sql, parameters))
      },
    },
    events: {
      subscribe,
      async publish(event) {
        deliver(event)
      },
      health: () => ({ listening: true }),
    },
    lookAgainEvery: LOOK_AGAIN_EVERY_MS,
    failure: writer.failure,
    // No COMMIT is ever unknown here: the writer answers or the process is gone.
    transaction: work => group.transaction(work),
    // One writer serves everybody, and shares its commits among those who wait: turns would only be slower.
    inTurn: (_rows, work) => work(),
    async lookUp(what, key) {
      return reader.first(what, key)
    },
    indexedBy,
    snapshot: work => snapshotOf(file, work),
    appendOnly: table =>
      ['update', 'delete'].map(
        verb =>
          `create trigger ${table}_no_${verb} before ${verb} on ${table} begin select raise(abort, '${table} only grows'); end`,
      ),
    refuseTruncate: () => [], // no statement of its own: an unconditional DELETE fires the trigger as well
    clockReference: 'system',
    async readClock() {
      const { rows } = await reader.execute(
        `select cast((julianday('now') - 2440587.5) * 86400000.0 as integer) as now`,
        [],
      )
      return (rows[0] as { now: number }).now
    },
    toStartError: error => error, // opening the file has told already what can be mended
    load: () => ({ connections: 1, idle: group.waiting === 0 ? 1 : 0, waiting: group.waiting }),
    async close() {
      await group.finish()
      // Before the writer: the last to close empties the log into the file, which a reader may not do.
      reader.close()
      await writer.close()
    },
  }
}

const COMPANIONS = ['-wal', '-shm', '-journal']

async function startWriterOn(file: string): Promise<Writer> {
  makeFolder(dirname(file))
  // SQLite gives its companions the mode of the database; those that a killed process left may be older than that.
  makePrivateFile(file)
  for (const companion of COMPANIONS) withdrawFromOthers(file + companion)
  return startWriter(file)
}

function indexedBy(index: string): string {
  return `indexed by ${index}`
}

function isRead(sql: string): boolean {
  return /^\s*select\b/i.test(sql)
}

interface Reader extends Connection {
  first(what: LookUp, key: string): unknown
  close(): void
}

const MAX_STATEMENTS = 500
/**
 * Pages that are kept at most. SQLite's own 2 MiB hold those of some hundred keys: with them a look-up of one of a
 * thousand among ten million took 12 µs instead of 7, before the index of decision 11 (bench/growth.ts has the whole exchange).
 */
const READ_CACHE_KIB = 32 * 1024

function openReader(file: string): Reader {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 1000 })
  database.exec(`pragma cache_size = -${READ_CACHE_KIB}`)
  const statements = new Map<string, Query>()
  const lookUps = new Map<LookUp, Query>()
  const prepare = (sql: string) => {
    let statement = statements.get(sql)
    if (!statement) {
      if (statements.size >= MAX_STATEMENTS) statements.clear()
      statement = prepareQuery(database, sql)
      statements.set(sql, statement)
    }
    return statement
  }
  return {
    async execute(sql, parameters): Promise<Result> {
      return answering(() => ({ rows: prepare(sql)(toSqliteValues(parameters)), changes: 0 }))
    },
    first(what, key) {
      return answering(() => {
        let lookUp = lookUps.get(what)
        if (!lookUp) {
          lookUp = prepareQuery(database, `${what.select({ indexedBy })} where ${what.column} = ?`)
          lookUps.set(what, lookUp)
        }
        return lookUp([key])[0]
      })
    },
    close: () => database.close(),
  }
}

type Query = (parameters: SqliteValue[]) => Record<string, unknown>[]

/**
 * A row that Node builds as an object leaves 72 bytes in the old generation, which only a full collection takes away;
 * at ten thousand exchanges a second that is one every few seconds, and a delay of 20 ms with each. So rows come as
 * arrays and become objects here, which is not slower.
 */
function prepareQuery(database: DatabaseSync, sql: string): Query {
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

function answering<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw toReadError(error)
  }
}
