import { defineMigration } from './migration.ts'

export const keySpend = defineMigration('0015-key-spend', async ({ db }) => {
  // The key that an entry was charged to, and the key's lineage, for which spend is summed. They are no foreign keys,
  // since the ledger outlives keys.
  await db.schema.alterTable('ledger_entries').addColumn('key_id', 'text').execute()
  await db.schema.alterTable('ledger_entries').addColumn('lineage_id', 'text').execute()
  // The sums of a lineage's entries: in its newest UTC day with an entry, in its newest UTC month with one, and in
  // total.
  await db.schema
    .createTable('key_spend')
    .addColumn('lineage_id', 'text', c => c.notNull().primaryKey())
    .addColumn('day', 'integer', c => c.notNull())
    .addColumn('day_spent', 'bigint', c => c.notNull())
    .addColumn('month', 'integer', c => c.notNull())
    .addColumn('month_spent', 'bigint', c => c.notNull())
    .addColumn('total_spent', 'bigint', c => c.notNull())
    .execute()
})
