import { sql } from 'kysely'
import { defineMigration, type Untyped } from './migration.ts'

const COUNTERS = [
  'exchanges',
  'api_calls',
  'introspections',
  'connections',
  'connected_ms',
  'messages_sent',
  'messages_received',
  'charged',
]

export const usage = defineMigration('0011-usage', async ({ db }) => {
  let counts = bucketTable(db, 'usage_counts')
  for (const counter of COUNTERS) counts = counts.addColumn(counter, 'bigint', c => c.notNull().defaultTo(0))
  await counts.addPrimaryKeyConstraint('usage_counts_key', ['user_id', 'key_id', 'unit', 'start']).execute()
  await bucketTable(db, 'usage_refusals')
    .addColumn('code', 'text', c => c.notNull())
    .addColumn('count', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('usage_refusals_key', ['user_id', 'key_id', 'unit', 'start', 'code'])
    .execute()
  for (const table of ['usage_counts', 'usage_refusals'])
    await db.schema.createIndex(`${table}_by_start`).on(table).columns(['unit', 'start']).execute()
  // The number of each node's last flush, so that a flush that is repeated because its answer was lost is not added
  // twice.
  await db.schema
    .createTable('usage_flushes')
    .addColumn('writer', 'text', c => c.notNull().primaryKey())
    .addColumn('sequence', 'bigint', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .execute()
  // 1 once all usage of a deleted account is deleted, so that housekeeping skips this account. Accounts deleted before
  // this migration have no usage.
  await db.schema.alterTable('users').addColumn('usage_pruned', 'integer').execute()
  await db.updateTable('users').set({ usage_pruned: 1 }).where('deleted_at', 'is not', null).execute()
  await sql`create index users_usage_to_prune on users (deleted_at)
    where deleted_at is not null and usage_pruned is null`.execute(db)
  await db.schema.alterTable('api_keys').addColumn('last_used_network', 'text').execute()
  await db.schema.alterTable('api_keys').addColumn('last_used_client', 'text').execute()
})

/** A table with one row for each key and period. `key_id` is empty in rows with the user's totals. */
function bucketTable(db: Untyped, name: string) {
  return db.schema
    .createTable(name)
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('key_id', 'text', c => c.notNull())
    .addColumn('unit', 'text', c => c.notNull())
    .addColumn('start', 'bigint', c => c.notNull())
}
