import { defineMigration } from './migration.ts'

export const limits = defineMigration('0012-limits', async ({ db }) => {
  // All three columns are null for keys that the previous version creates.
  await db.schema.alterTable('api_keys').addColumn('lineage_id', 'text').execute()
  await db.schema.alterTable('api_keys').addColumn('limits', 'text').execute()
  await db.schema.alterTable('api_keys').addColumn('operator_limits', 'text').execute()
  await db.schema
    .createTable('quotas')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('key_id', 'text', c => c.notNull())
    .addColumn('remaining', 'bigint', c => c.notNull())
    .addColumn('refill_amount', 'bigint')
    .addColumn('refill_every', 'text')
    .addColumn('refills_at', 'bigint')
    .addColumn('leased', 'bigint', c => c.notNull())
    .addColumn('retired_at', 'bigint')
    .execute()
  await db.schema.createIndex('quotas_key').on('quotas').column('key_id').execute()
  await db.schema.createIndex('quotas_retired').on('quotas').column('retired_at').execute()
})
