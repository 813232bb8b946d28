import type { Instant } from '../clock.ts'
import type { SigningKey } from '../signing-keys/signing-key.ts'
import type { Db } from './engine.ts'
import type { AlgorithmKeyRow } from './schema.ts'

/** A signing key of an algorithm other than EdDSA. */
type AlgorithmKey = SigningKey & { alg: AlgorithmKeyRow['alg'] }

export async function listAlgorithmKeys(db: Db, now: Instant): Promise<SigningKey[]> {
  const rows = await db
    .selectFrom('algorithm_keys')
    .selectAll()
    .where(eb => eb.or([eb('retires_at', 'is', null), eb('retires_at', '>', now)]))
    .orderBy('signs_from')
    .orderBy('sequence')
    .execute()
  return rows.map(toKey)
}

export async function insertFirstOfAlgorithm(tx: Db, key: AlgorithmKey): Promise<boolean> {
  if ((await lastSequence(tx, key.alg)) !== 0) return false
  const insertedRow = await tx
    .insertInto('algorithm_keys')
    .values(toRow(key, 1))
    .onConflict(conflict => conflict.columns(['alg', 'sequence']).doNothing())
    .returning('id')
    .executeTakeFirst()
  return insertedRow !== undefined
}

export async function insertNextOfAlgorithm(
  tx: Db,
  key: AlgorithmKey,
  othersRetireAt: Instant,
): Promise<void> {
  // Locks the oldest key's row, so that of two concurrent rotations the second sees the key of the first.
  await tx
    .updateTable('algorithm_keys')
    .set(eb => ({ sequence: eb.ref('sequence') }))
    .where('alg', '=', key.alg)
    .where('sequence', '=', eb =>
      eb
        .selectFrom('algorithm_keys')
        .select(e => e.fn.min('sequence').as('oldest'))
        .where('alg', '=', key.alg),
    )
    .execute()
  await tx
    .updateTable('algorithm_keys')
    .set({ retires_at: othersRetireAt })
    .where('alg', '=', key.alg)
    .where('retires_at', 'is', null)
    .execute()
  await tx
    .insertInto('algorithm_keys')
    .values(toRow(key, (await lastSequence(tx, key.alg)) + 1))
    .execute()
}

async function lastSequence(tx: Db, alg: AlgorithmKey['alg']): Promise<number> {
  const row = await tx
    .selectFrom('algorithm_keys')
    .select(eb => eb.fn.max('sequence').as('last'))
    .where('alg', '=', alg)
    .executeTakeFirst()
  return row?.last ?? 0
}

function toRow(key: AlgorithmKey, sequence: number): AlgorithmKeyRow {
  return {
    id: key.id,
    alg: key.alg,
    sequence,
    public_key: key.publicKey,
    sealed_private_key: key.sealedPrivateKey,
    created_at: key.createdAt,
    signs_from: key.signsFrom,
    retires_at: key.retiresAt,
  }
}

function toKey(row: AlgorithmKeyRow): SigningKey {
  return {
    id: row.id,
    alg: row.alg,
    publicKey: row.public_key,
    sealedPrivateKey: row.sealed_private_key,
    createdAt: row.created_at,
    signsFrom: row.signs_from,
    retiresAt: row.retires_at,
  }
}
