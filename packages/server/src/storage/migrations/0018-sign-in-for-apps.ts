import { defineMigration } from './migration.ts'

export const signInForApps = defineMigration('0018-sign-in-for-apps', async ({ db }) => {
  // The scopes to which a person consented, for each app.
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
  // Only one code may be issued for a pushed authorization request (RFC 9126 section 7.3).
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

  // Sessions whose app is yet to be notified of their end. A notice is leased by setting `next_attempt_at` to the end
  // of the lease, so it becomes due again if its sender dies.
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

  // Assertions that clients have used. Each may be used only once (`jti` in RFC 7523 section 3).
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

  // The algorithm that signs the app's ID tokens. Null stands for RS256.
  await db.schema.alterTable('apps').addColumn('id_token_alg', 'text').execute()

  // The page session in which the session of an app was granted; null for other sessions.
  await db.schema.alterTable('sessions').addColumn('sign_in_id', 'text').execute()
  await db.schema
    .createIndex('sessions_by_sign_in_id')
    .on('sessions')
    .column('sign_in_id')
    .where('sign_in_id' as never, 'is not', null)
    .execute()
})
