import {
  type Dialect,
  Kysely,
  type DatabaseConnection as KyselyConnection,
  type QueryResult as KyselyResult,
} from 'kysely'
import type { ClockReference, Instant } from '../clock.ts'
import type { Event, Events } from '../events.ts'
import type { KeyedMutex } from './keyed-mutex.ts'
import type { Schema } from './schema.ts'

/** The query builder, bound to a transaction or to the connection for single statements. */
export type Db = Kysely<Schema>

export interface Result {
  rows: unknown[]
  /** Number of rows written; has no meaning for a statement that only reads. */
  changes: number
}

export interface Connection {
  execute(sql: string, parameters: readonly unknown[]): Promise<Result>
}

/** A query for one row by a unique column, for hot paths: engines may prepare and batch it. */
export interface LookUp {
  /**
   * The statement without `where`. It must return the column by its own name, and must not use `*`: it is prepared
   * once, and the next version may add columns while this one runs.
   */
  select(engine: Pick<Engine, 'indexedBy'>): string
  /** The name of the column, qualified if the statement joins tables (`k.id`). */
  column: string
}

export interface EngineTransaction extends Connection {
  publish(event: Event): void
}

export interface EventsHealth {
  /**
   * Whether this process exchanges events with others in both directions, as far as its connections and its last test
   * event show.
   */
  listening: boolean
  /**
   * Milliseconds from sending to receiving the last test event that arrived. Absent while `listening` is false, before
   * the first one has arrived, and where events do not leave the process.
   */
  lagMs?: number
  /**
   * Number of sealed parts of events received since the start, whether or not they are accepted; absent where events do
   * not leave the process.
   */
  received?: number
  /** Number of rejected events since the start, by reason; absent where events do not leave the process. */
  rejected?: ReadonlyMap<string, number>
}

/** Load of the database connections, for metrics. */
export interface EngineLoad {
  connections: number
  idle: number
  /**
   * Calls that wait for a connection of PostgreSQL's pool (without the writers that `WriteSemaphore` holds back), or
   * for SQLite's single writer.
   */
  waiting: number
}

/** Streams the rows of a query in batches, so that no table has to fit in memory. */
export type ReadInBatches = (sql: string) => AsyncIterable<Record<string, unknown>[]>

/**
 * The operations that differ between SQLite and PostgreSQL: statements, transactions and events. They are independent
 * of the tables.
 */
export interface Engine {
  /** Executes statements outside of transactions. */
  readonly connection: Connection
  readonly dialect: Pick<Dialect, 'createAdapter' | 'createQueryCompiler' | 'createIntrospector'>
  readonly events: Events & { health(): EventsHealth }
  /**
   * The interval in milliseconds at which caches must be refreshed, if changes by other processes cause no event in
   * this one. Absent if every process receives all events.
   */
  readonly pollInterval?: number
  transaction<Outcome>(
    work: (tx: EngineTransaction) => Promise<Outcome>,
    readBack?: () => Promise<Outcome | undefined>,
  ): Promise<Outcome>
  /** See `Storage.runExclusive`. An engine in which waiting for a row occupies no connection runs `work` directly. */
  runExclusive: KeyedMutex
  lookUp(definition: LookUp, key: string): Promise<unknown>
  /** SQL to append to a column that is compared and sorted by its bytes, so that an index serves prefix searches. */
  readonly binaryCollation: string
  /** The function that returns the elements of a JSON array as rows, in their order, each in the column `value`. */
  readonly jsonElements: string
  /** An index hint to append to a table's name; empty if the engine needs no hint. */
  indexedBy(index: string): string
  /** Reads from a consistent snapshot, without blocking writers. */
  snapshot<Outcome>(work: (read: ReadInBatches) => Promise<Outcome>): Promise<Outcome>
  /**
   * Statements that make the engine refuse UPDATE and DELETE on a table. If `mayDelete`, a condition on `old`, is true
   * for a row, the row may be deleted.
   */
  appendOnly(table: string, mayDelete?: string): string[]
  /** Statements that make the engine refuse TRUNCATE on an append-only table, if it has TRUNCATE. */
  refuseTruncate(table: string): string[]
  /**
   * Statements that create a trigram index, for `like '%part%'`. The list is empty if the engine has no trigrams. The
   * statements have no effect if the extension is missing, or the database's user may not add it.
   */
  trigramIndex(name: string, table: string, column: string): string[]
  /** Whether a trigram index of this name exists; absent if the engine has no trigrams. */
  hasIndex?(name: string): Promise<boolean>
  /** The clock that `readClock` reads. */
  readonly clockReference: ClockReference
  readClock(): Promise<Instant>
  /**
   * At startup: turns errors that the operator can fix into CannotStart. Returns others unchanged, including those
   * that were converted already.
   */
  toStartError(error: unknown): unknown
  load?(): EngineLoad
  /** Resolves with the reason once this engine can never write again; absent if the engine always recovers. */
  readonly failure?: Promise<Error>
  /**
   * Whether the timeouts of statements, locks and idle transactions are in force; a connection pooler may drop these
   * settings. Absent on SQLite.
   */
  hasTimeouts?(): Promise<boolean>
  /** The number of standbys, and whether a COMMIT of the service waits for one of them; absent on SQLite. */
  standbys?(): Promise<{ count: number; isSynchronous: boolean }>
  close(): Promise<void>
}

/** A query builder over any connection; only the engine begins and commits transactions. */
export function createDb(engine: Pick<Engine, 'dialect'>, connection: Connection): Db {
  const kyselyConnection = toKyselyConnection(connection)
  const doNothing = async () => {}
  return new Kysely<Schema>({
    dialect: {
      createAdapter: () => engine.dialect.createAdapter(),
      createQueryCompiler: () => engine.dialect.createQueryCompiler(),
      createIntrospector: db => engine.dialect.createIntrospector(db),
      createDriver: () => ({
        init: doNothing,
        acquireConnection: async () => kyselyConnection,
        beginTransaction: refuseTransaction,
        commitTransaction: refuseTransaction,
        rollbackTransaction: refuseTransaction,
        releaseConnection: doNothing,
        destroy: doNothing,
      }),
    },
  })
}

async function refuseTransaction(): Promise<never> {
  throw new Error('transactions are opened by Storage.transaction only')
}

function toKyselyConnection(connection: Connection): KyselyConnection {
  return {
    async executeQuery<Row>(query: { sql: string; parameters: readonly unknown[] }) {
      const { rows, changes } = await connection.execute(query.sql, query.parameters)
      return { rows: rows as Row[], numAffectedRows: BigInt(changes) } satisfies KyselyResult<Row>
    },
    // biome-ignore lint/correctness/useYield: the interface wants it; no statement here streams
    async *streamQuery() {
      throw new Error('no statement streams')
    },
  }
}
