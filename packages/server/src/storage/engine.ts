import {
  type Dialect,
  Kysely,
  type DatabaseConnection as KyselyConnection,
  type QueryResult as KyselyResult,
} from 'kysely'
import type { ClockReference, Instant } from '../clock.ts'
import type { Event, Events } from '../events.ts'
import type { RowTurns } from './row-turns.ts'
import type { Schema } from './schema.ts'

/** The query builder, bound to one connection: a transaction's, or the one for everything outside. */
export type Db = Kysely<Schema>

export interface Result {
  rows: unknown[]
  /** Rows that were written. */
  changes: number
}

/** Whatever runs one statement. */
export interface Connection {
  execute(sql: string, parameters: readonly unknown[]): Promise<Result>
}

/** A read of one row by one unique column, asked so often that an engine may prepare and gather it. */
export interface LookUp {
  /**
   * Select and from, without where. The column's own name is returned as `look_up_key`. Columns are named, never
   * `*`: a statement is prepared once, and the next version may add columns while this one serves.
   */
  select(engine: Pick<Engine, 'indexedBy'>): string
  column: string
}

export interface EngineTransaction extends Connection {
  publish(event: Event): void
}

export interface EventsHealth {
  /** False while this node may miss events. */
  listening: boolean
  /** Milliseconds from sending the last test event to receiving it; absent where events do not leave the process. */
  lagMs?: number
  /** Events that were not accepted since the start, by reason; absent where none comes from outside. */
  rejected?: ReadonlyMap<string, number>
}

/** How busy the way to the database is, for metrics. */
export interface EngineLoad {
  connections: number
  idle: number
  /** Calls that wait for a connection, or for the one writer. */
  waiting: number
}

/** The rows of one query, some at a time, so that no table has to fit into memory. */
export type ReadInBatches = (sql: string) => AsyncIterable<Record<string, unknown>[]>

/** What differs between the engines: how statements run, commit and tell. No noun is known here. */
export interface Engine {
  /** Outside of transactions. */
  readonly connection: Connection
  readonly dialect: Pick<Dialect, 'createAdapter' | 'createQueryCompiler' | 'createIntrospector'>
  readonly events: Events & { health(): EventsHealth }
  /**
   * How soon whoever keeps rows in memory must look again, in milliseconds, since what another process changes here
   * causes no event. Absent where every process hears of everything.
   */
  readonly lookAgainEvery?: number
  transaction<Outcome>(
    work: (tx: EngineTransaction) => Promise<Outcome>,
    landed?: () => Promise<Outcome | undefined>,
  ): Promise<Outcome>
  /** See `Storage`. Directly where nobody waits for a row with something in hand that others need. */
  inTurn: RowTurns
  lookUp(what: LookUp, key: string): Promise<unknown>
  /** Behind a table's name: read it by this index. Empty where the engine's planner finds that by itself. */
  indexedBy(index: string): string
  /** Reads everything as it stood at one moment, while others go on writing. */
  snapshot<Outcome>(work: (read: ReadInBatches) => Promise<Outcome>): Promise<Outcome>
  /** Statements that make the engine refuse UPDATE and DELETE on a table. */
  appendOnly(table: string): string[]
  /** Statements that make it refuse to empty such a table as a whole, where SQL has a word of its own for that. */
  refuseTruncate(table: string): string[]
  /** Whose time `readClock` tells. */
  readonly clockReference: ClockReference
  readClock(): Promise<Instant>
  /** At the start: what the operator can mend becomes a CannotStart; everything else stays what it is. */
  toStartError(error: unknown): unknown
  load?(): EngineLoad
  /** Resolves with the reason when this engine can never write again; absent where it always may recover. */
  readonly failure?: Promise<Error>
  /** Copies that follow this database, as far as its user may know of them. */
  standbys?(): Promise<{ synchronous: number; asynchronous: number }>
  close(): Promise<void>
}

/** The same query builder over any connection; beginning and committing is the engine's own affair. */
export function createDb(engine: Pick<Engine, 'dialect'>, connection: Connection): Db {
  const bound = toKyselyConnection(connection)
  const none = async () => {}
  return new Kysely<Schema>({
    dialect: {
      createAdapter: () => engine.dialect.createAdapter(),
      createQueryCompiler: () => engine.dialect.createQueryCompiler(),
      createIntrospector: db => engine.dialect.createIntrospector(db),
      createDriver: () => ({
        init: none,
        acquireConnection: async () => bound,
        beginTransaction: refuse,
        commitTransaction: refuse,
        rollbackTransaction: refuse,
        releaseConnection: none,
        destroy: none,
      }),
    },
  })
}

async function refuse(): Promise<never> {
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
