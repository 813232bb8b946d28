import { type DeleteQueryBuilder, type DeleteResult, type ExpressionBuilder, sql } from 'kysely'
import type { ApiKey } from '../api-keys/api-key.ts'
import type { ApiKeyChanges, ApiKeyStore } from '../api-keys/api-key-store.ts'
import { bytesOf } from '../api-keys/metadata.ts'
import type { Instant } from '../clock.ts'
import { toSlice } from '../paging.ts'
import { type OwnedRow, toApiKey, toLimitsText, toOwned, toRow } from './api-key-row.ts'
import type { Db, Engine, LookUp } from './engine.ts'
import { countActiveKeys, countKeys, listKeys, listKeysByExternalId } from './key-lists.ts'
import { metadataOf, pruneMetadata, setMetadata } from './key-metadata.ts'
import { searchKeys } from './key-search.ts'
import type { ApiKeyRow, Schema } from './schema.ts'
import { CHUNK_SIZE, inChunks, jsonRows, type Statements } from './statements.ts'

/**
 * Joins only users that are not active. These are few, so their partial index stays in the cache; the index of all
 * users would cost two more pages of a large file per look-up (docs/decisions/0011-hot-path.md). Every key has an
 * owner, so if no user is joined the owner is active.
 */
const selectOwned = ({ indexedBy }: Pick<Engine, 'indexedBy'>) =>
  `select k.id, k.user_id, k.app_id, k.key_hash, k.key_prefix, k.name, k.scopes, k.allowed_networks, k.created_at,
    k.expires_at, k.revoked_at, k.last_used_at, k.replaced_by, k.lineage_id, k.limits, k.operator_limits,
    k.external_id, k.metadata_bytes, coalesce(u.status, 'active') as owner_status
  from api_keys k left join users u ${indexedBy('users_not_active')} on u.id = k.user_id and u.status <> 'active'`
/** Runs in every exchange of a key for an agent token. */
const BY_HASH: LookUp = { select: selectOwned, column: 'k.key_hash' }
/** Runs in every connect to the hub and every renewal of a connection's token. */
const BY_ID: LookUp = { select: selectOwned, column: 'k.id' }

