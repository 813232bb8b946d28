import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const keyMetadata = defineMigration('0013-key-metadata', async ({ db }) => {
  await db.schema.alterTable('api_keys').addColumn('external_id', 'text').execute()
  // The length of the key's metadata in bytes, from which a list's size is known before the metadata is read; null if
  // the key has no metadata.
  await db.schema.alterTable('api_keys').addColumn('metadata_bytes', 'integer').execute()
  // A separate table, since metadata of up to 16 KiB in the key's row would be rewritten whenever the key's last use is
  // stored.
  await db.schema
    .createTable('key_metadata')
    .addColumn('key_id', 'text', c => c.notNull().primaryKey().references('api_keys.id').onDelete('cascade'))
    .addColumn('metadata', 'text', c => c.notNull())
    .execute()
  // The last two columns decide a key's status, so that a page of one status skips other keys without reading their
  // rows.
  await sql`create index api_keys_by_external_id
    on api_keys (user_id, external_id, created_at, id, revoked_at, expires_at)
    where external_id is not null`.execute(db)
  // For pruning the metadata of revoked and of expired keys.
  await sql`create index api_keys_revoked_with_metadata on api_keys (revoked_at)
    where revoked_at is not null and metadata_bytes is not null`.execute(db)
  await sql`create index api_keys_expiring_with_metadata on api_keys (expires_at)
    where expires_at is not null and metadata_bytes is not null`.execute(db)
})
