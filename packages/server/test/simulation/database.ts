import { DatabaseSync, type Session, type StatementSync } from 'node:sqlite'
import type { Result } from '../../src/storage/engine.ts'
import { type SqliteValue, toSqliteValues } from '../../src/storage/sqlite-values.ts'
import { deadlockError, toDatabaseError } from './database-errors.ts'
import { type RowLocks, watchRows } from './row-locks.ts'

/** A transaction of the simulated database. */
export class SimulatedTransaction {
  /** Its changes as a changeset; null while they are applied to the connection, and if there are none. */
  changes: Uint8Array | null = null
  session: Session | null = null
  readonly locks = new Set<string>()
  /** When it began, in milliseconds of the run. */
  readonly startedAt: number
  waitsFor: SimulatedTransaction | null = null
  hasEnded = false
  /** Rules that the changes would break if they were committed. */
  readonly broken = new Set<string>()

  constructor(startedAt: number) {
    this.startedAt = startedAt
  }
}

export type ExecuteOutcome = Result | { blockedBy: SimulatedTransaction }

/**
 * PostgreSQL's READ COMMITTED on SQLite's engine, in memory. Any number of transactions may be open at once: the
 * changes of one are applied to the connection, those of the others are kept as changesets. A statement sees what is
 * committed and the changes of its own transaction. A statement that would change a row that another transaction has
 * changed waits for the end of that transaction, and is then run again.
 */
export class SimulatedDatabase {
  readonly sqlite = new DatabaseSync(':memory:')
  readonly #rows: RowLocks
  readonly #owners = new Map<string, SimulatedTransaction>()
  readonly #statements = new Map<string, StatementSync>()
  #installed: SimulatedTransaction | null = null
  #onEnd = new Map<SimulatedTransaction, (() => void)[]>()

  constructor(image: Uint8Array) {
    this.sqlite.deserialize(image)
    this.#rows = watchRows(this.sqlite)
  }

  /** Reads committed rows only. */
  read(sql: string, ...parameters: SqliteValue[]): Record<string, SqliteValue>[] {
    this.#uninstall()
    return this.#prepare(sql).all(...parameters) as Record<string, SqliteValue>[]
  }

  /** Records a rule that the current change breaks; the triggers of rules.ts call it. */
  noteBroken(rule: string): void {
    this.#installed?.broken.add(rule)
  }

  /** @throws DatabaseError */
  execute(work: SimulatedTransaction, sql: string, parameters: readonly unknown[]): ExecuteOutcome {
    if (isRead(sql)) {
      if (work.changes || work.session) this.#install(work)
      else this.#uninstall()
      return this.#run(sql, parameters)
    }
    this.#install(work)
    this.sqlite.exec('savepoint statement')
    let result: Result
    try {
      result = this.#run(sql, parameters)
    } catch (error) {
      this.#undoStatement()
      throw error
    }
    const keys = this.#rows.takeKeys()
    const other = keys.map(key => this.#owners.get(key)).find(owner => owner && owner !== work)
    if (other) {
      this.#undoStatement()
      this.#assertNoCircle(work, other)
      return { blockedBy: other }
    }
    this.sqlite.exec('release statement')
    for (const key of keys) {
      this.#owners.set(key, work)
      work.locks.add(key)
    }
    return result
  }

  commit(work: SimulatedTransaction): void {
    if (work.changes || work.session) {
      this.#install(work)
      work.session!.close()
      work.session = null
      this.#installed = null
      this.sqlite.exec('release transaction_of_work')
    }
    this.#end(work)
  }

  rollBack(work: SimulatedTransaction): void {
    if (this.#installed === work) this.#uninstall()
    work.changes = null
    this.#end(work)
  }

  whenEnded(work: SimulatedTransaction, callback: () => void): void {
    this.#onEnd.set(work, [...(this.#onEnd.get(work) ?? []), callback])
  }

  /** Whether a transaction that began before this time keeps rows locked. */
  isLockedSince(time: number): boolean {
    return [...this.#owners.values()].some(({ startedAt }) => startedAt < time)
  }

  close(): void {
    this.sqlite.close()
  }

  #end(work: SimulatedTransaction): void {
    if (work.hasEnded) return
    work.hasEnded = true
    for (const key of work.locks) this.#owners.delete(key)
    const callbacks = this.#onEnd.get(work) ?? []
    this.#onEnd.delete(work)
    for (const callback of callbacks) callback()
  }

  #install(work: SimulatedTransaction): void {
    if (this.#installed === work) return
    this.#uninstall()
    this.sqlite.exec('savepoint transaction_of_work')
    work.session = this.sqlite.createSession()
    this.#installed = work
    if (work.changes && !this.sqlite.applyChangeset(work.changes as never))
      throw new Error('the changes of a transaction no longer apply')
    work.changes = null
    this.#rows.takeKeys()
  }

  #uninstall(): void {
    const work = this.#installed
    if (!work) return
    work.changes = work.session!.changeset()
    work.session!.close()
    work.session = null
    this.#installed = null
    this.sqlite.exec('rollback to transaction_of_work')
    this.sqlite.exec('release transaction_of_work')
  }

  #undoStatement(): void {
    this.#rows.takeKeys()
    this.sqlite.exec('rollback to statement')
    this.sqlite.exec('release statement')
  }

  #assertNoCircle(work: SimulatedTransaction, other: SimulatedTransaction): void {
    for (let next: SimulatedTransaction | null = other; next; next = next.waitsFor)
      if (next === work) throw deadlockError()
  }

  #run(sql: string, parameters: readonly unknown[]): Result {
    try {
      const statement = this.#prepare(sql)
      const values = toSqliteValues(parameters)
      if (statement.columns().length === 0)
        return { rows: [], changes: Number(statement.run(...values).changes) }
      const rows = statement.all(...values)
      return { rows, changes: rows.length }
    } catch (error) {
      throw toDatabaseError(error)
    }
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.sqlite.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

export function isRead(sql: string): boolean {
  return /^\s*select\b/i.test(sql)
}
