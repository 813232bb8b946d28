export type SqliteValue = null | number | bigint | string | Uint8Array

/** Converts booleans and undefined, which SQLite does not have. */
export function toSqliteValues(parameters: readonly unknown[]): SqliteValue[] {
  return parameters.map(value => {
    if (value === undefined) return null
    if (typeof value === 'boolean') return value ? 1 : 0
    return value as SqliteValue
  })
}
