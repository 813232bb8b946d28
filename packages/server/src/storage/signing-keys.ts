import type { SigningKey } from '../signing-keys/signing-key.ts'
import type { SigningKeyStore } from '../signing-keys/signing-key-store.ts'
import { insertFirstOfAlgorithm, insertNextOfAlgorithm, listAlgorithmKeys } from './algorithm-keys.ts'
import type { Db } from './engine.ts'
import type { SigningKeyRow } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

/**
 * Ed25519 keys are in `signing_keys`, those of other algorithms in `algorithm_keys`: the previous version reads
 * `signing_keys`, and expects only Ed25519 keys there.
 */
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
      return [...rows.map(toKey), ...(await listAlgorithmKeys(db, now))]
    },
    insertFirst: key =>
      atomically(tx =>
        key.alg === 'EdDSA' ? insertFirst(tx, key) : insertFirstOfAlgorithm(tx, { ...key, alg: key.alg }),
      ),
    insertNext: (key, othersRetireAt) =>
      atomically(tx =>
        key.alg === 'EdDSA'
          ? insertNext(tx, key, othersRetireAt)
          : insertNextOfAlgorithm(tx, { ...key, alg: key.alg }, othersRetireAt),
      ),
    async prune(retiredBefore) {
      const deletions = await Promise.all(
        (['signing_keys', 'algorithm_keys'] as const).map(table =>
          db.deleteFrom(table).where('retires_at', '<', retiredBefore).executeTakeFirst(),
        ),
      )
      return deletions.reduce((sum, result) => sum + countOf(result), 0)
    },
  }
}

async function insertFirst(tx: Db, key: SigningKey): Promise<boolean> {
  if ((await lastSequence(tx)) !== 0) return false
  // Two nodes may both have found no key; the sequence is unique, so one of them inserts nothing.
  const insertedRow = await tx
    .insertInto('signing_keys')
    .values(toRow(key, 1))
    .onConflict(conflict => conflict.column('sequence').doNothing())
    .returning('id')
    .executeTakeFirst()
  return insertedRow !== undefined
}

async function insertNext(tx: Db, key: SigningKey, othersRetireAt: number): Promise<void> {
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
    sealed_seed: key.sealedPrivateKey,
    created_at: key.createdAt,
    signs_from: key.signsFrom,
    retires_at: key.retiresAt,
  }
}

function toKey(row: SigningKeyRow): SigningKey {
  return {
    id: row.id,
    alg: 'EdDSA',
    publicKey: row.public_key,
    sealedPrivateKey: row.sealed_seed,
    createdAt: row.created_at,
    signsFrom: row.signs_from,
    retiresAt: row.retires_at,
  }
}
