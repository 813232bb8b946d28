import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const keyAlerts = defineMigration('0016-key-alerts', async ({ db }) => {
  // One row for each alert that was mailed to a key's owner. The primary key prevents a second alert of the same kind
  // in one period.
  await db.schema
    .createTable('key_alerts')
    .addColumn('lineage_id', 'text', c => c.notNull())
    .addColumn('kind', 'text', c => c.notNull())
    .addColumn('period', 'bigint', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('key_alerts_pkey', ['lineage_id', 'kind', 'period'] as never)
    .execute()
  await sql`create index key_alerts_by_at on key_alerts (at)`.execute(db)
  // The networks from which a key was used.
  await db.schema
    .createTable('key_networks')
    .addColumn('lineage_id', 'text', c => c.notNull())
    .addColumn('network', 'text', c => c.notNull())
    .addColumn('seen_at', 'bigint', c => c.notNull())
    .addPrimaryKeyConstraint('key_networks_pkey', ['lineage_id', 'network'] as never)
    .execute()
  await sql`create index key_networks_by_seen_at on key_networks (seen_at)`.execute(db)
})