export function createApiKeyStore(statements: Statements): ApiKeyStore & ApiKeyChanges {
  const { db, atomically, lookUp } = statements
  return {
    async findByHash(keyHash) {
      const row = (await lookUp(BY_HASH, keyHash)) as OwnedRow | undefined
      return row ? toOwned(row) : null
    },
    async findMany(ids) {
      const rows = (await Promise.all(ids.map(id => lookUp(BY_ID, id)))) as (OwnedRow | undefined)[]
      return rows.filter(row => row !== undefined).map(toOwned)
    },
    async findOwned(userId, id) {
      const row = await db
        .selectFrom('api_keys')
        .selectAll()
        .where('id', '=', id)
        .where('user_id', '=', userId)
        .executeTakeFirst()
      return row ? toApiKey(row) : null
    },
    async lockOwned(userId, id) {
      // An update that changes nothing is the only row lock that both engines have.
      const row = await db
        .updateTable('api_keys')
        .set(eb => ({ app_id: eb.ref('app_id') }))
        .where('id', '=', id)
        .where('user_id', '=', userId)
        .returningAll()
        .executeTakeFirst()
      return row ? toApiKey(row) : null
    },
    async list(userId, status, now, page) {
      const rows = await listKeys(db, userId, status, now, page)
      return toSlice(rows.map(toApiKey), page.limit, key => ({ at: key.createdAt, id: key.id }))
    },
    async listByExternalId(userId, externalId, status, now, page) {
      const rows = await listKeysByExternalId(db, userId, externalId, status, now, page)
      return toSlice(rows.map(toApiKey), page.limit, key => ({ at: key.createdAt, id: key.id }))
    },
    async search(search, now, page) {
      const { rows, next } = await searchKeys(statements, search, now, page)
      return { rows: rows.map(toApiKey), next }
    },
    metadataOf: ids => metadataOf(db, ids),
    count: (userId, now, atMost) => countKeys(db, userId, now, atMost),
    countActive: (userId, now, atMost) => countActiveKeys(db, userId, now, atMost),
    async nthLastCreation(userId, n) {
      const row = await db
        .selectFrom('api_keys')
        .select('created_at')
        .where('user_id', '=', userId)
        .orderBy('created_at', 'desc')
        .limit(1)
        .offset(n - 1)
        .executeTakeFirst()
      return row?.created_at ?? null
    },
    async prune(expiredBefore, batch) {
      const prunableIds = db
        .selectFrom('api_keys')
        .select('id')
        .where('revoked_at', 'is', null)
        .where('expires_at', '<', expiredBefore)
        .limit(batch)
      return deleteKeys(
        db,
        db.deleteFrom('api_keys').where('id', 'in', prunableIds).where('revoked_at', 'is', null),
      )
    },
    async pruneOfDeletedOwners(deletedBefore, batch) {
      const owners = await db
        .selectFrom('users')
        .select('id')
        .where('deleted_at', 'is not', null)
        .where('deleted_at', '<', deletedBefore)
        .where('keys_pruned', 'is', null)
        .orderBy('deleted_at')
        .limit(CHUNK_SIZE)
        .execute()
      if (owners.length === 0) return 0
      const ids = owners.map(({ id }) => id)
      const keyIds = db.selectFrom('api_keys').select('id').where('user_id', 'in', ids).limit(batch)
      const removedCount = await deleteKeys(db, db.deleteFrom('api_keys').where('id', 'in', keyIds))
      // The update itself checks that no key is left, since another node may be deleting the same keys concurrently.
      await db
        .updateTable('users')
        .set({ keys_pruned: 1 })
        .where('id', 'in', ids)
        .where(eb =>
          eb.not(
            eb.exists(eb.selectFrom('api_keys').select('api_keys.id').whereRef('user_id', '=', 'users.id')),
          ),
        )
        .execute()
      return removedCount
    },
    async hasImported() {
      const importedKeyQuery = db.selectFrom('api_keys').select('id').where('imported', '=', 1).limit(1)
      return (await importedKeyQuery.executeTakeFirst()) !== undefined
    },
    async findByHashes(hashes) {
      const keysByHash = new Map<string, { id: string; userId: string }>()
      for (const chunk of inChunks(hashes)) {
        const rows = await db
          .selectFrom('api_keys')
          .select(['key_hash', 'id', 'user_id'])
          .where('key_hash', 'in', chunk)
          .execute()
        for (const { key_hash, id, user_id } of rows) keysByHash.set(key_hash, { id, userId: user_id })
      }
      return keysByHash
    },
    async insertImported(key) {
      const row = await db
        .insertInto('api_keys')
        .values({ ...toRow(key), imported: 1 })
        .onConflict(conflict => conflict.column('key_hash').doNothing())
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    insert: (key, metadata = null) =>
      atomically(async tx => {
        const row = { ...toRow(key), metadata_bytes: bytesOf(metadata) }
        await tx.insertInto('api_keys').values(row).execute()
        if (metadata !== null) await setMetadata(tx, key.id, metadata)
      }),
    update: (userId, id, change) =>
      atomically(async tx => {
        const row = await applyChange(tx, userId, id, change)
        if (row && change.metadata !== undefined) await setMetadata(tx, id, change.metadata)
        return row ? toApiKey(row) : null
      }),
    pruneMetadata: (endedBefore, batch) => pruneMetadata(statements, endedBefore, batch),
    async revoke(id, at) {
      const row = await db
        .updateTable('api_keys')
        .set({ revoked_at: at })
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .returningAll()
        .executeTakeFirst()
      return row ? toApiKey(row) : null
    },
    async revokeAllOf(userId, at) {
      const rows = await db
        .updateTable('api_keys')
        .set({ revoked_at: at })
        .where('user_id', '=', userId)
        .where('revoked_at', 'is', null)
        .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
        .returning('id')
        .execute()
      return rows.map(row => row.id)
    },
    async replace(id, successorId, expiresAt, now) {
      const row = await db
        .updateTable('api_keys')
        .set(eb => ({
          replaced_by: successorId,
          ...(expiresAt <= now && { revoked_at: now }),
          expires_at: eb
            .case()
            .when(eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', expiresAt)]))
            .then(eb.cast<number>(eb.val(expiresAt), 'bigint'))
            .else(eb.ref('expires_at'))
            .end(),
        }))
        .where('id', '=', id)
        .where('replaced_by', 'is', null)
        .where(eb => isActive(eb, now))
        .returningAll()
        .executeTakeFirst()
      return row ? toApiKey(row) : null
    },
    async listExpiring(now, thresholds, batch) {
      const rows = await db
        .selectFrom('api_keys')
        .innerJoin('users', 'users.id', 'api_keys.user_id')
        .selectAll('api_keys')
        .where('users.status', '=', 'active')
        .where('expires_at', '>', now)
        .where('revoked_at', 'is', null)
        .where('replaced_by', 'is', null)
        .where(eb =>
          eb.or(
            thresholds.map(({ days, ms }) =>
              eb.and([
                eb('expires_at', '<=', now + ms),
                // A key whose whole lifetime is shorter than this threshold gets no such notice.
                eb(eb('api_keys.created_at', '+', ms), '<=', eb.ref('expires_at')),
                eb.or([eb('expiry_notice', 'is', null), eb('expiry_notice', '>', days)]),
              ]),
            ),
          ),
        )
        .orderBy('expires_at')
        .limit(batch)
        .execute()
      return rows.map(toApiKey)
    },
    async noteExpiryNotice(id, days, expiresAt) {
      const row = await db
        .updateTable('api_keys')
        .set({ expiry_notice: days })
        .where('id', '=', id)
        .where('expires_at', '=', expiresAt)
        .where('revoked_at', 'is', null)
        .where('replaced_by', 'is', null)
        .where(eb => eb.or([eb('expiry_notice', 'is', null), eb('expiry_notice', '>', days)]))
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    async listDormant(ids, unusedSince) {
      const dormantKeys: ApiKey[] = []
      for (const chunk of inChunks(ids)) {
        const rows = await db
          .selectFrom('api_keys')
          .selectAll()
          .where('id', 'in', chunk)
          .where(eb => eb(eb.fn.coalesce('last_used_at', 'created_at'), '<=', unusedSince))
          .execute()
        dormantKeys.push(...rows.map(toApiKey))
      }
      return dormantKeys
    },
    async recordReuse({ id, lastUsedAt }, { at, from }) {
      const row = await db
        .updateTable('api_keys')
        .set({ last_used_at: at, last_used_network: from.network, last_used_client: from.client })
        .where('id', '=', id)
        .where('last_used_at', lastUsedAt === null ? 'is' : '=', lastUsedAt)
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    async recordUse(uses) {
      // Sorted by id, so that two nodes that write batches concurrently rarely deadlock; if they do, the statement is
      // retried.
      const rows = [...uses]
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .map(([id, { at, from }]) => [id, at, from.network, from.client])
      if (rows.length === 0) return
      await atomically(tx =>
        sql`with used as (
            select value->>0 as id, cast(value->>1 as bigint) as at, value->>2 as network, value->>3 as client
            from ${jsonRows(statements, rows)}
          )
          update api_keys set last_used_at = used.at, last_used_network = used.network, last_used_client = used.client
          from used
          where api_keys.id = used.id and (api_keys.last_used_at is null or api_keys.last_used_at < used.at)`.execute(
          tx,
        ),
      )
    },
  }
}

/** Updates the row, or only reads it if none of its columns changes. Undefined if the user has no such key. */
async function applyChange(
  tx: Db,
  userId: string,
  id: string,
  change: Parameters<ApiKeyChanges['update']>[2],
): Promise<ApiKeyRow | undefined> {
  const set: Partial<ApiKeyRow> = {}
  if (change.name !== undefined) set.name = change.name
  if (change.allowedNetworks) set.allowed_networks = JSON.stringify(change.allowedNetworks)
  if (change.externalId !== undefined) set.external_id = change.externalId
  if (change.metadata !== undefined) set.metadata_bytes = bytesOf(change.metadata)
  if (change.limits) set.limits = toLimitsText(change.limits)
  if (change.operatorLimits) set.operator_limits = toLimitsText(change.operatorLimits)
  const isOwned = sql<boolean>`id = ${id} and user_id = ${userId}`
  if (Object.keys(set).length === 0)
    return tx.selectFrom('api_keys').selectAll().where(isOwned).executeTakeFirst()
  return tx.updateTable('api_keys').set(set).where(isOwned).returningAll().executeTakeFirst()
}

function isActive(eb: ExpressionBuilder<Schema, 'api_keys'>, now: Instant) {
  return eb.and([
    eb('revoked_at', 'is', null),
    eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]),
  ])
}

/** Deletes keys, and the quotas that still belong to them: those of a rotated key belong to its successor. */
async function deleteKeys(
  db: Db,
  keys: DeleteQueryBuilder<Schema, 'api_keys', DeleteResult>,
): Promise<number> {
  const ids = (await keys.returning('id').execute()).map(({ id }) => id)
  for (const chunk of inChunks(ids)) await db.deleteFrom('quotas').where('key_id', 'in', chunk).execute()
  return ids.length
}
