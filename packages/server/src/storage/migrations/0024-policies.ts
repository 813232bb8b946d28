import { defineMigration } from './migration.ts'

/** A table with a single row: the policies that administrators set, as JSON. */
export const policies = defineMigration('0024-policies', async ({ db }) => {
  await db.schema
    .createTable('policies')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('document', 'text', c => c.notNull())
    .addColumn('changed_at', 'bigint', c => c.notNull())
    .execute()
})
