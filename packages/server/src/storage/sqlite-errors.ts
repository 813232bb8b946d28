import { unavailable } from '../errors.ts'
import { whyNotWritable } from '../folders.ts'
import { CannotStart } from '../operator-error.ts'

/** SQLITE_PERM, READONLY, CORRUPT, CANTOPEN, NOTADB: at startup they mean that the operator must mend the file. */
const UNUSABLE_CODES = new Set([3, 8, 11, 14, 26])
/** SQLITE_BUSY, LOCKED, IOERR, CANTOPEN, PROTOCOL: while the service runs, a later read may succeed. */
const UNAVAILABLE_CODES = new Set([5, 6, 10, 14, 15])
const BUSY_CODE = 5
const FULL_CODE = 13

/** Whether another process has the lock. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === BUSY_CODE
}

/** Converts errors of a closed or currently unreadable database to `unavailable`; returns others unchanged. */
export function toReadError(error: unknown): unknown {
  const isClosed = (error as { code?: string }).code === 'ERR_INVALID_STATE'
  return isClosed || UNAVAILABLE_CODES.has(primaryCode(error)) ? unavailable(error) : error
}

/**
 * Converts an error at startup: to `unavailable` if another process has the lock or the disk is full, which may pass by
 * itself, to `CannotStart` if the file cannot be used for another reason. Returns other errors unchanged.
 */
export function toStartError(file: string, error: unknown): unknown {
  const { syscall } = error as NodeJS.ErrnoException
  if (isBusy(error) || primaryCode(error) === FULL_CODE) return unavailable(error)
  if (syscall === undefined && !UNUSABLE_CODES.has(primaryCode(error))) return error
  return new CannotStart(
    `${file} cannot be used: ${whyNotWritable(error)}. Check that it is Keyway's own and that this user may write there.`,
  )
}

/** SQLite's primary result code; 0 for other errors. */
function primaryCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff
}
