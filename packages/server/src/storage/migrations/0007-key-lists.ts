import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/**
 * One index for each status by which an owner lists keys, so that a page reads only its own rows, however many keys the
 * owner has.
 */
export const keyLists = defineMigration('0007-key-lists', async ({ db }) => {
  await sql`create index api_keys_revoked on api_keys (user_id, created_at, id)
    where revoked_at is not null`.execute(db)
  await sql`create index api_keys_endless on api_keys (user_id, created_at, id)
    where revoked_at is null and expires_at is null`.execute(db)
  await sql`create index api_keys_ending on api_keys (user_id, created_at, id)
    where revoked_at is null and expires_at is not null`.execute(db)
  await sql`create index api_keys_by_end on api_keys (user_id, expires_at)
    where revoked_at is null and expires_at is not null`.execute(db)
  // For pruning expired keys. It leaves out revoked keys, which are never pruned.
  await sql`create index api_keys_unrevoked_by_end on api_keys (expires_at) where revoked_at is null`.execute(
    db,
  )
})
