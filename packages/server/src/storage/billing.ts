import { sql } from 'kysely'
import type { BillingChanges, BillingStore } from '../billing/billing-store.ts'
import type { ChargeAuthorization } from '../billing/charge-authorization.ts'
import { toSlice } from '../paging.ts'
import type { Db } from './engine.ts'
import { spentOf } from './key-spend.ts'
import { post, toEntry } from './ledger.ts'
import { newestFirst } from './paging.ts'
import type { ChargeAuthorizationRow } from './schema.ts'
import type { Statements } from './statements.ts'

export function createBillingStore({ db, atomically }: Statements): BillingStore & BillingChanges {
  return {
    async balance(userId) {
      const row = await db
        .selectFrom('balances')
        .select('balance')
        .where('user_id', '=', userId)
        .executeTakeFirst()
      return row?.balance ?? 0
    },
    async findEntry(id) {
      const row = await db.selectFrom('ledger_entries').selectAll().where('id', '=', id).executeTakeFirst()
      return row ? toEntry(row) : null
    },
    async findByCause(cause) {
      const row = await db
        .selectFrom('ledger_entries')
        .selectAll()
        .where('cause', '=', cause)
        .executeTakeFirst()
      return row ? toEntry(row) : null
    },
    post: entry =>
      atomically(async tx => {
        const outcome = await post(tx, entry)
        return outcome === null || typeof outcome === 'string' ? null : outcome.entry
      }),
    charge: (entry, caps) => atomically(tx => post(tx, entry, caps)),
    spentOf: lineageIds => spentOf(db, lineageIds),
    async balancesBefore(userId, instants) {
      if (instants.length === 0) return []
      const lookUps = instants.map(
        (instant, at) => sql`select ${sql.lit(at)} as at, balance_after from (
          select balance_after from ledger_entries where user_id = ${userId} and created_at < ${instant}
          order by created_at desc, id desc limit 1) as last_${sql.raw(String(at))}`,
      )
      const { rows } = await sql<{
        at: number
        balance_after: number
      }>`${sql.join(lookUps, sql` union all `)}`.execute(db)
      const balances = new Map(rows.map(row => [row.at, row.balance_after]))
      return instants.map((_, at) => balances.get(at) ?? 0)
    },
    async ledger(userId, page) {
      const rows = await db
        .selectFrom('ledger_entries')
        .selectAll()
        .where('user_id', '=', userId)
        .$call(newestFirst(page))
        .execute()
      return toSlice(rows.map(toEntry), page.limit, entry => ({ at: entry.createdAt, id: entry.id }))
    },
    async claimTrialCredit(addressHash, userId, at) {
      const claimedRow = await db
        .insertInto('trial_credits')
        .values({ address_hash: addressHash, user_id: userId, claimed_at: at })
        .onConflict(conflict => conflict.column('address_hash').doNothing())
        .returning('address_hash')
        .executeTakeFirst()
      return claimedRow !== undefined
    },
    async insertSubscription({ userId, plan, status, startedAt }) {
      const insertedRow = await db
        .insertInto('subscriptions')
        .values({ user_id: userId, plan, status, started_at: startedAt })
        .onConflict(conflict => conflict.column('user_id').doNothing())
        .returning('user_id')
        .executeTakeFirst()
      return insertedRow !== undefined
    },
    async subscription(userId) {
      const row = await db
        .selectFrom('subscriptions')
        .selectAll()
        .where('user_id', '=', userId)
        .executeTakeFirst()
      return row ? { userId, plan: row.plan, status: row.status, startedAt: row.started_at } : null
    },
    async authorizations(userId) {
      const rows = await authorizationsOf(db, userId)
        .orderBy('granted_at', 'desc')
        .orderBy('app_id')
        .execute()
      return rows.map(toAuthorization)
    },
    authorize: (userId, appId, at) =>
      atomically(async tx => {
        await grant(tx, userId, appId, at)
        const authorization = await findAuthorization(tx, userId, appId)
        return authorization?.revokedAt === null ? authorization : null
      }),
    withdraw: (userId, appId, at) =>
      atomically(async tx => {
        await tx
          .updateTable('charge_authorizations')
          .set({ revoked_at: at })
          .where('user_id', '=', userId)
          .where('app_id', '=', appId)
          .where('revoked_at', 'is', null)
          .execute()
        return findAuthorization(tx, userId, appId)
      }),
    async withdrawSomeOfApp(appId, at, limit) {
      const userIds = db
        .selectFrom('charge_authorizations')
        .select('user_id')
        .where('app_id', '=', appId)
        .where('revoked_at', 'is', null)
        .limit(limit)
      const rows = await db
        .updateTable('charge_authorizations')
        .set({ revoked_at: at })
        .where('app_id', '=', appId)
        .where('user_id', 'in', userIds)
        .where('revoked_at', 'is', null)
        .returning(['user_id', 'granted_at'])
        .execute()
      return rows.map(row => ({ userId: row.user_id, appId, grantedAt: row.granted_at, revokedAt: at }))
    },
  }
}

/** Inserts the authorization, or renews a withdrawn one. Does nothing if the app is removed or does not exist. */
async function grant(tx: Db, userId: string, appId: string, at: number): Promise<void> {
  await tx
    .insertInto('charge_authorizations')
    .columns(['user_id', 'app_id', 'granted_at'])
    .expression(
      tx
        .selectFrom('apps')
        .select(eb => [
          eb.cast<string>(eb.val(userId), 'text').as('user_id'),
          'id',
          eb.cast<number>(eb.val(at), 'bigint').as('granted_at'),
        ])
        .where('id', '=', appId)
        .where('removed_at', 'is', null),
    )
    .onConflict(conflict =>
      conflict
        .columns(['user_id', 'app_id'])
        .doUpdateSet({ granted_at: at, revoked_at: null })
        .where('charge_authorizations.revoked_at', 'is not', null),
    )
    .execute()
}

async function findAuthorization(tx: Db, userId: string, appId: string): Promise<ChargeAuthorization | null> {
  const row = await authorizationsOf(tx, userId).where('app_id', '=', appId).executeTakeFirst()
  return row ? toAuthorization(row) : null
}

function authorizationsOf(db: Db, userId: string) {
  return db
    .selectFrom('charge_authorizations')
    .innerJoin('apps', 'apps.id', 'charge_authorizations.app_id')
    .selectAll('charge_authorizations')
    .select('apps.name')
    .where('user_id', '=', userId)
}

function toAuthorization(row: ChargeAuthorizationRow & { name: string }): ChargeAuthorization {
  return {
    userId: row.user_id,
    appId: row.app_id,
    name: row.name,
    grantedAt: row.granted_at,
    revokedAt: row.revoked_at,
  }
}
