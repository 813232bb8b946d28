import { defineMigration } from './migration.ts'

export const wrongCodes = defineMigration('0006-wrong-codes', async ({ db }) => {
  await db.schema
    .createTable('wrong_codes')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('link_id', 'text', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .addColumn('mailbox', 'text', c => c.notNull())
    .addColumn('returning_browser', 'integer', c => c.notNull())
    .addColumn('networks', 'text', c => c.notNull())
    .execute()
  await db.schema.createIndex('wrong_codes_by_at').on('wrong_codes').column('at').execute()
  await db.schema.createIndex('wrong_codes_by_link').on('wrong_codes').column('link_id').execute()
})
