import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const keyMetadata = defineMigration('0013-key-metadata', async ({ db }) => {
  await db.schema.alterTable('api_keys').addColumn('external_id', 'text').execute()
  // Length of the metadata in bytes, so that a list knows its size before it reads them; null: none.
  await db.schema.alterTable('api_keys').addColumn('metadata_bytes', 'integer').execute()
  // A separate table: up to 16 KiB in the key's row would be rewritten with each batch of last uses.
  await db.schema
    .createTable('key_metadata')
    .addColumn('key_id', 'text', c => c.notNull().primaryKey().references('api_keys.id').onDelete('cascade'))
    .addColumn('metadata', 'text', c => c.notNull())
    .execute()
  // The last two columns let a page by status skip other keys without reading their rows.
  await sql`create index api_keys_by_external_id
    on api_keys (user_id, external_id, created_at, id, revoked_at, expires_at)
    where external_id is not null`.execute(db)
  // For pruning the metadata of keys that ended.
  await sql`create index api_keys_revoked_with_metadata on api_keys (revoked_at)
    where revoked_at is not null and metadata_bytes is not null`.execute(db)
  await sql`create index api_keys_expiring_with_metadata on api_keys (expires_at)
    where expires_at is not null and metadata_bytes is not null`.execute(db)
})
