import { defineMigration } from './migration.ts'

export const leaseOwner = defineMigration('0003-lease-owner', async ({ db }) => {
  // The node that leased the message. When a node is dead, its leases are released before they expire.
  await db.schema.alterTable('messages').addColumn('leased_by', 'text').execute()
})
