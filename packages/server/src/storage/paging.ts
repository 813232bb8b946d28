import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Position } from '../paging.ts'

/** Everything strictly older than `position`, as one comparison of two columns that an index can seek to. */
export function before(timeColumn: string, position: Position, idColumn = 'id'): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${sql.ref(timeColumn)}, ${sql.ref(idColumn)}) < (${position.at}, ${position.id})`
}
