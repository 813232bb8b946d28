import type { LocationStore } from '../hub/location-store.ts'
import { inChunks, type Statements } from './statements.ts'

export function createLocationStore({ db }: Pick<Statements, 'db'>): LocationStore {
  return {
    async enter(nodeId, userIds) {
      for (const chunk of inChunks(userIds)) {
        await db
          .insertInto('user_nodes')
          .values(chunk.map(user_id => ({ user_id, node_id: nodeId })))
          .onConflict(conflict => conflict.columns(['user_id', 'node_id']).doNothing())
          .execute()
      }
      // Read by a separate statement, so that of two nodes that enter concurrently at least one sees the other's row.
      const nodesByUser = new Map<string, string[]>()
      for (const chunk of inChunks(userIds)) {
        const rows = await db.selectFrom('user_nodes').selectAll().where('user_id', 'in', chunk).execute()
        for (const { user_id, node_id } of rows)
          nodesByUser.set(user_id, [...(nodesByUser.get(user_id) ?? []), node_id])
      }
      return nodesByUser
    },
    async leave(nodeId, userIds) {
      for (const chunk of inChunks(userIds)) {
        await db
          .deleteFrom('user_nodes')
          .where('node_id', '=', nodeId)
          .where('user_id', 'in', chunk)
          .execute()
      }
    },
    async nodesOf(userId) {
      const rows = await db.selectFrom('user_nodes').select('node_id').where('user_id', '=', userId).execute()
      return rows.map(row => row.node_id)
    },
  }
}
