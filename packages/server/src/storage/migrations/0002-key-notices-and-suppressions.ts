import { defineMigration } from './migration.ts'

export const keyNoticesAndSuppressions = defineMigration(
  '0002-key-notices-and-suppressions',
  async ({ db }) => {
    // How many days before the key's expiry the last expiry notice was mailed; null if none was mailed.
    await db.schema.alterTable('api_keys').addColumn('expiry_notice', 'integer').execute()
    await db.schema
      .createTable('mail_suppressions')
      .addColumn('address', 'text', c => c.notNull().primaryKey())
      .addColumn('reason', 'text', c => c.notNull())
      .addColumn('provider', 'text', c => c.notNull())
      .addColumn('at', 'bigint', c => c.notNull())
      .addColumn('until', 'bigint', c => c.notNull())
      .execute()
    await db.schema
      .createIndex('mail_suppressions_by_until')
      .on('mail_suppressions')
      .column('until')
      .execute()
  },
)
