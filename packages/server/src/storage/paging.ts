import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import type { PageRequest, Position } from '../paging.ts'

/** Rows strictly older than `position`, as a row-value comparison, so that an index can seek. */
export function before(timeColumn: string, position: Position, idColumn = 'id'): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${sql.ref(timeColumn)}, ${sql.ref(idColumn)}) < (${position.at}, ${position.id})`
}

/** A page by creation, newest first, with one row more if there is another page; for `Query.$call`. */
export function newestFirst({ limit, after }: PageRequest) {
  return <DB, TB extends keyof DB, Row>(
    query: SelectQueryBuilder<DB, TB, Row>,
  ): SelectQueryBuilder<DB, TB, Row> =>
    query
      .$if(after !== null, older => older.where(before('created_at', after!)))
      .orderBy(sql.ref('created_at'), 'desc')
      .orderBy(sql.ref('id'), 'desc')
      .limit(limit + 1) as SelectQueryBuilder<DB, TB, Row>
}
