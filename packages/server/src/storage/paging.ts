import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Position } from '../paging.ts'

/** Rows strictly older than `position`, as a row-value comparison, so that an index can seek. */
export function before(timeColumn: string, position: Position, idColumn = 'id'): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${sql.ref(timeColumn)}, ${sql.ref(idColumn)}) < (${position.at}, ${position.id})`
}
