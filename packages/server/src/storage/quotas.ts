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
        .select(['id', leftAt(now).as('left')])
        .where('id', 'in', [...ids])
        .execute()
      return new Map(rows.map(row => [row.id, row.left]))
    },
    async lease({ id, refill }, least, most, now) {
      const left = leftAt(now)
      const taken = sql<number>`case when (${left}) < ${most} then (${left}) else cast(${most} as bigint) end`
      const next = refill && nextRefill(refill.every, now)
      const row = await db
        .updateTable('quotas')
        .set({
          leased: taken,
          remaining: sql<number>`(${left}) - (${taken})`,
          refills_at: sql`case when refills_at <= ${now} then cast(${next} as bigint) else refills_at end`,
        })
        .where('id', '=', id)
        .where(sql<boolean>`(${left}) >= ${least}`)
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
        .set({ leased: leftAt(now), remaining: 0, refill_amount: null, refills_at: null, retired_at: now })
        .where('id', '=', id)
        .returning('leased')
        .executeTakeFirst()
      return row?.leased ?? 0
    },
    async handOn(ids, successorId) {
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
      const old = db.selectFrom('quotas').select('id').where('retired_at', '<', retiredBefore).limit(batch)
      return countOf(await db.deleteFrom('quotas').where('id', 'in', old).executeTakeFirst())
    },
  }
}

/** The remaining calls of a row, including a due refill. */
function leftAt(now: Instant): RawBuilder<number> {
  return sql<number>`case when refills_at <= ${now} then refill_amount else remaining end`
}
