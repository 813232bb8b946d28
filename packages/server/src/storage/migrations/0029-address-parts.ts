import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/** For searches by any part of an address, where the engine has trigrams, and for lists of expiring keys. */
export const addressParts = defineMigration('0029-address-parts', async ({ db, trigramIndex }) => {
  await trigramIndex('users_address_parts', 'users', 'email')
  // A duplicate of the index `users_created`.
  await sql`drop index if exists users_newest`.execute(db)
  // Has the order of the list of expiring keys, even if very many expire at once, and leaves out keys that never
  // expire.
  await sql`create index api_keys_expiring on api_keys (expires_at, id)
    where revoked_at is null and expires_at is not null`.execute(db)
  await sql`drop index if exists api_keys_unrevoked_by_end`.execute(db)
})
