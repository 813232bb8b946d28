import { defineMigration } from './migration.ts'

export const relayVersion = defineMigration('0031-relay-version', async ({ db }) => {
  // The node's `RELAY_VERSION` (hub/presence-store.ts): which commands and notices from other nodes it understands.
  // Null for nodes of the previous version, which do not write this column.
  await db.schema.alterTable('nodes').addColumn('relay_version', 'integer').execute()
})
