import type { ClientAssertionStore } from '../oauth/client-assertion-store.ts'
import { countOf, type Statements } from './statements.ts'

export function createClientAssertionStore({ db }: Statements): ClientAssertionStore {
  return {
    async use(appId, jtiHash, expiresAt) {
      const insertedRow = await db
        .insertInto('client_assertions')
        .values({ app_id: appId, jti_hash: jtiHash, expires_at: expiresAt })
        .onConflict(conflict => conflict.columns(['app_id', 'jti_hash']).doNothing())
        .returning('app_id')
        .executeTakeFirst()
      return insertedRow !== undefined
    },
    async prune(expiredBefore, batch) {
      const expiredHashes = db
        .selectFrom('client_assertions')
        .select('jti_hash')
        .where('expires_at', '<', expiredBefore)
        .limit(batch)
      return countOf(
        await db
          .deleteFrom('client_assertions')
          .where('jti_hash', 'in', expiredHashes)
          .where('expires_at', '<', expiredBefore)
          .executeTakeFirst(),
      )
    },
  }
}
