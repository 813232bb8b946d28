import { defineMigration } from './migration.ts'

export const limitLeases = defineMigration('0014-limit-leases', async ({ db }) => {
  await db.schema
    .createTable('limit_leases')
    .addColumn('subject', 'text', c => c.notNull().primaryKey())
    .addColumn('version', 'bigint', c => c.notNull())
    .addColumn('state', 'text', c => c.notNull())
    .addColumn('wanted_at', 'bigint')
    .addColumn('prunable_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema.createIndex('limit_leases_wanted').on('limit_leases').column('wanted_at').execute()
  await db.schema.createIndex('limit_leases_prunable').on('limit_leases').column('prunable_at').execute()
  await db.schema
    .createTable('limit_holders')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('until', 'bigint', c => c.notNull())
    .execute()
})
