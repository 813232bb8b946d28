import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const usersNotActive = defineMigration('0005-users-not-active', async ({ db }) => {
  // For looking up whether a key's owner is suspended or deleted. Most users are active, so this index is small.
  await sql`create index users_not_active on users (id, status) where status <> 'active'`.execute(db)
})
