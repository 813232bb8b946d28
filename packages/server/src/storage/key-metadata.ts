import type { Instant } from '../clock.ts'
import type { Db } from './engine.ts'
import { countOf, inChunks, type Statements } from './statements.ts'

export async function metadataOf(db: Db, ids: readonly string[]): Promise<Map<string, string>> {
  const metadataById = new Map<string, string>()
  for (const chunk of inChunks(ids)) {
    const rows = await db.selectFrom('key_metadata').selectAll().where('key_id', 'in', chunk).execute()
    for (const { key_id, metadata } of rows) metadataById.set(key_id, metadata)
  }
  return metadataById
}

export async function setMetadata(tx: Db, keyId: string, metadata: string | null): Promise<void> {
  if (metadata === null) {
    await tx.deleteFrom('key_metadata').where('key_id', '=', keyId).execute()
    return
  }
  await tx
    .insertInto('key_metadata')
    .values({ key_id: keyId, metadata })
    .onConflict(conflict => conflict.column('key_id').doUpdateSet({ metadata }))
    .execute()
}

export async function pruneMetadata(
  { db, atomically }: Statements,
  endedBefore: Instant,
  batch: number,
): Promise<number> {
  const endedKeys = await db
    .selectFrom('api_keys')
    .select('id')
    .where('metadata_bytes', 'is not', null)
    .where(eb =>
      eb.or([
        eb.and([eb('revoked_at', 'is not', null), eb('revoked_at', '<', endedBefore)]),
        eb.and([eb('expires_at', 'is not', null), eb('expires_at', '<', endedBefore)]),
      ]),
    )
    .limit(batch)
    .execute()
  if (endedKeys.length === 0) return 0
  const ids = endedKeys.map(({ id }) => id)
  return atomically(async tx => {
    await tx.updateTable('api_keys').set({ metadata_bytes: null }).where('id', 'in', ids).execute()
    return countOf(await tx.deleteFrom('key_metadata').where('key_id', 'in', ids).executeTakeFirst())
  })
}
