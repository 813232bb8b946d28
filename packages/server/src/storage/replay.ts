import type { ReplayChanges, ReplayStore } from '../backup/replay-store.ts'
import type { Instant } from '../clock.ts'
import type { SecurityEventType } from '../security-events/security-event.ts'
import { consentUpdate, toConsent } from './consents.ts'
import { countOf, type Statements } from './statements.ts'

export function createReplayStore({ db }: Statements): ReplayStore & ReplayChanges {
  return {
    async sessionsEnded(ids) {
      if (ids.length === 0) return new Map()
      const rows = await db
        .selectFrom('sessions')
        .select(['id', 'ended_at'])
        .where('id', 'in', [...ids])
        .execute()
      return new Map(rows.map(row => [row.id, row.ended_at !== null]))
    },
    async linksUsed(ids) {
      if (ids.length === 0) return new Map()
      const rows = await db
        .selectFrom('magic_links')
        .select(['id', 'used_at'])
        .where('id', 'in', [...ids])
        .execute()
      return new Map(rows.map(row => [row.id, row.used_at !== null]))
    },
    async postedCauses(causes) {
      if (causes.length === 0) return new Set()
      const rows = await db
        .selectFrom('ledger_entries')
        .select('cause')
        .where('cause', 'in', [...causes])
        .execute()
      return new Set(rows.map(row => row.cause))
    },
    async claimedCredits(addressHashes) {
      if (addressHashes.length === 0) return new Set()
      const rows = await db
        .selectFrom('trial_credits')
        .select('address_hash')
        .where('address_hash', 'in', [...addressHashes])
        .execute()
      return new Set(rows.map(row => row.address_hash))
    },
    lastActivation: userId => lastEvent(userId, ['account_activated']),
    lastDeletionChange: userId =>
      lastEvent(userId, ['account_deletion_requested', 'account_deletion_cancelled']),
    async wasChangedSince(keyId, since) {
      const newerEnding = await db
        .selectFrom('endings')
        .select('id')
        .where('subject_id', '=', keyId)
        .where('at', '>', since)
        .limit(1)
        .executeTakeFirst()
      return newerEnding !== undefined
    },
    async endKeyBy({ id }, expiresAt) {
      const row = await db
        .updateTable('api_keys')
        .set({ expires_at: expiresAt })
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', expiresAt)]))
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    async replaceNetworks({ id }, from, to) {
      const row = await db
        .updateTable('api_keys')
        .set({ allowed_networks: JSON.stringify(to) })
        .where('id', '=', id)
        .where('allowed_networks', '=', JSON.stringify(from))
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    async countAppSecretsBesides(appId, hashes, before) {
      const { count } = await db
        .selectFrom('app_secrets')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('app_id', '=', appId)
        .where('created_at', '<', before)
        .$if(hashes.length > 0, query => query.where('secret_hash', 'not in', [...hashes]))
        .executeTakeFirstOrThrow()
      return count
    },
    async removeAppSecretsBesides(appId, hashes, before) {
      const result = await db
        .deleteFrom('app_secrets')
        .where('app_id', '=', appId)
        .where('created_at', '<', before)
        .$if(hashes.length > 0, query => query.where('secret_hash', 'not in', [...hashes]))
        .executeTakeFirst()
      return countOf(result)
    },
    async withdrawAsOf(userId, appId, at) {
      const row = await db
        .updateTable('charge_authorizations')
        .set({ revoked_at: at })
        .where('user_id', '=', userId)
        .where('app_id', '=', appId)
        .where('revoked_at', 'is', null)
        .where('granted_at', '<=', at)
        .returning('granted_at')
        .executeTakeFirst()
      return row ? { userId, appId, grantedAt: row.granted_at, revokedAt: at } : null
    },
    async withdrawConsentAsOf(userId, appId, at) {
      const row = await consentUpdate(db, userId, appId)
        .set({ revoked_at: at })
        .where('revoked_at', 'is', null)
        .where('granted_at', '<=', at)
        .returningAll()
        .executeTakeFirst()
      return row ? toConsent(row) : null
    },
  }

  async function lastEvent(userId: string, types: SecurityEventType[]): Promise<Instant | null> {
    const lastRow = await db
      .selectFrom('security_events')
      .select('at')
      .where('user_id', '=', userId)
      .where('type', 'in', types)
      .orderBy('at', 'desc')
      .limit(1)
      .executeTakeFirst()
    return lastRow?.at ?? null
  }
}
