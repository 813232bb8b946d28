import { sql } from 'kysely'
import { defineMigration } from './migration.ts'

export const imports = defineMigration('0026-imports', async ({ db }) => {
  await db.schema.alterTable('api_keys').addColumn('imported', 'integer').execute()
  await sql`create index api_keys_imported on api_keys (id) where imported = 1`.execute(db)
  await db.schema.alterTable('users').addColumn('external_id', 'text').execute()
  // 1 for an imported account before its first sign-in, which gives it the trial credit and the plan.
  await db.schema.alterTable('users').addColumn('awaits_onboarding', 'integer').execute()
})
