import { defineMigration } from './migration.ts'

export const locales = defineMigration('0036-locales', async ({ db }) => {
  // A BCP 47 language tag; null if neither the person's settings nor the browser named a language.
  await db.schema.alterTable('users').addColumn('locale', 'text').execute()
  await db.schema.alterTable('magic_links').addColumn('locale', 'text').execute()
})
