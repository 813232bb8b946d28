import { defineMigration } from './migration.ts'

export const ledgerStays = defineMigration('0004-ledger-stays', async ({ refuseTruncate }) => {
  await refuseTruncate('ledger_entries')
})
