import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const oauthClients = defineMigration('0017-oauth-clients', async ({ db }) => {
  // The previous version leaves these columns null. Null stands for the default, which is empty for a list or an
  // address, and false for a flag.
  const apps = db.schema.alterTable.bind(db.schema, 'apps')
  for (const list of ['redirect_uris', 'logout_uris', 'scopes'])
    await apps().addColumn(list, 'text').execute()
  for (const text of ['backchannel_logout_uri', 'token_alg', 'jwks_uri'])
    await apps().addColumn(text, 'text').execute()
  for (const flag of ['trusted', 'is_public', 'require_pkce'])
    await apps().addColumn(flag, 'integer').execute()
  await apps().addColumn('removed_at', 'bigint').execute()

  // These columns are for sessions of the kind `app`, which the previous version accepts nowhere.
  const sessions = db.schema.alterTable.bind(db.schema, 'sessions')
  await sessions().addColumn('scopes', 'text').execute()
  await sessions().addColumn('audience', 'text').execute()
  await sessions().addColumn('auth_time', 'bigint').execute()
  await sql`create index sessions_of_apps on sessions (app_id, id) where kind = 'app' and ended_at is null`.execute(
    db,
  )

  // These keys are not in `signing_keys`, since the previous version takes every key there for an Ed25519 key.
  await db.schema
    .createTable('algorithm_keys')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('alg', 'text', c => c.notNull())
    .addColumn('sequence', 'integer', c => c.notNull())
    .addColumn('public_key', 'text', c => c.notNull())
    .addColumn('sealed_private_key', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('signs_from', 'bigint', c => c.notNull())
    .addColumn('retires_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('algorithm_keys_sequence')
    .unique()
    .on('algorithm_keys')
    .columns(['alg', 'sequence'])
    .execute()
})
