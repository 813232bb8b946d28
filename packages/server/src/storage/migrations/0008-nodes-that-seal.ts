import { defineMigration } from './migration.ts'

export const nodesThatSeal = defineMigration('0008-nodes-that-seal', async ({ db }) => {
  // 1 if the node seals its events; null for nodes of the previous version, which do not write this column.
  await db.schema.alterTable('nodes').addColumn('seals_events', 'integer').execute()
})
