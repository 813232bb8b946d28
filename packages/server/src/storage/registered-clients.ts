import type { RegisteredClientStore } from '../clients/registered-client-store.ts'
import type { Statements } from './statements.ts'

export function createRegisteredClientStore({ db, atomically }: Statements): RegisteredClientStore {
  return {
    async insert(appId, at) {
      await db.insertInto('registered_clients').values({ app_id: appId, created_at: at }).execute()
    },
    prune: (registeredBefore, batch) =>
      atomically(async tx => {
        const rows = await tx
          .selectFrom('registered_clients')
          .select('app_id')
          .where('created_at', '<', registeredBefore)
          .where('app_id', 'not in', tx.selectFrom('consents').select('app_id'))
          .where('app_id', 'not in', tx.selectFrom('charge_authorizations').select('app_id'))
          .limit(batch)
          .execute()
        const ids = rows.map(row => row.app_id)
        if (ids.length === 0) return 0
        for (const table of ['registered_clients', 'app_secrets'] as const)
          await tx.deleteFrom(table).where('app_id', 'in', ids).execute()
        await tx.deleteFrom('apps').where('id', 'in', ids).execute()
        return ids.length
      }),
  }
}
