import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/** For searches by any part of an address, where the engine has trigrams. */
export const addressParts = defineMigration('0029-address-parts', async ({ db, trigramIndex }) => {
  await trigramIndex('users_address_parts', 'users', 'email')
  // The same as users_created.
  await sql`drop index if exists users_newest`.execute(db)
})
