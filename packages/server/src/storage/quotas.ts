import { type RawBuilder, sql } from 'kysely'
import type { Instant } from '../clock.ts'
import { nextRefill } from '../limits/limit.ts'
import type { QuotaStore } from '../limits/quota-store.ts'
import { countOf, type Statements } from './statements.ts'

export function createQuotaStore({ db }: Pick<Statements, 'db'>): QuotaStore {
  return {
    async insert({ id, granted, refill }, keyId, now) {
      await db
        .insertInto('quotas')
        .values({
          id,
          key_id: keyId,
          remaining: granted,
          refill_amount: refill?.amount ?? null,
          refill_every: refill?.every ?? null,
          refills_at: refill && nextRefill(refill.every, now),
          leased: 0,
          retired_at: null,
        })
        .execute()
    },
    async remaining(ids, now) {
      if (ids.length === 0) return new Map()
      const rows = await db
        .selectFrom('quotas')
        .select(['id', remainingAt(now).as('remaining_now')])
        .where('id', 'in', [...ids])
        .execute()
      return new Map(rows.map(row => [row.id, row.remaining_now]))
    },
    async lease({ id, refill }, min, max, now) {
      const remaining = remainingAt(now)
      const leasedCount = sql<number>`case when (${remaining}) < ${max} then (${remaining}) else cast(${max} as bigint) end`
      const nextRefillAt = refill && nextRefill(refill.every, now)
      const row = await db
        .updateTable('quotas')
        .set({
          leased: leasedCount,
          remaining: sql<number>`(${remaining}) - (${leasedCount})`,
          refills_at: sql`case when refills_at <= ${now} then cast(${nextRefillAt} as bigint) else refills_at end`,
        })
        .where('id', '=', id)
        .where(sql<boolean>`(${remaining}) >= ${min}`)
        .returning(['leased', 'remaining', 'refills_at'])
        .executeTakeFirst()
      return row ? { count: row.leased, remaining: row.remaining, refillsAt: row.refills_at } : null
    },
    async giveBack(id, count, refillsAt, now) {
      await db
        .updateTable('quotas')
        .set(eb => ({ remaining: eb('remaining', '+', count) }))
        .where('id', '=', id)
        .where('retired_at', 'is', null)
        .where('refills_at', refillsAt === null ? 'is' : '=', refillsAt)
        .where(eb => eb.or([eb('refills_at', 'is', null), eb('refills_at', '>', now)]))
        .execute()
    },
    async close(id, now) {
      const row = await db
        .updateTable('quotas')
        .set({
          leased: remainingAt(now),
          remaining: 0,
          refill_amount: null,
          refills_at: null,
          retired_at: now,
        })
        .where('id', '=', id)
        .returning('leased')
        .executeTakeFirst()
      return row?.leased ?? 0
    },
    async reassign(ids, successorId) {
      if (ids.length === 0) return
      await db
        .updateTable('quotas')
        .set({ key_id: successorId })
        .where('id', 'in', [...ids])
        .execute()
    },
    async retire(id, now) {
      await db.updateTable('quotas').set({ retired_at: now }).where('id', '=', id).execute()
    },
    async prune(retiredBefore, batch) {
      const prunableIds = db
        .selectFrom('quotas')
        .select('id')
        .where('retired_at', '<', retiredBefore)
        .limit(batch)
      return countOf(await db.deleteFrom('quotas').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }
}

/** The remaining calls of a quota, after a refill that is due. */
function remainingAt(now: Instant): RawBuilder<number> {
  return sql<number>`case when refills_at <= ${now} then refill_amount else remaining end`
}
