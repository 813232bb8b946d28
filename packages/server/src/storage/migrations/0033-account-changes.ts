import { defineMigration } from './migration.ts'

/** Adds the time at which an account is deleted at its owner's request, and email changes that await confirmation. */
export const accountChanges = defineMigration('0033-account-changes', async ({ db }) => {
  await db.schema.alterTable('users').addColumn('deletes_at', 'bigint').execute()
  await db.schema
    .createIndex('users_to_delete')
    .on('users')
    .column('deletes_at')
    .where('deletes_at', 'is not', null)
    .execute()
  await db.schema
    .createTable('email_changes')
    .addColumn('user_id', 'text', c => c.notNull().primaryKey())
    .addColumn('session_id', 'text', c => c.notNull())
    .addColumn('old_email', 'text', c => c.notNull())
    .addColumn('new_email', 'text', c => c.notNull())
    .addColumn('old_token_hash', 'text', c => c.notNull().unique())
    .addColumn('new_token_hash', 'text', c => c.notNull().unique())
    .addColumn('old_confirmed_at', 'bigint')
    .addColumn('new_confirmed_at', 'bigint')
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('expires_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema.createIndex('email_changes_expired').on('email_changes').column('expires_at').execute()
  await db.schema
    .createIndex('messages_of_user')
    .on('messages')
    .column('user_id')
    .where('user_id', 'is not', null)
    .execute()
})
