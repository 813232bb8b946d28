import type { NodeRow, PresenceRow, PresenceStore } from '../hub/presence-store.ts'
import { toSlice } from '../paging.ts'
import type { ConnectionRow, Schema } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

/** Rows per statement, so that building it blocks the event loop for less than a millisecond. */
const CHUNK = 100

export function createPresenceStore({ db, atomically }: Statements): PresenceStore {
  return {
    async heartbeat(node) {
      await db
        .insertInto('nodes')
        .values({
          id: node.id,
          started_at: node.startedAt,
          seen_at: node.seenAt,
          version: node.version,
          seals_events: node.sealsEvents ? 1 : null,
          relay_version: node.relayVersion,
        })
        .onConflict(conflict =>
          conflict.column('id').doUpdateSet({ seen_at: node.seenAt, version: node.version }),
        )
        .execute()
    },
    deregister: nodeId =>
      atomically(async tx => {
        await tx.deleteFrom('connections').where('node_id', '=', nodeId).execute()
        await tx.deleteFrom('nodes').where('id', '=', nodeId).execute()
      }),
    async record(added, removedIds) {
      if (added.length + removedIds.length === 0) return
      await atomically(async tx => {
        for (let start = 0; start < added.length; start += CHUNK) {
          await tx
            .insertInto('connections')
            .values(added.slice(start, start + CHUNK).map(toRow))
            .onConflict(conflict =>
              conflict.column('id').doUpdateSet(row => ({
                key_id: row.ref('excluded.key_id'),
                key_name: row.ref('excluded.key_name'),
              })),
            )
            .execute()
        }
        for (let start = 0; start < removedIds.length; start += CHUNK) {
          const some = removedIds.slice(start, start + CHUNK)
          await tx.deleteFrom('connections').where('id', 'in', some).execute()
        }
      })
    },
    async listOf(userId, seenSince) {
      const rows = await db
        .selectFrom('connections')
        .innerJoin('nodes', 'nodes.id', 'connections.node_id')
        .selectAll('connections')
        .where('connections.user_id', '=', userId)
        .where('nodes.seen_at', '>=', seenSince)
        .orderBy('connections.connected_at', 'desc')
        .orderBy('connections.id', 'desc')
        .execute()
      return rows.map(toPresence)
    },
    async list(seenSince, { limit, after }) {
      // Ids are in the order of the connections' times.
      const rows = await db
        .selectFrom('connections')
        .innerJoin('nodes', 'nodes.id', 'connections.node_id')
        .selectAll('connections')
        .where('nodes.seen_at', '>=', seenSince)
        .$if(after !== null, query => query.where('connections.id', '<', after!.id))
        .orderBy('connections.id', 'desc')
        .limit(limit + 1)
        .execute()
      return toSlice(rows.map(toPresence), limit, row => ({ at: row.connectedAt, id: row.connectionId }))
    },
    async find(connectionId, seenSince) {
      const row = await db
        .selectFrom('connections')
        .innerJoin('nodes', 'nodes.id', 'connections.node_id')
        .selectAll('connections')
        .where('connections.id', '=', connectionId)
        .where('nodes.seen_at', '>=', seenSince)
        .executeTakeFirst()
      return row ? toPresence(row) : null
    },
    async countLive(seenSince) {
      const alive = db.selectFrom('nodes').select('id').where('seen_at', '>=', seenSince)
      const counted = db
        .selectFrom('connections')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('node_id', 'in', alive)
      return (await counted.executeTakeFirstOrThrow()).count
    },
    async countByNode() {
      const rows = await db
        .selectFrom('connections')
        .select(eb => ['node_id', eb.fn.countAll<number>().as('count')])
        .groupBy('node_id')
        .execute()
      return new Map(rows.map(row => [row.node_id, row.count]))
    },
    async nodes(seenSince) {
      const rows = await db
        .selectFrom('nodes')
        .selectAll()
        .where('seen_at', '>=', seenSince)
        .orderBy('started_at')
        .orderBy('id')
        .execute()
      return rows.map(toNode)
    },
    async prune(notSeenSince, batch) {
      const gone = db.selectFrom('nodes').select('id').where('seen_at', '<', notSeenSince).limit(batch)
      const nodes = countOf(
        await db
          .deleteFrom('nodes')
          .where('id', 'in', gone)
          .where('seen_at', '<', notSeenSince)
          .executeTakeFirst(),
      )
      const orphans = db
        .selectFrom('connections')
        .select('id')
        .where('node_id', 'not in', db.selectFrom('nodes').select('id'))
        .limit(batch)
      return nodes + countOf(await db.deleteFrom('connections').where('id', 'in', orphans).executeTakeFirst())
    },
  }
}

function toRow(row: PresenceRow): ConnectionRow {
  return {
    id: row.connectionId,
    node_id: row.nodeId,
    user_id: row.userId,
    key_id: row.keyId,
    key_name: row.keyName,
    address: row.address,
    client: row.client,
    connected_at: row.connectedAt,
  }
}

function toPresence(row: ConnectionRow): PresenceRow {
  return {
    connectionId: row.id,
    nodeId: row.node_id,
    userId: row.user_id,
    keyId: row.key_id,
    keyName: row.key_name,
    address: row.address,
    client: row.client,
    connectedAt: row.connected_at,
  }
}

function toNode(row: Schema['nodes']): NodeRow {
  return {
    id: row.id,
    startedAt: row.started_at,
    seenAt: row.seen_at,
    version: row.version,
    sealsEvents: row.seals_events === 1,
    relayVersion: row.relay_version ?? 0,
  }
}
