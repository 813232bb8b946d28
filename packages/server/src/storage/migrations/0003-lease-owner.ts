import { defineMigration } from './migration.ts'

export const leaseOwner = defineMigration('0003-lease-owner', async ({ db }) => {
  // The node that holds the lease, so that what a dead one held need not wait for its time to run out.
  await db.schema.alterTable('messages').addColumn('leased_by', 'text').execute()
})
