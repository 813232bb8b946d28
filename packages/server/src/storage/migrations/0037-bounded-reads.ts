import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

/**
 * With these indexes, each of these queries reads only the rows that it returns, however many other rows there are: a
 * user's live sessions, the queued mails that expire first, and the mails of one kind to a user.
 */
export const boundedReads = defineMigration('0037-bounded-reads', async ({ db }) => {
  await sql`create index live_sessions on sessions (user_id, created_at, id) where ended_at is null`.execute(
    db,
  )
  await sql`create index expiring_messages on messages (send_before, id)
    where state = 'queued' and send_before is not null`.execute(db)
  await sql`create index notices_of_user on messages (user_id, kind, created_at) where user_id is not null`.execute(
    db,
  )
})
