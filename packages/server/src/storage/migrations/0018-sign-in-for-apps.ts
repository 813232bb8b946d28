import { defineMigration } from './migration.ts'

export const signInForApps = defineMigration('0018-sign-in-for-apps', async ({ db }) => {
  // Consents: what a person lets an app do.
  await db.schema
    .createTable('consents')
    .addColumn('id', 'text', c => c.notNull())
    .addColumn('user_id', 'text', c => c.notNull().references('users.id'))
    .addColumn('app_id', 'text', c => c.notNull().references('apps.id'))
    .addColumn('scopes', 'text', c => c.notNull())
    .addColumn('granted_at', 'bigint', c => c.notNull())
    .addColumn('revoked_at', 'bigint')
    .addPrimaryKeyConstraint('consents_pkey', ['user_id', 'app_id'] as never)
    .execute()

  await db.schema
    .createTable('authorization_codes')
    .addColumn('code_hash', 'text', c => c.notNull().primaryKey())
    .addColumn('app_id', 'text', c => c.notNull())
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('sign_in_id', 'text', c => c.notNull())
    .addColumn('redirect_uri', 'text')
    .addColumn('scopes', 'text', c => c.notNull())
    .addColumn('audience', 'text')
    .addColumn('nonce', 'text')
    .addColumn('code_challenge', 'text')
    .addColumn('auth_time', 'bigint', c => c.notNull())
    .addColumn('network', 'text', c => c.notNull())
    .addColumn('client', 'text')
    .addColumn('pushed_id', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addColumn('used_at', 'bigint')
    .addColumn('session_id', 'text')
    .execute()
  // A pushed request is good for one code (RFC 9126 section 7.3).
  await db.schema
    .createIndex('authorization_codes_pushed_id')
    .unique()
    .on('authorization_codes')
    .column('pushed_id')
    .execute()
  await db.schema
    .createIndex('authorization_codes_by_created_at')
    .on('authorization_codes')
    .column('created_at')
    .execute()

  // Ended sessions whose app must be notified. A leased notice is due again when its lease ends.
  await db.schema
    .createTable('logout_notices')
    .addColumn('session_id', 'text', c => c.notNull().primaryKey())
    .addColumn('app_id', 'text', c => c.notNull())
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('attempts', 'integer', c => c.notNull())
    .addColumn('next_attempt_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('logout_notices_by_next_attempt_at')
    .on('logout_notices')
    .column('next_attempt_at')
    .execute()

  // Used assertions of clients (RFC 7523 section 3: a jti is good once).
  await db.schema
    .createTable('client_assertions')
    .addColumn('app_id', 'text', c => c.notNull())
    .addColumn('jti_hash', 'text', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('client_assertions_pkey', ['app_id', 'jti_hash'] as never)
    .execute()
  await db.schema
    .createIndex('client_assertions_by_expires_at')
    .on('client_assertions')
    .column('expires_at')
    .execute()

  await db.schema
    .createTable('registered_clients')
    .addColumn('app_id', 'text', c => c.notNull().primaryKey())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()

  // Null: RS256.
  await db.schema.alterTable('apps').addColumn('id_token_alg', 'text').execute()

  // For sessions of apps: the page session in which they were granted.
  await db.schema.alterTable('sessions').addColumn('sign_in_id', 'text').execute()
  await db.schema
    .createIndex('sessions_by_sign_in_id')
    .on('sessions')
    .column('sign_in_id')
    .where('sign_in_id' as never, 'is not', null)
    .execute()
})
