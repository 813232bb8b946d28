import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const keysOfDeletedAccounts = defineMigration('0010-keys-of-deleted-accounts', async ({ db }) => {
  // 1 once all keys of a deleted account are deleted, so that housekeeping skips this account.
  await db.schema.alterTable('users').addColumn('keys_pruned', 'integer').execute()
  await sql`create index users_keys_to_prune on users (deleted_at)
    where deleted_at is not null and keys_pruned is null`.execute(db)
})
