import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import type { PageRequest, Position } from '../paging.ts'

/** The condition for rows strictly older than `position`: a comparison of row values, for which an index can seek. */
export function isOlderThan(timeColumn: string, position: Position, idColumn = 'id'): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${sql.ref(timeColumn)}, ${sql.ref(idColumn)}) < (${position.at}, ${position.id})`
}

/** Selects a page by creation, newest first, and one row more if there is another page. For Kysely's `$call`. */
export function newestFirst({ limit, after }: PageRequest) {
  return <DB, TB extends keyof DB, Row>(
    query: SelectQueryBuilder<DB, TB, Row>,
  ): SelectQueryBuilder<DB, TB, Row> =>
    query
      .$if(after !== null, older => older.where(isOlderThan('created_at', after!)))
      .orderBy(sql.ref('created_at'), 'desc')
      .orderBy(sql.ref('id'), 'desc')
      .limit(limit + 1) as SelectQueryBuilder<DB, TB, Row>
}
