import { sql } from 'kysely'
import type { InstanceStore } from '../operations/instance-store.ts'
import type { Statements } from './statements.ts'

/** A sealed value begins with the id of the secret that sealed it, of this length in characters; see secrets.ts. */
const SECRET_ID_LENGTH = 8

export function createInstanceStore({ db }: Statements): InstanceStore {
  return {
    async find(name) {
      const row = await db.selectFrom('instance').select('value').where('name', '=', name).executeTakeFirst()
      return row?.value ?? null
    },
    async findOrInsert(name, value) {
      // The update changes nothing; it makes `returning` yield the existing row.
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
    async countBySecret() {
      const { rows } = await sql<{ id: string; count: number }>`
        select substr(sealed, 1, ${sql.lit(SECRET_ID_LENGTH)}) as id, count(*) as count from (
          select sealed_seed as sealed from signing_keys
          union all select sealed_private_key from algorithm_keys
          union all select sealed_secret from sessions where ended_at is null
          union all select sealed_content from messages where sealed_content is not null
          union all select sealed_mail from inbox
          union all select sealed_secret from webhook_secrets
          union all select value from instance where name = 'address-pepper'
        ) as sealed_values group by 1`.execute(db)
      return new Map(rows.map(({ id, count }) => [id, count]))
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
