import type { EmailChange } from '../account-changes/email-change.ts'
import type { EmailChangeStore } from '../account-changes/email-change-store.ts'
import type { EmailChangeRow } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

export function createEmailChangeStore({ db }: Statements): EmailChangeStore {
  return {
    async find(userId) {
      return toChange(
        await db.selectFrom('email_changes').selectAll().where('user_id', '=', userId).executeTakeFirst(),
      )
    },
    async put(change) {
      const { user_id, ...row } = toRow(change)
      await db
        .insertInto('email_changes')
        .values({ user_id, ...row })
        .onConflict(conflict => conflict.column('user_id').doUpdateSet(row))
        .execute()
    },
    async confirm(userId, side, tokenHash, at) {
      const [confirmedColumn, hashColumn] =
        side === 'old'
          ? (['old_confirmed_at', 'old_token_hash'] as const)
          : (['new_confirmed_at', 'new_token_hash'] as const)
      return toChange(
        await db
          .updateTable('email_changes')
          .set(eb => ({ [confirmedColumn]: eb.fn.coalesce(confirmedColumn, eb.val(at)) }))
          .where('user_id', '=', userId)
          .where(hashColumn, '=', tokenHash)
          .where('expires_at', '>', at)
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async remove(userId) {
      const result = await db.deleteFrom('email_changes').where('user_id', '=', userId).executeTakeFirst()
      return countOf(result) > 0
    },
    async prune(before, batch) {
      const userIdsOfExpiredChanges = db
        .selectFrom('email_changes')
        .select('user_id')
        .where('expires_at', '<', before)
        .limit(batch)
      const deletion = db.deleteFrom('email_changes').where('user_id', 'in', userIdsOfExpiredChanges)
      // The condition is repeated, so that a change is kept if it replaced an expired one after the query.
      return countOf(await deletion.where('expires_at', '<', before).executeTakeFirst())
    },
  }
}

function toRow(change: EmailChange): EmailChangeRow {
  return {
    user_id: change.userId,
    session_id: change.sessionId,
    old_email: change.oldEmail,
    new_email: change.newEmail,
    old_token_hash: change.oldTokenHash,
    new_token_hash: change.newTokenHash,
    old_confirmed_at: change.oldConfirmedAt,
    new_confirmed_at: change.newConfirmedAt,
    created_at: change.createdAt,
    expires_at: change.expiresAt,
  }
}

function toChange(row: EmailChangeRow | undefined): EmailChange | null {
  if (!row) return null
  return {
    userId: row.user_id,
    sessionId: row.session_id,
    oldEmail: row.old_email,
    newEmail: row.new_email,
    oldTokenHash: row.old_token_hash,
    newTokenHash: row.new_token_hash,
    oldConfirmedAt: row.old_confirmed_at,
    newConfirmedAt: row.new_confirmed_at,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
