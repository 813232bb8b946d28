import { defineMigration } from './migration.ts'

/** The nodes on which a user may have connections (hub/locations.ts). */
export const userNodes = defineMigration('0032-user-nodes', async ({ db }) => {
  await db.schema
    .createTable('user_nodes')
    .addColumn('user_id', 'text', c => c.notNull())
    .addColumn('node_id', 'text', c => c.notNull())
    .addPrimaryKeyConstraint('user_nodes_key', ['user_id', 'node_id'])
    .execute()
  await db.schema.createIndex('user_nodes_of_node').on('user_nodes').column('node_id').execute()
})
