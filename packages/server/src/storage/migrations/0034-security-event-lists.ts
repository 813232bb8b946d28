import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/** Indexes with which a page of one type of events, or of one key's, reads only its rows, however many there are. */
export const securityEventLists = defineMigration('0034-security-event-lists', async ({ db }) => {
  await sql`create index security_events_by_type on security_events (user_id, type, at, id)`.execute(db)
  await sql`create index security_events_of_key on security_events (user_id, key_id, at, id)
    where key_id is not null`.execute(db)
})
