import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/**
 * With these indexes, a page of a user's events of one type or about one key reads only its own rows, however many
 * events the user has.
 */
export const securityEventLists = defineMigration('0034-security-event-lists', async ({ db }) => {
  await sql`create index security_events_by_type on security_events (user_id, type, at, id)`.execute(db)
  await sql`create index security_events_of_key on security_events (user_id, key_id, at, id)
    where key_id is not null`.execute(db)
})
