import { defineMigration } from './migration.ts'

export const nodesThatSeal = defineMigration('0008-nodes-that-seal', async ({ db }) => {
  // 1 where the node seals its events. The version before writes no such column: null.
  await db.schema.alterTable('nodes').addColumn('seals_events', 'integer').execute()
})
