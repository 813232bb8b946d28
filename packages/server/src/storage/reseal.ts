import { type SqlBool, sql } from 'kysely'
import type { SealedPlace, SealedStore, SealedValue } from '../operations/reseal.ts'
import { createDb, type Engine } from './engine.ts'

const COLUMNS: Record<SealedPlace, { id: string; sealed: string }> = {
  signing_keys: { id: 'id', sealed: 'sealed_seed' },
  algorithm_keys: { id: 'id', sealed: 'sealed_private_key' },
  sessions: { id: 'id', sealed: 'sealed_secret' },
  messages: { id: 'id', sealed: 'sealed_content' },
  inbox: { id: 'id', sealed: 'sealed_mail' },
  instance: { id: 'name', sealed: 'value' },
  webhook_secrets: { id: 'id', sealed: 'sealed_secret' },
}
/** The name of the only row of `instance` whose value is sealed. */
const SEALED_NAME = 'address-pepper'

export function createSealedStore(engine: Engine): SealedStore {
  const db = createDb(engine, engine.connection)

  return {
    async sealedWithOtherSecrets(place, fingerprint, afterId, limit) {
      const { id, sealed } = columnsOf(place)
      const onlySealedRow = place === 'instance' ? sql<SqlBool>`and ${id} = ${SEALED_NAME}` : sql``
      const { rows } = await sql<SealedValue>`
        select ${id} as id, ${sealed} as sealed from ${sql.table(place)}
        where ${id} > ${afterId} and ${sealed} is not null and ${sealed} not like ${`${fingerprint}.%`} ${onlySealedRow}
        order by ${id} limit ${limit}`.execute(db)
      return rows
    },
    async replaceSealed(place, value, resealed) {
      const { id, sealed } = columnsOf(place)
      const { numAffectedRows } = await sql`
        update ${sql.table(place)} set ${sealed} = ${resealed}
        where ${id} = ${value.id} and ${sealed} = ${value.sealed}`.execute(db)
      return numAffectedRows === 1n
    },
  }
}

function columnsOf(place: SealedPlace) {
  const { id, sealed } = COLUMNS[place]
  return { id: sql.ref(id), sealed: sql.ref(sealed) }
}
