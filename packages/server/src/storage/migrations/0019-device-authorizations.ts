import { defineMigration } from './migration.ts'

export const deviceAuthorizations = defineMigration('0019-device-authorizations', async ({ db }) => {
  await db.schema
    .createTable('device_authorizations')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('client_id', 'text', c => c.notNull())
    .addColumn('device_code_hash', 'text', c => c.notNull().unique())
    .addColumn('user_code_hash', 'text', c => c.notNull().unique())
    .addColumn('ticket_hash', 'text', c => c.notNull().unique())
    .addColumn('scopes', 'text', c => c.notNull())
    .addColumn('resource', 'text')
    .addColumn('device_name', 'text')
    .addColumn('address', 'text', c => c.notNull())
    .addColumn('network', 'text', c => c.notNull())
    .addColumn('client', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addColumn('poll_interval', 'integer', c => c.notNull())
    .addColumn('last_polled_at', 'bigint')
    .addColumn('decision', 'text')
    .addColumn('decided_at', 'bigint')
    .addColumn('user_id', 'text')
    .addColumn('sign_in_id', 'text')
    .addColumn('auth_time', 'bigint')
    .addColumn('redeemed_at', 'bigint')
    .addColumn('session_id', 'text', c => c.unique())
    .addColumn('key_id', 'text')
    .execute()
  await db.schema
    .createIndex('device_authorizations_by_expires_at')
    .on('device_authorizations')
    .column('expires_at')
    .execute()
  // The SDK's command line is the only client that may request the scope `keys:create`, which operators cannot give to
  // an app.
  const cli = { id: 'keyway-cli', name: 'The Keyway command', is_public: 1, scopes: '["keys:create"]' }
  await db
    .insertInto('apps')
    .values({ ...cli, first_party: 0, created_at: 0 })
    .onConflict(conflict => conflict.column('id').doNothing())
    .execute()
})
