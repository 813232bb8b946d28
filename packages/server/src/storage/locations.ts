import type { LocationStore } from '../hub/location-store.ts'
import { inChunks, type Statements } from './statements.ts'

export function createLocationStore({ db }: Pick<Statements, 'db'>): LocationStore {
  return {
    async enter(nodeId, userIds) {
      for (const some of inChunks(userIds)) {
        await db
          .insertInto('user_nodes')
          .values(some.map(user_id => ({ user_id, node_id: nodeId })))
          .onConflict(conflict => conflict.columns(['user_id', 'node_id']).doNothing())
          .execute()
      }
      // A separate statement, so that it sees what was committed before the rows above were.
      const found = new Map<string, string[]>()
      for (const some of inChunks(userIds)) {
        const rows = await db.selectFrom('user_nodes').selectAll().where('user_id', 'in', some).execute()
        for (const { user_id, node_id } of rows) found.set(user_id, [...(found.get(user_id) ?? []), node_id])
      }
      return found
    },
    async leave(nodeId, userIds) {
      for (const some of inChunks(userIds)) {
        await db.deleteFrom('user_nodes').where('node_id', '=', nodeId).where('user_id', 'in', some).execute()
      }
    },
    async nodesOf(userId) {
      const rows = await db.selectFrom('user_nodes').select('node_id').where('user_id', '=', userId).execute()
      return rows.map(row => row.node_id)
    },
  }
}
