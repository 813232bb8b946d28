import { type RawBuilder, sql } from 'kysely'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type {
  SecurityEventChanges,
  SecurityEventRows,
  SecurityEventStore,
} from '../security-events/security-event-store.ts'
import { filteredSlice, rowsToRead } from './bounded-scan.ts'
import { isOlderThan } from './paging.ts'
import type { SecurityEventRow } from './schema.ts'
import { countOf, inChunks, type Statements } from './statements.ts'

export function createSecurityEventStore({
  db,
}: Statements): SecurityEventStore & SecurityEventChanges & SecurityEventRows {
  return {
    insert: event => insertMany([event]),
    insertMany,
    async list(userId, { limit, after }, { types, keyId } = {}) {
      const isFiltered = types !== undefined && keyId !== undefined
      const userCondition = sql`user_id = ${userId} ${after ? sql`and ${isOlderThan('at', after)}` : sql``}`
      const orderAndLimit = sql`order by at desc, id desc limit ${rowsToRead(limit, isFiltered)}`
      const rowsOf = (condition: RawBuilder<unknown>) =>
        sql`select * from security_events where ${userCondition} ${condition} ${orderAndLimit}`
      const query =
        keyId !== undefined
          ? rowsOf(sql`and key_id = ${keyId}`)
          : types !== undefined
            ? sql`select * from (${sql.join(
                types.map(type => sql`select * from (${rowsOf(sql`and type = ${type}`)}) as one`),
                sql` union all `,
              )}) as found ${orderAndLimit}`
            : rowsOf(sql``)
      const rows = types?.length === 0 ? [] : (await sql<SecurityEventRow>`${query}`.execute(db)).rows
      return filteredSlice(
        rows.map(toEvent),
        limit,
        isFiltered,
        ({ type }) => types === undefined || types.includes(type),
        ({ at, id }) => ({ at, id }),
      )
    },
    async prune(before, batch) {
      const prunableIds = db.selectFrom('security_events').select('id').where('at', '<', before).limit(batch)
      return countOf(await db.deleteFrom('security_events').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }

  async function insertMany(events: readonly SecurityEvent[]): Promise<void> {
    for (const chunk of inChunks(events))
      await db.insertInto('security_events').values(chunk.map(toRow)).execute()
  }
}

function toRow(event: SecurityEvent): SecurityEventRow {
  return {
    id: event.id,
    user_id: event.userId,
    type: event.type,
    at: event.at,
    network: event.network,
    client: event.client,
    key_id: event.keyId,
    session_id: event.sessionId,
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
