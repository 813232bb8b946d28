import type { AdministratorStore } from '../users/administrator-store.ts'
import type { Statements } from './statements.ts'

export function createAdministratorStore({ db }: Statements): AdministratorStore {
  return {
    async list() {
      const rows = await db.selectFrom('listed_administrators').selectAll().orderBy('listed_at').execute()
      return rows.map(row => ({
        addressHash: row.address_hash,
        listedAt: row.listed_at,
        claimedAt: row.claimed_at,
        userId: row.user_id,
      }))
    },
    async add(addressHash, at) {
      await db
        .insertInto('listed_administrators')
        .values({ address_hash: addressHash, listed_at: at, claimed_at: null, user_id: null })
        .onConflict(conflict => conflict.column('address_hash').doNothing())
        .execute()
    },
    async remove(addressHash) {
      await db.deleteFrom('listed_administrators').where('address_hash', '=', addressHash).execute()
    },
    async claim(addressHash, userId, at) {
      const claimedRow = await db
        .updateTable('listed_administrators')
        .set({ claimed_at: at, user_id: userId })
        .where('address_hash', '=', addressHash)
        .where('claimed_at', 'is', null)
        .returning('address_hash')
        .executeTakeFirst()
      return claimedRow !== undefined
    },
  }
}
