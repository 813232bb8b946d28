import { sql } from 'kysely'
import {
  EXPIRED,
  type KeyAlertStore,
  MAX_KNOWN_NETWORKS,
  type NetworkUse,
} from '../api-keys/key-alert-store.ts'
import { DAY } from '../clock.ts'
import type { Db } from './engine.ts'
import { countOf, inChunks, type Statements } from './statements.ts'

/** Minimum interval at which `seen_at` of a stored network is updated, to save writes. */
const SEEN_AT_RESOLUTION = DAY

export function createKeyAlertStore({ db, atomically }: Statements): KeyAlertStore {
  return {
    async claim(lineageId, kind, period, at) {
      const claimedRow = await db
        .insertInto('key_alerts')
        .values({ lineage_id: lineageId, kind, period, at })
        .onConflict(conflict => conflict.columns(['lineage_id', 'kind', 'period']).doNothing())
        .returning('kind')
        .executeTakeFirst()
      return claimedRow !== undefined
    },
    async listExpired(since, now, batch) {
      const rows = await db
        .selectFrom('api_keys')
        .select(['id', 'user_id', 'expires_at'])
        .where('expires_at', '>', since)
        .where('expires_at', '<=', now)
        .where('revoked_at', 'is', null)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('key_alerts')
                .select('key_alerts.kind')
                .whereRef('key_alerts.lineage_id', '=', 'api_keys.id')
                .whereRef('key_alerts.period', '=', 'api_keys.expires_at')
                .where('key_alerts.kind', '=', EXPIRED),
            ),
          ),
        )
        .orderBy('expires_at')
        .limit(batch)
        .execute()
      return rows.map(row => ({ id: row.id, userId: row.user_id, expiresAt: row.expires_at! }))
    },
    rememberNetworks: <Use extends NetworkUse>(uses: readonly Use[]) =>
      atomically(async tx => {
        const newUses: Use[] = []
        // Sorted, so that two nodes that write batches concurrently rarely deadlock.
        const sortedUses = uses.toSorted((left, right) => (left.lineageId < right.lineageId ? -1 : 1))
        for (const chunk of inChunks(sortedUses)) newUses.push(...(await storeUses(tx, chunk)))
        return newUses
      }),
    async prune(claimedBefore, seenBefore, batch) {
      const isOldAlert = sql`(lineage_id, kind, period) in
        (select lineage_id, kind, period from key_alerts where at < ${claimedBefore} limit ${batch})`
      const isUnusedNetwork = sql`(lineage_id, network) in
        (select lineage_id, network from key_networks where seen_at < ${seenBefore} limit ${batch})`
      const deletedAlerts = await db
        .deleteFrom('key_alerts')
        .where(sql<boolean>`${isOldAlert}`)
        .executeTakeFirst()
      const deletedNetworks = await db
        .deleteFrom('key_networks')
        .where(sql<boolean>`${isUnusedNetwork}`)
        .executeTakeFirst()
      return Math.max(countOf(deletedAlerts), countOf(deletedNetworks))
    },
  }
}

/**
 * Stores the networks of these uses. Returns the uses from a network that is new for their key, except from its first
 * network. For a key that has MAX_KNOWN_NETWORKS already, no new network is stored or returned.
 */
async function storeUses<Use extends NetworkUse>(tx: Db, uses: readonly Use[]): Promise<Use[]> {
  const networksByLineage = await readNetworks(tx, uses)
  const newUses: Use[] = []
  for (const use of uses) {
    const networks = networksByLineage.get(use.lineageId) ?? new Set()
    const isNew = !networks.has(use.network)
    if (isNew && networks.size >= MAX_KNOWN_NETWORKS) continue
    if ((await storeNetwork(tx, use)) && isNew && networks.size > 0) newUses.push(use)
    networksByLineage.set(use.lineageId, networks.add(use.network))
  }
  return newUses
}

async function readNetworks(tx: Db, uses: readonly NetworkUse[]): Promise<Map<string, Set<string>>> {
  const networksByLineage = new Map<string, Set<string>>()
  const lineages = [...new Set(uses.map(({ lineageId }) => lineageId))]
  const rows = await tx
    .selectFrom('key_networks')
    .select(['lineage_id', 'network'])
    .where('lineage_id', 'in', lineages)
    .execute()
  for (const { lineage_id, network } of rows)
    networksByLineage.set(lineage_id, (networksByLineage.get(lineage_id) ?? new Set()).add(network))
  return networksByLineage
}

/**
 * Stores the network, or updates its `seen_at`. Returns false if that was done within the last day, even by another
 * node after this node's query.
 */
async function storeNetwork(tx: Db, { lineageId, network, at }: NetworkUse): Promise<boolean> {
  const storedRow = await tx
    .insertInto('key_networks')
    .values({ lineage_id: lineageId, network, seen_at: at })
    .onConflict(conflict =>
      conflict
        .columns(['lineage_id', 'network'])
        .doUpdateSet({ seen_at: at })
        .where('key_networks.seen_at', '<', at - SEEN_AT_RESOLUTION),
    )
    .returning('seen_at')
    .executeTakeFirst()
  return storedRow !== undefined
}
