import { defineMigration } from './migration.ts'

export const nodesThatSeal = defineMigration('0008-nodes-that-seal', async ({ db }) => {
  // 1 if the node seals its events. The previous version does not write this column: null.
  await db.schema.alterTable('nodes').addColumn('seals_events', 'integer').execute()
})
