import { type SqlBool, sql } from 'kysely'
import type { EndingRows, EndingStore } from '../endings/ending-store.ts'
import { countOf, inChunks, type Statements } from './statements.ts'

export function createEndingStore({ db, atomically }: Statements): EndingStore & EndingRows {
  return {
    async insert(endings) {
      if (endings.length === 0) return
      const rows = endings.map(({ id, kind, subjectId, userId, at }) => ({
        id,
        kind,
        subject_id: subjectId,
        user_id: userId,
        at,
      }))
      await atomically(async tx => {
        for (const chunk of inChunks(rows)) await tx.insertInto('endings').values(chunk).execute()
      })
    },
    async since(since, afterId, limit) {
      const rows = await db
        .selectFrom('endings')
        .selectAll()
        .where(
          afterId === null ? sql<SqlBool>`at >= ${since}` : sql<SqlBool>`(at, id) > (${since}, ${afterId})`,
        )
        .orderBy('at')
        .orderBy('id')
        .limit(limit)
        .execute()
      return rows.map(row => ({
        id: row.id,
        kind: row.kind,
        subjectId: row.subject_id,
        userId: row.user_id,
        at: row.at,
      }))
    },
    async prune(before, batch) {
      const prunableIds = db.selectFrom('endings').select('id').where('at', '<', before).limit(batch)
      return countOf(await db.deleteFrom('endings').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }
}
