import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { SqliteValue } from './sqlite-values.ts'

/**
 * The only thread that writes. Executes requests in order; sqlite-group-commit.ts decides which transactions share a
 * commit.
 */

/** `batch` is the number of the outer transaction; the first request with it begins that transaction. */
export type WriterRequest =
  | { kind: 'run'; id: number; batch: number; savepoint: boolean; sql: string; parameters: SqliteValue[] }
  | { kind: 'release' | 'rollback'; batch: number }
  | { kind: 'commit'; id: number; batch: number }
  | { kind: 'close'; id: number }

export type WriterResponse =
  | { kind: 'done'; id: number; rows: unknown[]; changes: number }
  /** The statement failed; its transaction can continue or be rolled back. */
  | { kind: 'failed'; id: number; message: string; code: number }
  /** The statement failed, and all transactions of the batch were rolled back. */
  | { kind: 'aborted'; id: number; message: string; code: number }

const BUSY_TIMEOUT_MS = 2000
/**
 * Codes after which the whole batch is rolled back: SQLITE_FULL, IOERR, NOMEM, BUSY, LOCKED, READONLY, CORRUPT,
 * CANTOPEN, PROTOCOL, INTERRUPT, NOTADB.
 */
const FATAL_CODES = new Set([5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 26])
/** Maximum number of cached prepared statements. */
const MAX_STATEMENTS = 500

// Diagnostic reports must not contain the environment, since secret settings are in it. Each thread has its own option.
process.report.excludeEnv = true

const { file } = workerData as { file: string }
const port = parentPort!
const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
database.exec('pragma journal_mode = wal; pragma synchronous = full;')
const statementsBySql = new Map<string, StatementSync>()

let responses: WriterResponse[] = []
let openBatchNumber = 0
let abortedBatch: { batch: number; message: string; code: number } | null = null

port.on('message', (requests: WriterRequest[]) => {
  for (const request of requests) handle(request)
  port.postMessage(responses)
  responses = []
  if (!database.isOpen) port.close()
})
port.postMessage('opened')

function handle(request: WriterRequest): void {
  if (request.kind === 'close') {
    database.close()
    respond({ kind: 'done', id: request.id, rows: [], changes: 0 })
    return
  }
  if (abortedBatch?.batch === request.batch) {
    if ('id' in request) respond({ ...abortedBatch, kind: 'aborted', id: request.id })
    return
  }
  try {
    if (openBatchNumber !== request.batch) begin(request.batch)
    execute(request)
  } catch (error) {
    handleError(request, error as Error & { errcode?: number })
  }
}

function begin(batch: number): void {
  openBatchNumber = batch
  database.exec('begin immediate')
}

function execute(request: Exclude<WriterRequest, { kind: 'close' }>): void {
  switch (request.kind) {
    case 'run':
      if (request.savepoint) prepare('savepoint work').run()
      respond({ kind: 'done', id: request.id, ...runStatement(request.sql, request.parameters) })
      return
    case 'release':
      prepare('release work').run()
      return
    case 'rollback':
      prepare('rollback to work').run()
      prepare('release work').run()
      return
    case 'commit':
      database.exec('commit')
      respond({ kind: 'done', id: request.id, rows: [], changes: 0 })
  }
}

function runStatement(sql: string, parameters: SqliteValue[]): { rows: unknown[]; changes: number } {
  const statement = prepare(sql)
  if (statement.columns().length > 0) {
    const rows = statement.all(...parameters)
    return { rows, changes: rows.length }
  }
  return { rows: [], changes: Number(statement.run(...parameters).changes) }
}

function handleError(
  request: Exclude<WriterRequest, { kind: 'close' }>,
  error: Error & { errcode?: number },
): void {
  const message = error.message
  const code = error.errcode ?? 0
  const abortsBatch = request.kind !== 'run' || FATAL_CODES.has(code & 0xff) || !database.isTransaction
  if (!abortsBatch) {
    respond({ kind: 'failed', id: request.id, message, code })
    return
  }
  abortedBatch = { batch: request.batch, message, code }
  if (database.isTransaction) {
    try {
      database.exec('rollback')
    } catch {
      // The next `begin` shows whether the connection still works.
    }
  }
  if ('id' in request) respond({ kind: 'aborted', id: request.id, message, code })
}

function prepare(sql: string): StatementSync {
  let statement = statementsBySql.get(sql)
  if (!statement) {
    if (statementsBySql.size >= MAX_STATEMENTS) statementsBySql.clear()
    statement = database.prepare(sql)
    statementsBySql.set(sql, statement)
  }
  return statement
}

function respond(message: WriterResponse): void {
  responses.push(message)
}
