import type { DatabaseSync } from 'node:sqlite'

/** Reports the unique keys of written rows: concurrent transactions that write the same key are in conflict. */
export interface RowLocks {
  /** Returns the keys that were written since the last call. */
  takeKeys(): string[]
}

/** The primary key and the other unique keys of a table, without those of partial indexes. */
interface UniqueKeys {
  /** The columns of all these keys, each once. For a written row, triggers report its values of these columns. */
  columns: string[]
  /** For each key, the positions of its columns in `columns`. The first key is the primary one. */
  keys: number[][]
}

/**
 * Creates triggers that report every written row, including rows whose update changes nothing, since the service locks
 * rows by such updates.
 */
export function watchRows(database: DatabaseSync): RowLocks {
  const uniqueKeysByTable = new Map<string, UniqueKeys>()
  let writtenKeys: string[] = []
  database.function('row_written', { varargs: true }, (table, event, ...values) => {
    const { columns, keys } = uniqueKeysByTable.get(String(table))!
    const [before, after] = [values.slice(0, columns.length), values.slice(-columns.length)]
    for (const [at, positions] of keys.entries()) {
      const key = keyOf(after, positions)
      const isSame = event === 'update' && key === keyOf(before, positions)
      // Every change of a row conflicts by its primary key, but by another unique key only if that key is new.
      if (key !== null && (at === 0 || (event !== 'delete' && !isSame)))
        writtenKeys.push(`${table}/${at}/${key}`)
    }
    return null
  })
  const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
  for (const { name } of tables as { name: string }[]) {
    const uniqueKeys = uniqueKeysOf(database, name)
    uniqueKeysByTable.set(name, uniqueKeys)
    const columnsOf = (row: string) => uniqueKeys.columns.map(column => `${row}."${column}"`).join(', ')
    const createTrigger = (event: string, values: string) =>
      database.exec(
        `create temp trigger "rows_${event}_${name}" after ${event} on main."${name}"
         begin select row_written('${name}', '${event}', ${values}); end`,
      )
    createTrigger('insert', columnsOf('new'))
    createTrigger('update', `${columnsOf('old')}, ${columnsOf('new')}`)
    createTrigger('delete', columnsOf('old'))
  }
  return {
    takeKeys() {
      const keysSinceLastCall = writtenKeys
      writtenKeys = []
      return keysSinceLastCall
    },
  }
}

function keyOf(values: readonly unknown[], positions: readonly number[]): string | null {
  const key = positions.map(position => values[position])
  return key.includes(null) ? null : key.join(' ')
}

function uniqueKeysOf(database: DatabaseSync, table: string): UniqueKeys {
  const primaryKey = (
    database.prepare(`pragma table_info("${table}")`).all() as { name: string; pk: number }[]
  ).filter(({ pk }) => pk > 0)
  const uniqueIndexes = (
    database.prepare(`pragma index_list("${table}")`).all() as {
      name: string
      unique: number
      origin: string
      partial: number
    }[]
  ).filter(index => index.unique === 1 && index.origin !== 'pk' && index.partial === 0)
  const keys = [
    primaryKey.map(({ name }) => name),
    ...uniqueIndexes.map(({ name }) =>
      (database.prepare(`pragma index_info("${name}")`).all() as { name: string }[]).map(each => each.name),
    ),
  ]
  const columns = [...new Set(keys.flat())]
  return { columns, keys: keys.map(key => key.map(column => columns.indexOf(column))) }
}
