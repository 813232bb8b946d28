import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/** All characters of a `LOCAL_PART` (users/email-address.ts). `ltrim` with them leaves `@` and the domain. */
const LOCAL_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789!#$&''*+-./=?^_`{|}~%"

/** One index for each sort order and each search of the lists for administrators. */
export const administrativeLists = defineMigration(
  '0021-administrative-lists',
  async ({ db, binaryCollation }) => {
    const binary = sql.raw(binaryCollation)
    const domain = sql.raw(`ltrim(email, '${LOCAL_CHARACTERS}')`)
    await sql`create index users_newest on users (created_at, id)`.execute(db)
    await sql`create index users_ended on users (status, created_at, id) where status <> 'active'`.execute(db)
    await sql`create index users_by_address on users (email ${binary})`.execute(db)
    await sql`create index users_by_domain on users ((${domain}) ${binary}, id)`.execute(db)
    await sql`create index api_keys_newest on api_keys (created_at, id)`.execute(db)
    await sql`create index api_keys_by_prefix on api_keys (key_prefix ${binary}, id)`.execute(db)
    await sql`create index api_keys_all_endless on api_keys (created_at, id)
    where revoked_at is null and expires_at is null`.execute(db)
    await sql`create index api_keys_of_external_id on api_keys (external_id, created_at, id)
    where external_id is not null`.execute(db)
    await sql`create index messages_by_state on messages (state, created_at, id)`.execute(db)
  },
)
