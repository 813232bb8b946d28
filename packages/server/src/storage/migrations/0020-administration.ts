import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const administration = defineMigration('0020-administration', async ({ db, appendOnly }) => {
  await sql`create index users_with_role on users (role, created_at, id) where role <> 'user'`.execute(db)
  // Keyed hashes of the addresses in KEYWAY_ADMIN_EMAILS. `claimed_at` is when the account with the address became an
  // administrator.
  await db.schema
    .createTable('listed_administrators')
    .addColumn('address_hash', 'text', c => c.notNull().primaryKey())
    .addColumn('listed_at', 'bigint', c => c.notNull())
    .addColumn('claimed_at', 'bigint')
    .addColumn('user_id', 'text')
    .execute()
  await db.schema
    .createTable('audit_events')
    .addColumn('sequence', 'bigint', c => c.notNull().primaryKey())
    .addColumn('id', 'text', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .addColumn('type', 'text', c => c.notNull())
    .addColumn('actor_id', 'text')
    .addColumn('actor', 'text', c => c.notNull())
    .addColumn('subject_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('subject', 'text', c => c.notNull())
    .addColumn('before_state', 'text')
    .addColumn('after_state', 'text')
    .addColumn('reason_hash', 'text')
    .addColumn('network', 'text')
    .addColumn('request_id', 'text')
    .addColumn('previous_hash', 'text', c => c.notNull())
    .addColumn('hash', 'text', c => c.notNull())
    .execute()
  await sql`create index audit_events_by_at on audit_events (at, sequence)`.execute(db)
  await sql`create index audit_events_by_type on audit_events (type, sequence)`.execute(db)
  await sql`create index audit_events_by_actor on audit_events (actor_id, sequence)`.execute(db)
  await sql`create index audit_events_by_subject on audit_events (subject_id, sequence)`.execute(db)
  await sql`create index audit_events_by_user on audit_events (user_id, sequence)`.execute(db)
  // A separate table, since reasons are erased with the person's account, while audit rows never change.
  await db.schema
    .createTable('audit_reasons')
    .addColumn('sequence', 'bigint', c => c.notNull().primaryKey())
    .addColumn('user_id', 'text')
    .addColumn('salt', 'text', c => c.notNull())
    .addColumn('reason', 'text', c => c.notNull())
    .execute()
  await sql`create index audit_reasons_by_user on audit_reasons (user_id)`.execute(db)
  // A single row with the positions of the newest event in the hash chain, of the newest sealed event and of the newest
  // pruned event.
  await db.schema
    .createTable('audit_chain')
    .addColumn('id', 'text', c => c.notNull().primaryKey())
    .addColumn('sequence', 'bigint', c => c.notNull())
    .addColumn('at', 'bigint', c => c.notNull())
    .addColumn('hash', 'text', c => c.notNull())
    .addColumn('sealed_sequence', 'bigint')
    .addColumn('sealed_hash', 'text')
    .addColumn('sealed_mac', 'text')
    .addColumn('pruned_sequence', 'bigint')
    .addColumn('pruned_hash', 'text')
    .addColumn('pruned_mac', 'text')
    .execute()
  await appendOnly('audit_events', 'old.sequence <= (select pruned_sequence from audit_chain)')
})
