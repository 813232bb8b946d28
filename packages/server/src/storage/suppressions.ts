import type { SuppressionStore } from '../outbox/suppression-store.ts'
import { countOf, type Statements } from './statements.ts'

export function createSuppressionStore({ db }: Statements): SuppressionStore {
  return {
    async record(suppression) {
      const { reason, provider, at, until } = suppression
      await db
        .insertInto('mail_suppressions')
        .values({ ...suppression })
        .onConflict(conflict =>
          conflict
            .column('address')
            .doUpdateSet({ reason, provider, at, until })
            .where('mail_suppressions.until', '<', until),
        )
        .execute()
    },
    async find(address, now) {
      const row = await db
        .selectFrom('mail_suppressions')
        .selectAll()
        .where('address', '=', address)
        .where('until', '>', now)
        .executeTakeFirst()
      return row ?? null
    },
    async list(after, now, limit) {
      return db
        .selectFrom('mail_suppressions')
        .selectAll()
        .where('until', '>', now)
        .$if(after !== null, query => query.where('address', '>', after!))
        .orderBy('address')
        .limit(limit)
        .execute()
    },
    async lift(address) {
      const deletion = db.deleteFrom('mail_suppressions').where('address', '=', address)
      return countOf(await deletion.executeTakeFirst()) > 0
    },
    async prune(until, batch) {
      const expiredAddresses = db
        .selectFrom('mail_suppressions')
        .select('address')
        .where('until', '<', until)
        .limit(batch)
      const deletion = db
        .deleteFrom('mail_suppressions')
        .where('address', 'in', expiredAddresses)
        .where('until', '<', until)
      return countOf(await deletion.executeTakeFirst())
    },
  }
}
