import type { LeaseStore } from '../limits/lease-store.ts'
import { countOf, type Statements } from './statements.ts'

export function createLeaseStore({ db }: Pick<Statements, 'db'>): LeaseStore {
  return {
    async read(subject) {
      const row = await db
        .selectFrom('limit_leases')
        .select(['version', 'state', 'wanted_at as wantedAt'])
        .where('subject', '=', subject)
        .executeTakeFirst()
      return row ?? null
    },
    async write(subject, read, { state, wantedAt, prunableAt }, now) {
      const columns = { state, wanted_at: wantedAt, prunable_at: prunableAt }
      if (!read) {
        // The first version is not 1 but the time, so that a row that was pruned and inserted again has a new version.
        const insertedRow = await db
          .insertInto('limit_leases')
          .values({ subject, version: now, ...columns })
          .onConflict(conflict => conflict.doNothing())
          .returning('subject')
          .executeTakeFirst()
        return insertedRow !== undefined
      }
      const updatedRow = await db
        .updateTable('limit_leases')
        .set({ version: read.version + 1, ...columns })
        .where('subject', '=', subject)
        .where('version', '=', read.version)
        .returning('subject')
        .executeTakeFirst()
      return updatedRow !== undefined
    },
    async holders(ids) {
      if (ids.length === 0) return new Map()
      const rows = await db
        .selectFrom('limit_holders')
        .selectAll()
        .where('id', 'in', [...ids])
        .execute()
      return new Map(rows.map(row => [row.id, row.until]))
    },
    async renewHolder(id, until) {
      await db
        .insertInto('limit_holders')
        .values({ id, until })
        .onConflict(conflict =>
          conflict.column('id').doUpdateSet({ until }).where('limit_holders.until', '<', until),
        )
        .execute()
    },
    async removeHolder(id) {
      await db.deleteFrom('limit_holders').where('id', '=', id).execute()
    },
    async openClaims(since, limit) {
      const rows = await db
        .selectFrom('limit_leases')
        .select('subject')
        .where('wanted_at', '>=', since)
        .orderBy('wanted_at', 'desc')
        .limit(limit)
        .execute()
      return rows.map(row => row.subject)
    },
    async prune(now, lapsedBefore, batch) {
      const prunableSubjects = db
        .selectFrom('limit_leases')
        .select('subject')
        .where('prunable_at', '<', now)
        .limit(batch)
      const leaseDeletion = db
        .deleteFrom('limit_leases')
        .where('subject', 'in', prunableSubjects)
        .where('prunable_at', '<', now)
      const removedCount = countOf(await leaseDeletion.executeTakeFirst())
      const holderDeletion = db.deleteFrom('limit_holders').where('until', '<', lapsedBefore)
      return removedCount + countOf(await holderDeletion.executeTakeFirst())
    },
  }
}
