import pg from 'pg'
import { KeywayError, unavailable } from '../errors.ts'
import { CannotStart } from '../operator-error.ts'

const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'

/** The engine undid it and says that it may be tried again. */
export function isRetryable(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError && (error.code === SERIALIZATION_FAILURE || error.code === DEADLOCK)
  )
}

/**
 * Classes and codes that say how the database is, not what was wrong with the statement: connection trouble
 * (08), too many connections or a full disk (53), being shut down or cancelled (57), I/O errors (58), a lock
 * or statement that took too long, a read-only standby, and a transaction that kept losing.
 */
const AWAY = /^(08|53|57|58|25006|25P03|55P03|40001|40P01)/

/** `unavailable` for a database that cannot serve now; everything else stays what it is. */
export function toStorageError(error: unknown): unknown {
  if (error instanceof KeywayError) return error
  if (error instanceof pg.DatabaseError) return AWAY.test(error.code ?? '') ? unavailable(error) : error
  return isConnectionError(error) ? unavailable(error) : error
}

/** Whether the connection broke, so that nobody knows what became of the last statement. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.severity === 'FATAL' || /^08/.test(error.code ?? '')
  if (!(error instanceof Error)) return false
  const code = (error as NodeJS.ErrnoException).code ?? ''
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENETDOWN)/.test(code) ||
    /connection|timeout|not queryable|Cannot use a pool/i.test(error.message)
  )
}

/** The connection had ended before the statement; no deadline passed meanwhile. */
export function isConnectionGone(error: unknown): boolean {
  if (error instanceof KeywayError) return false
  return isConnectionError(error) && !/timeout/i.test((error as Error).message)
}

/** Who one is (28), which database (3D000), what one may do there (42501). */
const ACCESS = /^(28|3D000|42501)/

/** At the start: what the operator can mend in the address is said as that; everything else stays what it is. */
export function toStartError(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError) || !ACCESS.test(error.code ?? '')) return error
  return new CannotStart(`PostgreSQL refuses: ${error.message}. Check KEYWAY_DATABASE_URL.`)
}

/** For the log: what happened, without the statement and its values. */
export function describeError(error: unknown): string {
  if (error instanceof pg.DatabaseError) return `${error.code}: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}
