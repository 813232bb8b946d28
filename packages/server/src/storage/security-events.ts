import { toSlice } from '../paging.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type { SecurityEventChanges, SecurityEventStore } from '../security-events/security-event-store.ts'
import { before as olderThan } from './paging.ts'
import type { SecurityEventRow } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

export function createSecurityEventStore({ db }: Statements): SecurityEventStore & SecurityEventChanges {
  return {
    async insert(event) {
      await db
        .insertInto('security_events')
        .values({
          id: event.id,
          user_id: event.userId,
          type: event.type,
          at: event.at,
          network: event.network,
          client: event.client,
          key_id: event.keyId,
          session_id: event.sessionId,
        })
        .execute()
    },
    async list(userId, page) {
      const rows = await db
        .selectFrom('security_events')
        .selectAll()
        .where('user_id', '=', userId)
        .$if(page.after !== null, query => query.where(olderThan('at', page.after!)))
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .limit(page.limit + 1)
        .execute()
      return toSlice(rows.map(toEvent), page.limit, event => ({ at: event.at, id: event.id }))
    },
    async prune(before, batch) {
      const old = db.selectFrom('security_events').select('id').where('at', '<', before).limit(batch)
      return countOf(await db.deleteFrom('security_events').where('id', 'in', old).executeTakeFirst())
    },
  }
}

function toEvent(row: SecurityEventRow): SecurityEvent {
  return {
    id: row.id,
    userId: row.user_id,
    type: row.type,
    at: row.at,
    network: row.network,
    client: row.client,
    keyId: row.key_id,
    sessionId: row.session_id,
  }
}
