import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/** Indexes for searches by any part of an address, if the engine has trigrams, and for the list of expiring keys. */
export const addressParts = defineMigration('0029-address-parts', async ({ db, trigramIndex }) => {
  await trigramIndex('users_address_parts', 'users', 'email')
  // It has the same columns as the index `users_created`.
  await sql`drop index if exists users_newest`.execute(db)
  // It has the order of the list of expiring keys, even for keys that expire at the same instant, and leaves out keys
  // that never expire.
  await sql`create index api_keys_expiring on api_keys (expires_at, id)
    where revoked_at is null and expires_at is not null`.execute(db)
  // The index above also serves the query of this one, which prunes expired keys.
  await sql`drop index if exists api_keys_unrevoked_by_end`.execute(db)
})
