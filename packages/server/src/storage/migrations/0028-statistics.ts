import { defineMigration } from './migration.ts'

/** Counts of the whole service for each hour and each day. */
export const statistics = defineMigration('0028-statistics', async ({ db }) => {
  await db.schema
    .createTable('statistics')
    .addColumn('unit', 'text', c => c.notNull())
    .addColumn('start', 'bigint', c => c.notNull())
    .addColumn('name', 'text', c => c.notNull())
    .addColumn('value', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('statistics_key', ['unit', 'start', 'name'])
    .execute()
})
