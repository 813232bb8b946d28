import type { Invitation } from '../invitations/invitation.ts'
import type {
  AdministrativeInvitationChanges,
  InvitationChanges,
  InvitationStore,
} from '../invitations/invitation-store.ts'
import { toSlice } from '../paging.ts'
import { newestFirst } from './paging.ts'
import type { InvitationRow } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

export function createInvitationStore({
  db,
  atomically,
}: Statements): InvitationStore & InvitationChanges & AdministrativeInvitationChanges {
  return {
    async find(id) {
      const row = await db.selectFrom('invitations').selectAll().where('id', '=', id).executeTakeFirst()
      return row ? toInvitation(row) : null
    },
    async findPending(email, now) {
      const row = await db
        .selectFrom('invitations')
        .selectAll()
        .where('email', '=', email)
        .where('accepted_at', 'is', null)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', now)
        .executeTakeFirst()
      return row ? toInvitation(row) : null
    },
    async list({ limit, after }) {
      const rows = await db
        .selectFrom('invitations')
        .selectAll()
        .$call(newestFirst({ limit, after }))
        .execute()
      return toSlice(rows.map(toInvitation), limit, ({ createdAt, id }) => ({ at: createdAt, id }))
    },
    insert: invitation =>
      atomically(async tx => {
        const replacedRows = await tx
          .updateTable('invitations')
          .set({ revoked_at: invitation.createdAt })
          .where('email', '=', invitation.email)
          .where('accepted_at', 'is', null)
          .where('revoked_at', 'is', null)
          .returning('id')
          .execute()
        await tx.insertInto('invitations').values(toRow(invitation)).execute()
        return replacedRows.map(({ id }) => id)
      }),
    async accept(email, userId, at) {
      const row = await db
        .updateTable('invitations')
        .set({ accepted_at: at, user_id: userId })
        .where('email', '=', email)
        .where('accepted_at', 'is', null)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', at)
        .returningAll()
        .executeTakeFirst()
      return row ? toInvitation(row) : null
    },
    async revoke(id, at) {
      const row = await db
        .updateTable('invitations')
        .set({ revoked_at: at })
        .where('id', '=', id)
        .where('accepted_at', 'is', null)
        .where('revoked_at', 'is', null)
        .returningAll()
        .executeTakeFirst()
      return row ? toInvitation(row) : null
    },
    async forgetAddress(email) {
      await db.deleteFrom('invitations').where('email', '=', email).execute()
    },
    async prune(expiredBefore, batch) {
      const prunableIds = db
        .selectFrom('invitations')
        .select('id')
        .where('expires_at', '<', expiredBefore)
        .limit(batch)
      return countOf(await db.deleteFrom('invitations').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }
}

function toRow(invitation: Invitation): InvitationRow {
  return {
    id: invitation.id,
    email: invitation.email,
    role: invitation.role,
    invited_by: invitation.invitedBy,
    created_at: invitation.createdAt,
    expires_at: invitation.expiresAt,
    accepted_at: invitation.acceptedAt,
    user_id: invitation.userId,
    revoked_at: invitation.revokedAt,
  }
}

function toInvitation(row: InvitationRow): Invitation {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    invitedBy: row.invited_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    acceptedAt: row.accepted_at,
    userId: row.user_id,
    revokedAt: row.revoked_at,
  }
}
