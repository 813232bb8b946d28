import { defineMigration } from './migration.ts'

export const relayVersion = defineMigration('0031-relay-version', async ({ db }) => {
  // The version of commands and notices between hubs that the node supports (hub/presence-store.ts). The previous
  // version does not write it: null.
  await db.schema.alterTable('nodes').addColumn('relay_version', 'integer').execute()
})
