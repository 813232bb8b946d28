import { sql } from 'kysely'
import { defineMigration, type Untyped } from './migration.ts'

// The column types are the same in both engines: 64-bit integers for instants, counts and money, text for ids and
// lists, and 0 or 1 for flags.
export const first = defineMigration('0001-first', async ({ db, appendOnly }) => {
  await people(db)
  await money(db)
  await keysAndApps(db)
  await signIn(db)
  await mail(db)
  await operation(db)
  await appendOnly('ledger_entries')
  await db
    .insertInto('apps')
    .values([
      { id: 'console', name: 'Keyway Console', first_party: 1, created_at: 0 },
      { id: 'hub', name: 'Keyway Hub', first_party: 1, created_at: 0 },
      { id: 'service-sdk', name: 'Service SDK', first_party: 0, created_at: 0 },
    ])
    .execute()
})

async function people(db: Untyped): Promise<void> {
  await db.schema
    .createTable('users')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('email', 'text')
    .addColumn('name', 'text')
    .addColumn('role', 'text', c => c.notNull())
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('deleted_at', 'bigint')
    .execute()
  await db.schema.createIndex('users_email').unique().on('users').column('email').execute()
  await db.schema.createIndex('users_created').on('users').columns(['created_at', 'id']).execute()
  await db.schema
    .createTable('security_events')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('user_id', 'text', c => c.notNull().references('users.id'))
    .addColumn('type', 'text', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .addColumn('network', 'text')
    .addColumn('client', 'text')
    .addColumn('key_id', 'text')
    .addColumn('session_id', 'text')
    .execute()
  await index(db, 'security_events', ['user_id', 'at', 'id'])
  await index(db, 'security_events', ['at'])
}

async function money(db: Untyped): Promise<void> {
  await db.schema
    .createTable('balances')
    .addColumn('user_id', 'text', c => c.notNull().primaryKey().references('users.id'))
    .addColumn('balance', 'bigint', c => c.notNull())
    .addCheckConstraint('balances_not_negative', sql`balance >= 0`)
    .execute()
  await db.schema
    .createTable('ledger_entries')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('user_id', 'text', c => c.notNull().references('users.id'))
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('amount', 'bigint', c => c.notNull())
    .addColumn('balance_after', 'bigint', c => c.notNull())
    .addColumn('app_id', 'text')
    .addColumn('description', 'text', c => c.notNull())
    .addColumn('cause', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema.createIndex('ledger_entries_cause').unique().on('ledger_entries').column('cause').execute()
  await index(db, 'ledger_entries', ['user_id', 'created_at', 'id'])
  await db.schema
    .createTable('trial_credits')
    .addColumn('address_hash', 'text', c => c.notNull().primaryKey())
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('claimed_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createTable('subscriptions')
    .addColumn('user_id', 'text', c => c.notNull().primaryKey().references('users.id'))
    .addColumn('plan', 'text', c => c.notNull())
    .addColumn('status', 'text', c => c.notNull())
    .addColumn('started_at', 'bigint', c => c.notNull())
    .execute()
}

async function keysAndApps(db: Untyped): Promise<void> {
  await db.schema
    .createTable('apps')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('first_party', 'integer', c => c.notNull())
    .addColumn('audience', 'text')
    .addColumn('verify_url', 'text')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema.createIndex('apps_audience').unique().on('apps').column('audience').execute()
  await db.schema
    .createTable('app_secrets')
    .addColumn('app_id', 'text', c => c.notNull().references('apps.id'))
    .addColumn('secret_hash', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('app_secrets_pkey', ['app_id', 'secret_hash'] as never)
    .execute()
  await db.schema
    .createTable('charge_authorizations')
    .addColumn('user_id', 'text', c => c.notNull().references('users.id'))
    .addColumn('app_id', 'text', c => c.notNull().references('apps.id'))
    .addColumn('granted_at', 'bigint', c => c.notNull())
    .addColumn('revoked_at', 'bigint')
    .addPrimaryKeyConstraint('charge_authorizations_pkey', ['user_id', 'app_id'] as never)
    .execute()
  await db.schema
    .createTable('api_keys')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('user_id', 'text', c => c.notNull().references('users.id'))
    .addColumn('app_id', 'text', c => c.notNull())
    .addColumn('key_hash', 'text', c => c.notNull())
    .addColumn('key_prefix', 'text', c => c.notNull())
    .addColumn('name', 'text')
    .addColumn('scopes', 'text', c => c.notNull())
    .addColumn('allowed_networks', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .addColumn('last_used_at', 'bigint')
    .addColumn('replaced_by', 'text')
    .execute()
  await db.schema.createIndex('api_keys_key_hash').unique().on('api_keys').column('key_hash').execute()
  await index(db, 'api_keys', ['user_id', 'created_at', 'id'])
  await index(db, 'api_keys', ['expires_at'])
}

async function signIn(db: Untyped): Promise<void> {
  await db.schema
    .createTable('magic_links')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('token_hash', 'text', c => c.notNull())
    .addColumn('code_hash', 'text', c => c.notNull())
    .addColumn('email', 'text', c => c.notNull())
    .addColumn('app_id', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addColumn('used_at', 'bigint')
    .addColumn('code_tries', 'integer', c => c.notNull())
    .execute()
  await db.schema
    .createIndex('magic_links_token_hash')
    .unique()
    .on('magic_links')
    .column('token_hash')
    .execute()
  await index(db, 'magic_links', ['email'])
  await index(db, 'magic_links', ['expires_at'])
  await db.schema
    .createTable('send_buckets')
    .addColumn('bucket', 'text', c => c.notNull().primaryKey())
    .addColumn('count', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createTable('sends')
    .addColumn('bucket', 'text', c => c.notNull())
    .addColumn('number', 'bigint', c => c.notNull())
    .addColumn('sent_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('sends_pkey', ['bucket', 'number'] as never)
    .execute()
  await index(db, 'sends', ['bucket', 'sent_at'])
  await index(db, 'sends', ['sent_at'])
  await db.schema
    .createTable('sessions')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('user_id', 'text', c => c.notNull().references('users.id'))
    .addColumn('app_id', 'text', c => c.notNull())
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('last_used_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .addColumn('counter', 'bigint', c => c.notNull())
    .addColumn('sealed_secret', 'text', c => c.notNull())
    .addColumn('retry_keys', 'text', c => c.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('ended_by', 'text')
    .addColumn('network', 'text', c => c.notNull())
    .addColumn('client', 'text')
    .execute()
  await index(db, 'sessions', ['user_id', 'created_at', 'id'])
  await index(db, 'sessions', ['ended_at'])
  await index(db, 'sessions', ['expires_at'])
}

async function mail(db: Untyped): Promise<void> {
  await db.schema
    .createTable('messages')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('recipient', 'text', c => c.notNull())
    .addColumn('user_id', 'text')
    .addColumn('sealed_content', 'text')
    .addColumn('state', 'text', c => c.notNull())
    .addColumn('attempts', 'integer', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('next_attempt_at', 'bigint', c => c.notNull())
    .addColumn('send_before', 'bigint')
    .addColumn('leased_until', 'bigint')
    .addColumn('settled_at', 'bigint')
    .addColumn('last_error', 'text')
    .execute()
  await index(db, 'messages', ['state', 'next_attempt_at'])
  await index(db, 'messages', ['recipient', 'created_at'])
  await index(db, 'messages', ['settled_at'])
  await db.schema
    .createTable('inbox')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('recipient', 'text', c => c.notNull())
    .addColumn('sealed_mail', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await index(db, 'inbox', ['created_at', 'id'])
}

async function operation(db: Untyped): Promise<void> {
  await db.schema
    .createTable('endings')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('subject_id', 'text', c => c.notNull())
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .execute()
  await index(db, 'endings', ['at', 'id'])
  await db.schema
    .createTable('instance')
    .addColumn('name', 'text', c => c.notNull().primaryKey())
    .addColumn('value', 'text', c => c.notNull())
    .execute()
  await db.schema
    .createTable('nodes')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('started_at', 'bigint', c => c.notNull())
    .addColumn('seen_at', 'bigint', c => c.notNull())
    .addColumn('version', 'text', c => c.notNull())
    .execute()
  await db.schema
    .createTable('connections')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('node_id', 'text', c => c.notNull())
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('key_id', 'text', c => c.notNull())
    .addColumn('key_name', 'text')
    .addColumn('address', 'text', c => c.notNull())
    .addColumn('client', 'text')
    .addColumn('connected_at', 'bigint', c => c.notNull())
    .execute()
  await index(db, 'connections', ['user_id'])
  await index(db, 'connections', ['node_id'])
  await db.schema
    .createTable('signing_keys')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('sequence', 'integer', c => c.notNull())
    .addColumn('public_key', 'text', c => c.notNull())
    .addColumn('sealed_seed', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('signs_from', 'bigint', c => c.notNull())
    .addColumn('retires_at', 'bigint')
    .execute()
  await db.schema
    .createIndex('signing_keys_sequence')
    .unique()
    .on('signing_keys')
    .column('sequence')
    .execute()
}

async function index(db: Untyped, table: string, columns: string[]): Promise<void> {
  await db.schema
    .createIndex(`${table}_by_${columns.join('_')}`)
    .on(table)
    .columns(columns)
    .execute()
}
