import { defineMigration } from './migration.ts'

export const locales = defineMigration('0036-locales', async ({ db }) => {
  // BCP 47. Null: no language was chosen, or requested.
  await db.schema.alterTable('users').addColumn('locale', 'text').execute()
  await db.schema.alterTable('magic_links').addColumn('locale', 'text').execute()
})
