import { sql } from 'kysely'
import type { NodeRow, PresenceChanges, PresenceRow, PresenceStore } from '../hub/presence-store.ts'
import { toSlice } from '../paging.ts'
import type { Db } from './engine.ts'
import type { ConnectionRow, Schema } from './schema.ts'
import { countOf, inChunks, JSON_CHUNK_SIZE, jsonRows, type Statements } from './statements.ts'

export function createPresenceStore(statements: Statements): PresenceStore & PresenceChanges {
  const { db, atomically } = statements
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
        const deletedConnections = await tx
          .deleteFrom('connections')
          .where('node_id', '=', nodeId)
          .returningAll()
          .execute()
        await tx.deleteFrom('user_nodes').where('node_id', '=', nodeId).execute()
        await tx.deleteFrom('nodes').where('id', '=', nodeId).execute()
        return deletedConnections.map(toPresence)
      }),
    record: (nodeId, added, removedIds) =>
      atomically(async tx => {
        const insertedRows: PresenceRow[] = []
        const removedRows: PresenceRow[] = []
        for (const chunk of inChunks(added, JSON_CHUNK_SIZE))
          insertedRows.push(...(await insertOrUpdate(tx, statements, chunk)))
        for (const chunk of inChunks(removedIds, JSON_CHUNK_SIZE)) {
          const ids = jsonRows(
            statements,
            chunk.map(id => [id]),
          )
          const deletion = tx
            .deleteFrom('connections')
            .where('node_id', '=', nodeId)
            .where(sql<boolean>`id in (select value->>0 from ${ids})`)
          removedRows.push(...(await deletion.returningAll().execute()).map(toPresence))
        }
        return { joined: insertedRows, left: removedRows }
      }),
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
      // Ordered by id, since ids sort by the time of connection.
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
      const liveNodes = db.selectFrom('nodes').select('id').where('seen_at', '>=', seenSince)
      const connectionCount = db
        .selectFrom('connections')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('node_id', 'in', liveNodes)
      return (await connectionCount.executeTakeFirstOrThrow()).count
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
      const staleNodeIds = db
        .selectFrom('nodes')
        .select('id')
        .where('seen_at', '<', notSeenSince)
        .limit(batch)
      const removedNodeCount = countOf(
        await db
          .deleteFrom('nodes')
          .where('id', 'in', staleNodeIds)
          .where('seen_at', '<', notSeenSince)
          .executeTakeFirst(),
      )
      const orphanIds = db
        .selectFrom('connections')
        .select('id')
        .where('node_id', 'not in', db.selectFrom('nodes').select('id'))
        .limit(batch)
      const connections = await db
        .deleteFrom('connections')
        .where('id', 'in', orphanIds)
        .returningAll()
        .execute()
      const orphanedLocations = db
        .selectFrom('user_nodes')
        .select(['user_id', 'node_id'])
        .where('node_id', 'not in', db.selectFrom('nodes').select('id'))
        .limit(batch)
      const locationCount = countOf(
        await db
          .deleteFrom('user_nodes')
          .where(({ eb, refTuple }) =>
            eb(refTuple('user_id', 'node_id'), 'in', orphanedLocations.$asTuple('user_id', 'node_id')),
          )
          .executeTakeFirst(),
      )
      return {
        removed: removedNodeCount + connections.length + locationCount,
        left: connections.map(toPresence),
      }
    },
  }
}

/**
 * Inserts connections, and returns those that had no row. A connection has a row already if it renewed its token with
 * another key, or moved here from another node; that row is updated, unless its `connected_at` is later than the new
 * one.
 */
async function insertOrUpdate(
  tx: Db,
  statements: Statements,
  rows: readonly PresenceRow[],
): Promise<PresenceRow[]> {
  const values = rows.map(row => Object.values(toRow(row)))
  const { rows: insertedRows } = await sql<{ id: string }>`
    insert into connections (id, node_id, user_id, key_id, key_name, address, client, connected_at)
    select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, cast(value->>7 as bigint)
    from ${jsonRows(statements, values)} where true
    on conflict (id) do nothing returning id`.execute(tx)
  const ids = new Set(insertedRows.map(({ id }) => id))
  for (const row of rows) {
    if (ids.has(row.connectionId)) continue
    const { id, connected_at, ...changes } = toRow(row)
    await tx
      .updateTable('connections')
      .set({ ...changes, connected_at })
      .where('id', '=', id)
      .where('connected_at', '<=', connected_at)
      .execute()
  }
  return rows.filter(({ connectionId }) => ids.has(connectionId))
}

/** The fields are in the order of the columns in `insertOrUpdate`, which takes the values by position. */
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
