import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const usersNotActive = defineMigration('0005-users-not-active', async ({ db }) => {
  // Shows whether a key's owner is suspended or deleted, without reading the index of all users.
  await sql`create index users_not_active on users (id, status) where status <> 'active'`.execute(db)
})
