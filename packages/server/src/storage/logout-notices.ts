import type { LogoutNotice } from '../logout-notices/logout-notice.ts'
import type { LogoutNoticeStore } from '../logout-notices/logout-notice-store.ts'
import type { LogoutNoticeRow } from './schema.ts'
import { inChunks, type Statements } from './statements.ts'

export function createLogoutNoticeStore({ db, atomically }: Statements): LogoutNoticeStore {
  return {
    async queue(sessionIds, at) {
      let queuedCount = 0
      for (const ids of inChunks(sessionIds)) {
        const rows = await db
          .insertInto('logout_notices')
          .columns(['session_id', 'app_id', 'user_id', 'created_at', 'attempts', 'next_attempt_at'])
          .expression(
            db
              .selectFrom('sessions')
              .innerJoin('apps', 'apps.id', 'sessions.app_id')
              .select(eb => [
                'sessions.id',
                'sessions.app_id',
                'sessions.user_id',
                eb.cast<number>(eb.val(at), 'bigint').as('created_at'),
                eb.cast<number>(eb.val(0), 'integer').as('attempts'),
                eb.cast<number>(eb.val(at), 'bigint').as('next_attempt_at'),
              ])
              .where('sessions.id', 'in', ids)
              .where('sessions.kind', '=', 'app')
              .where('apps.removed_at', 'is', null)
              .where('apps.backchannel_logout_uri', 'is not', null),
          )
          .onConflict(conflict => conflict.column('session_id').doNothing())
          .returning('session_id')
          .execute()
        queuedCount += rows.length
      }
      return queuedCount
    },
    async isAnyDue(now) {
      const dueNotice = db
        .selectFrom('logout_notices')
        .select('session_id')
        .where('next_attempt_at', '<=', now)
      return (await dueNotice.limit(1).executeTakeFirst()) !== undefined
    },
    lease: (now, leasedUntil, limit) =>
      atomically(async tx => {
        const dueIds = tx
          .selectFrom('logout_notices')
          .select('session_id')
          .where('next_attempt_at', '<=', now)
          .orderBy('next_attempt_at')
          .limit(limit)
        const rows = await tx
          .updateTable('logout_notices')
          .set({ next_attempt_at: leasedUntil })
          .where('session_id', 'in', dueIds)
          .where('next_attempt_at', '<=', now)
          .returningAll()
          .execute()
        return rows.map(toNotice)
      }),
    async defer(sessionId, nextAttemptAt) {
      await db
        .updateTable('logout_notices')
        .set({ next_attempt_at: nextAttemptAt })
        .where('session_id', '=', sessionId)
        .execute()
    },
    async retry(sessionId, nextAttemptAt) {
      await db
        .updateTable('logout_notices')
        .set(eb => ({ next_attempt_at: nextAttemptAt, attempts: eb('attempts', '+', 1) }))
        .where('session_id', '=', sessionId)
        .execute()
    },
    async remove(sessionId) {
      await db.deleteFrom('logout_notices').where('session_id', '=', sessionId).execute()
    },
  }
}

function toNotice(row: LogoutNoticeRow): LogoutNotice {
  return {
    sessionId: row.session_id,
    appId: row.app_id,
    userId: row.user_id,
    createdAt: row.created_at,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
  }
}
