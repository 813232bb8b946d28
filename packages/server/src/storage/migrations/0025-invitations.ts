import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const invitations = defineMigration('0025-invitations', async ({ db }) => {
  await db.schema
    .createTable('invitations')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('email', 'text', c => c.notNull())
    .addColumn('role', 'text')
    .addColumn('invited_by', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addColumn('accepted_at', 'bigint')
    .addColumn('user_id', 'text')
    .addColumn('revoked_at', 'bigint')
    .execute()
  await sql`create index invitations_newest on invitations (created_at, id)`.execute(db)
  await sql`create index invitations_of_address on invitations (email)`.execute(db)
  await sql`create index invitations_by_expiry on invitations (expires_at)`.execute(db)
  await sql`create unique index invitations_open on invitations (email)
    where accepted_at is null and revoked_at is null`.execute(db)
})
