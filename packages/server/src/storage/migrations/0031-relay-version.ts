import { defineMigration } from './migration.ts'

export const relayVersion = defineMigration('0031-relay-version', async ({ db }) => {
  // What the node understands of other hubs (hub/presence-store.ts). The previous version does not write it: null.
  await db.schema.alterTable('nodes').addColumn('relay_version', 'integer').execute()
})
