import { FIRST_PARTY_APP_IDS } from '../../apps/first-party-apps.ts'
import { defineMigration } from './migration.ts'

export const appsCoverFrom = defineMigration('0009-apps-cover-from', async ({ db }) => {
  // The instant from which an app has rights over keys and sessions with its id. Apps that the previous version
  // registers have null, which stands for the instant of their registration.
  await db.schema.alterTable('apps').addColumn('covers_from', 'bigint').execute()
  const ours = [...FIRST_PARTY_APP_IDS, 'service-sdk']
  await db.updateTable('apps').set({ covers_from: 0 }).where('id', 'in', ours).execute()
})
