import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const webhooks = defineMigration('0022-webhooks', async ({ db }) => {
  await db.schema
    .createTable('webhooks')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('url', 'text', c => c.notNull())
    .addColumn('events', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('disabled_at', 'bigint')
    .addColumn('disabled_by', 'text')
    .addColumn('removed_at', 'bigint')
    .addColumn('dropped', 'bigint', c => c.notNull())
    .execute()
  await db.schema
    .createTable('webhook_secrets')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('webhook_id', 'text', c => c.notNull())
    .addColumn('sealed_secret', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .execute()
  await sql`create index webhook_secrets_by_webhook on webhook_secrets (webhook_id)`.execute(db)
  // One row for each endpoint and subject: it numbers their events, and is leased to deliver those that wait.
  await db.schema
    .createTable('webhook_queues')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('webhook_id', 'text', c => c.notNull())
    .addColumn('subject', 'text', c => c.notNull())
    .addColumn('last_sequence', 'bigint', c => c.notNull())
    .addColumn('next_attempt_at', 'bigint')
    .addColumn('leased_until', 'bigint')
    .addColumn('leased_by', 'text')
    .addColumn('forgotten_after', 'bigint')
    .addUniqueConstraint('webhook_queues_subject', ['webhook_id', 'subject'] as never)
    .execute()
  await sql`create index webhook_queues_due on webhook_queues (webhook_id, next_attempt_at)
    where next_attempt_at is not null`.execute(db)
  await sql`create index webhook_queues_leased on webhook_queues (leased_by) where leased_by is not null`.execute(
    db,
  )
  await sql`create index webhook_queues_over on webhook_queues (forgotten_after)
    where forgotten_after is not null`.execute(db)
  await db.schema
    .createTable('webhook_deliveries')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('webhook_id', 'text', c => c.notNull())
    .addColumn('queue_id', 'text', c => c.notNull())
    .addColumn('subject', 'text', c => c.notNull())
    .addColumn('sequence', 'bigint', c => c.notNull())
    .addColumn('type', 'text', c => c.notNull())
    .addColumn('data', 'text', c => c.notNull())
    .addColumn('state', 'text', c => c.notNull())
    .addColumn('created_at', 'bigint', c => c.notNull())
    .addColumn('attempts', 'integer', c => c.notNull())
    .addColumn('first_attempt_at', 'bigint')
    .addColumn('settled_at', 'bigint')
    .addColumn('last_attempt_at', 'bigint')
    .addColumn('last_duration_ms', 'integer')
    .addColumn('last_status', 'integer')
    .addColumn('last_error', 'text')
    .addColumn('last_answer', 'text')
    .addUniqueConstraint('webhook_deliveries_sequence', ['queue_id', 'sequence'] as never)
    .execute()
  await sql`create index webhook_deliveries_next on webhook_deliveries (queue_id, sequence)
    where state = 'waiting'`.execute(db)
  await sql`create index webhook_deliveries_waiting on webhook_deliveries (webhook_id, created_at, sequence)
    where state = 'waiting'`.execute(db)
  await sql`create index webhook_deliveries_newest on webhook_deliveries (webhook_id, created_at, id)`.execute(
    db,
  )
  await sql`create index webhook_deliveries_settled on webhook_deliveries (settled_at)
    where settled_at is not null`.execute(db)
  await sql`create index webhook_deliveries_by_state on webhook_deliveries (webhook_id, state, settled_at)`.execute(
    db,
  )
})
