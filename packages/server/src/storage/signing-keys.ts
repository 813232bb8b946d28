import type { SigningKey } from '../signing-keys/signing-key.ts'
import type { SigningKeyStore } from '../signing-keys/signing-key-store.ts'
import type { Db } from './engine.ts'
import type { SigningKeyRow } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

export function createSigningKeyStore({ db, atomically }: Statements): SigningKeyStore {
  return {
    async list(now) {
      const rows = await db
        .selectFrom('signing_keys')
        .selectAll()
        .where(eb => eb.or([eb('retires_at', 'is', null), eb('retires_at', '>', now)]))
        .orderBy('signs_from')
        .orderBy('sequence')
        .execute()
      return rows.map(toKey)
    },
    insertFirst: key =>
      atomically(async tx => {
        if ((await lastSequence(tx)) !== 0) return false
        // Two nodes may both have read zero; the sequence is unique, so one of them inserts nothing.
        const inserted = await tx
          .insertInto('signing_keys')
          .values(toRow(key, 1))
          .onConflict(conflict => conflict.column('sequence').doNothing())
          .returning('id')
          .executeTakeFirst()
        return inserted !== undefined
      }),
    insertNext: (key, othersRetireAt) =>
      atomically(async tx => {
        // Locks the oldest key's row, so that of two concurrent rotations the second sees the key of the first.
        await tx
          .updateTable('signing_keys')
          .set(eb => ({ sequence: eb.ref('sequence') }))
          .where('sequence', '=', eb =>
            eb.selectFrom('signing_keys').select(e => e.fn.min('sequence').as('oldest')),
          )
          .execute()
        await tx
          .updateTable('signing_keys')
          .set({ retires_at: othersRetireAt })
          .where('retires_at', 'is', null)
          .execute()
        await tx
          .insertInto('signing_keys')
          .values(toRow(key, (await lastSequence(tx)) + 1))
          .execute()
      }),
    async reseal(id, sealedSeed) {
      await db.updateTable('signing_keys').set({ sealed_seed: sealedSeed }).where('id', '=', id).execute()
    },
    async prune(retiredBefore) {
      return countOf(
        await db.deleteFrom('signing_keys').where('retires_at', '<', retiredBefore).executeTakeFirst(),
      )
    },
  }
}

async function lastSequence(tx: Db): Promise<number> {
  const row = await tx
    .selectFrom('signing_keys')
    .select(eb => eb.fn.max('sequence').as('last'))
    .executeTakeFirst()
  return row?.last ?? 0
}

function toRow(key: SigningKey, sequence: number): SigningKeyRow {
  return {
    id: key.id,
    sequence,
    public_key: key.publicKey,
    sealed_seed: key.sealedSeed,
    created_at: key.createdAt,
    signs_from: key.signsFrom,
    retires_at: key.retiresAt,
  }
}

function toKey(row: SigningKeyRow): SigningKey {
  return {
    id: row.id,
    publicKey: row.public_key,
    sealedSeed: row.sealed_seed,
    createdAt: row.created_at,
    signsFrom: row.signs_from,
    retiresAt: row.retires_at,
  }
}
