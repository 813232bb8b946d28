import pg from 'pg'
import { KeywayError, unavailable } from '../errors.ts'
import { CannotStart } from '../operator-error.ts'

const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const UNIQUE_VIOLATION = '23505'
/** `invalid_sql_statement_name` and `duplicate_prepared_statement`. */
const STATEMENT_NAME_ERRORS = ['26000', '42P05']
const IN_FAILED_TRANSACTION = '25P02'
const PROTOCOL_VIOLATION = '08P01'

/** Whether the transaction was rolled back and may be retried. */
export function isRetryable(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    (error.code === SERIALIZATION_FAILURE || error.code === DEADLOCK || isAddressConflict(error))
  )
}

/** Whether the statement was refused because an earlier statement of the transaction had failed. */
export function isAbortedTransaction(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === IN_FAILED_TRANSACTION
}

/**
 * Whether a row of `users` violates a unique index, usually because a concurrent transaction gave another account the
 * address that this transaction wrote. If this transaction is run again, it finds that account.
 */
function isAddressConflict({ code, table }: pg.DatabaseError): boolean {
  return code === UNIQUE_VIOLATION && table === 'users'
}

/**
 * SQLSTATE classes and codes for the state of the database, not an error of the statement: connection failures (08),
 * too many connections or a full disk (53), shutdown, cancellation or statement timeout (57), I/O errors (58), timeouts
 * of locks and idle transactions, a read-only standby, and repeated serialization failures or deadlocks.
 */
const UNAVAILABLE_STATES = /^(08|53|57|58|25006|25P03|55P03|40001|40P01)/

/** Converts the errors of a database that cannot serve now to `unavailable`; returns others unchanged. */
export function toStorageError(error: unknown): unknown {
  if (error instanceof KeywayError) return error
  if (error instanceof pg.DatabaseError)
    return UNAVAILABLE_STATES.test(error.code ?? '') ? unavailable(error) : error
  return isConnectionError(error) ? unavailable(error) : error
}

/** Whether the connection failed, so that the outcome of the last statement is unknown. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.severity === 'FATAL' || /^08/.test(error.code ?? '')
  if (!(error instanceof Error)) return false
  const code = (error as NodeJS.ErrnoException).code ?? ''
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENETDOWN)/.test(code) ||
    /connection|timeout|not queryable|Cannot use a pool/i.test(error.message)
  )
}

/**
 * Whether the database refused or closed the connection, so that a read may be repeated at once. After a timeout,
 * repeating would multiply the time that the caller waits.
 */
export function isConnectionRefusedOrClosed(error: unknown): boolean {
  if (error instanceof KeywayError) return false
  return isConnectionError(error) && !/timeout|ETIMEDOUT/i.test((error as Error).message)
}

/** SQLSTATE classes and codes of authentication (28), unknown database (3D000) and insufficient privilege (42501). */
const ACCESS_ERRORS = /^(28|3D000|42501)/

/** Whether a prepared statement is missing on this connection, or was prepared by another client of the pooler. */
export function isStatementNameConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && STATEMENT_NAME_ERRORS.includes(error.code ?? '')
}

/**
 * At startup: converts errors in the connection URL, its user's privileges or the pooler's settings to CannotStart;
 * returns others unchanged.
 */
export function toStartError(error: unknown): unknown {
  // A failed connection of the pool is `unavailable`, with the database's own error as its cause.
  const databaseError = error instanceof KeywayError ? error.extras.cause : error
  if (!(databaseError instanceof pg.DatabaseError)) return error
  if (databaseError.code === PROTOCOL_VIOLATION && /startup parameter/.test(databaseError.message))
    return new CannotStart(
      `The pooler refuses: ${databaseError.message}. Set its ignore_startup_parameters, see docs/operations.md, "Behind PgBouncer".`,
    )
  if (!ACCESS_ERRORS.test(databaseError.code ?? '')) return error
  return new CannotStart(`PostgreSQL refuses: ${databaseError.message}. Check KEYWAY_DATABASE_URL.`)
}

/** A description for the log, without the statement and its values. */
export function describeError(error: unknown): string {
  if (error instanceof pg.DatabaseError) return `${error.code}: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}
