import { sql } from 'kysely'
import { isGauge, type StatisticRow } from '../statistics/statistic.ts'
import type { StatisticsStore } from '../statistics/statistics-store.ts'
import type { Db } from './engine.ts'
import { inChunks, type Statements } from './statements.ts'

export function createStatisticsStore({ db }: Statements): StatisticsStore {
  return {
    async add(rows) {
      // All nodes add in the order of the primary key, so that nodes that add to the same rows do not deadlock.
      const sortedRows = [...rows].sort(byPrimaryKey)
      for (const chunk of inChunks(sortedRows.filter(({ name }) => !isGauge(name))))
        await addTotals(db, chunk)
      for (const chunk of inChunks(sortedRows.filter(({ name }) => isGauge(name))))
        await raiseGauges(db, chunk)
    },
    read: (unit, from, to) =>
      db
        .selectFrom('statistics')
        .selectAll()
        .where('unit', '=', unit)
        .where('start', '>=', from)
        .where('start', '<', to)
        .orderBy('start')
        .execute(),
    // The redundant `status <> 'active'` is the condition of the partial index, so that the index is used.
    async countPeople() {
      const { rows } = await sql<{ count: number }>`select (select count(*) from users)
        - (select count(*) from users where status <> 'active' and status = 'deleted') as count`.execute(db)
      return Number(rows[0]!.count)
    },
    async countFewPeople(atMost) {
      const { rows } = await sql<{ total: number; people: number | null }>`select count(*) as total,
        sum(case when status = 'deleted' then 0 else 1 end) as people
        from (select status from users limit ${atMost + 1}) as considered`.execute(db)
      const { total, people } = rows[0]!
      return Number(total) > atMost ? null : Number(people ?? 0)
    },
    async prune(retentionStarts, batch) {
      let removedCount = 0
      for (const unit of ['hour', 'day'] as const) {
        const prunableRows = sql`(select unit, start, name from statistics where unit = ${unit} and start < ${retentionStarts[unit]} limit ${batch})`
        const deletion = sql`delete from statistics where (unit, start, name) in ${prunableRows}`
        const { numAffectedRows = 0n } = await deletion.execute(db)
        removedCount += Number(numAffectedRows)
      }
      return removedCount
    },
  }
}

async function addTotals(db: Db, rows: readonly StatisticRow[]): Promise<void> {
  await db
    .insertInto('statistics')
    .values([...rows])
    .onConflict(conflict =>
      conflict.columns(['unit', 'start', 'name']).doUpdateSet(eb => ({
        value: eb('statistics.value', '+', eb.ref('excluded.value')),
      })),
    )
    .execute()
}

async function raiseGauges(db: Db, rows: readonly StatisticRow[]): Promise<void> {
  await db
    .insertInto('statistics')
    .values([...rows])
    .onConflict(conflict =>
      conflict
        .columns(['unit', 'start', 'name'])
        .doUpdateSet(eb => ({ value: eb.ref('excluded.value') }))
        .where(eb => eb('statistics.value', '<', eb.ref('excluded.value'))),
    )
    .execute()
}

function byPrimaryKey(left: StatisticRow, right: StatisticRow): number {
  if (left.unit !== right.unit) return left.unit < right.unit ? -1 : 1
  if (left.start !== right.start) return left.start - right.start
  return left.name < right.name ? -1 : 1
}
