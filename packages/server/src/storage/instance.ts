import type { InstanceStore } from './instance-store.ts'
import type { Scope } from './scope.ts'

export function createInstanceStore({ db }: Scope): InstanceStore {
  return {
    async find(name) {
      const row = await db.selectFrom('instance').select('value').where('name', '=', name).executeTakeFirst()
      return row?.value ?? null
    },
    async keep(name, value) {
      // The update that changes nothing makes the kept row come back in the same statement.
      const row = await db
        .insertInto('instance')
        .values({ name, value })
        .onConflict(conflict =>
          conflict.column('name').doUpdateSet(eb => ({ value: eb.ref('instance.value') })),
        )
        .returning('value')
        .executeTakeFirstOrThrow()
      return row.value
    },
    async replace(name, value) {
      await db
        .insertInto('instance')
        .values({ name, value })
        .onConflict(conflict => conflict.column('name').doUpdateSet({ value }))
        .execute()
    },
  }
}
