import pg from 'pg'

const [CONSTRAINT, UNIQUE_MESSAGE] = [19, /^UNIQUE constraint failed: (\w+)\./]

/** An error with the code that PostgreSQL would answer. */
export function databaseError(code: string, message: string, table?: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError(message, 0, 'error'), { code, severity: 'ERROR', table })
}

export function deadlockError(): pg.DatabaseError {
  return databaseError('40P01', 'deadlock detected')
}

export function lockTimeoutError(): pg.DatabaseError {
  return databaseError('55P03', 'canceling statement due to lock timeout')
}

export function failedTransactionError(): pg.DatabaseError {
  return databaseError('25P02', 'current transaction is aborted')
}

export function toDatabaseError(error: unknown): unknown {
  const { errcode, message } = error as { errcode?: number; message: string }
  if (errcode === undefined) return error
  const table = UNIQUE_MESSAGE.exec(message)?.[1]
  if (table) return databaseError('23505', message, table)
  return databaseError((errcode & 0xff) === CONSTRAINT ? '23514' : 'XX000', message)
}
