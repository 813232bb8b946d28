import type { AdministrativePolicyChanges, PolicyStore } from '../policies/policy-store.ts'
import type { PolicyRow } from './schema.ts'
import type { Statements } from './statements.ts'

/** The id of the only row of `policies`. */
const ROW_ID = 'policies'

export function createPolicyStore({ db }: Pick<Statements, 'db'>): PolicyStore & AdministrativePolicyChanges {
  return {
    async find() {
      const row = await db.selectFrom('policies').selectAll().where('id', '=', ROW_ID).executeTakeFirst()
      return row ? toStored(row) : null
    },
    async lock() {
      // If the row exists, the update changes nothing and locks it.
      const row = await db
        .insertInto('policies')
        .values({ id: ROW_ID, document: '{}', changed_at: 0 })
        .onConflict(conflict => conflict.column('id').doUpdateSet(eb => ({ id: eb.ref('policies.id') })))
        .returningAll()
        .executeTakeFirstOrThrow()
      return toStored(row)
    },
    async set(policies, at) {
      const row = await db
        .updateTable('policies')
        .set({ document: JSON.stringify(policies), changed_at: at })
        .where('id', '=', ROW_ID)
        .returningAll()
        .executeTakeFirstOrThrow()
      return toStored(row)
    },
  }
}

function toStored({ document, changed_at }: PolicyRow) {
  return { policies: JSON.parse(document), changedAt: changed_at }
}
