import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { SqliteValue } from './sqlite-values.ts'

/**
 * The one thread that writes. It does what it is told in the order it is told; sqlite.ts decides which
 * transactions share a commit.
 */

/** `batch` counts outer transactions; the first order of a batch begins it. */
export type WriterOrder =
  | { kind: 'run'; id: number; batch: number; savepoint: boolean; sql: string; parameters: SqliteValue[] }
  | { kind: 'release' | 'rollback'; batch: number }
  | { kind: 'commit'; id: number; batch: number }
  | { kind: 'close'; id: number }

export type WriterAnswer =
  | { kind: 'done'; id: number; rows: unknown[]; changes: number }
  /** The statement failed; its transaction can go on or be rolled back. */
  | { kind: 'failed'; id: number; message: string; code: number }
  /** The whole batch is gone. */
  | { kind: 'aborted'; id: number; message: string; code: number }

const BUSY_TIMEOUT_MS = 2000
/** SQLITE_FULL, IOERR, NOMEM, BUSY, LOCKED, READONLY, CORRUPT, CANTOPEN, PROTOCOL, INTERRUPT, NOTADB. */
const FATAL_CODES = new Set([5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 26])
const MAX_STATEMENTS = 500

// As in cli.ts: a thread has a report of its own, with an environment of its own.
process.report.excludeEnv = true

const { file } = workerData as { file: string }
const port = parentPort!
const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true })
database.exec('pragma journal_mode = wal; pragma synchronous = full;')
const statements = new Map<string, StatementSync>()

let answers: WriterAnswer[] = []
let begun = 0
let aborted: { batch: number; message: string; code: number } | null = null

port.on('message', (orders: WriterOrder[]) => {
  for (const order of orders) take(order)
  port.postMessage(answers)
  answers = []
  if (!database.isOpen) port.close()
})
port.postMessage('opened')

function take(order: WriterOrder): void {
  if (order.kind === 'close') {
    database.close()
    answer({ kind: 'done', id: order.id, rows: [], changes: 0 })
    return
  }
  if (aborted?.batch === order.batch) {
    if ('id' in order) answer({ ...aborted, kind: 'aborted', id: order.id })
    return
  }
  try {
    if (begun !== order.batch) begin(order.batch)
    obey(order)
  } catch (error) {
    fail(order, error as Error & { errcode?: number })
  }
}

function begin(batch: number): void {
  begun = batch
  database.exec('begin immediate')
}

function obey(order: Exclude<WriterOrder, { kind: 'close' }>): void {
  switch (order.kind) {
    case 'run':
      if (order.savepoint) prepare('savepoint work').run()
      answer({ kind: 'done', id: order.id, ...runStatement(order.sql, order.parameters) })
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
      answer({ kind: 'done', id: order.id, rows: [], changes: 0 })
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

function fail(order: Exclude<WriterOrder, { kind: 'close' }>, error: Error & { errcode?: number }): void {
  const message = error.message
  const code = error.errcode ?? 0
  const whole = order.kind !== 'run' || FATAL_CODES.has(code & 0xff) || !database.isTransaction
  if (!whole) {
    answer({ kind: 'failed', id: order.id, message, code })
    return
  }
  aborted = { batch: order.batch, message, code }
  if (database.isTransaction) {
    try {
      database.exec('rollback')
    } catch {
      // The next `begin` tells whether the connection still works.
    }
  }
  if ('id' in order) answer({ kind: 'aborted', id: order.id, message, code })
}

function prepare(sql: string): StatementSync {
  let statement = statements.get(sql)
  if (!statement) {
    if (statements.size >= MAX_STATEMENTS) statements.clear()
    statement = database.prepare(sql)
    statements.set(sql, statement)
  }
  return statement
}

function answer(message: WriterAnswer): void {
  answers.push(message)
}
