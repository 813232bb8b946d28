import { sql } from 'kysely'
import type { MicroDollars } from '../billing/money.ts'
import {
  NO_CAPS,
  NOTHING_SPENT,
  periodOver,
  periodsOf,
  type SpendCaps,
  type Spent,
} from '../billing/spend.ts'
import type { Instant } from '../clock.ts'
import type { SpendPeriod } from '../limits/limit.ts'
import type { Db } from './engine.ts'
import type { KeySpendRow } from './schema.ts'

/** An amount to add to a lineage's sums; a negative one reverts an addition of the same transaction. */
interface Addition {
  lineageId: string
  amount: MicroDollars
  /** The `createdAt` of the ledger entry. */
  at: Instant
}

/**
 * Adds to the sums by one conditional statement, which locks the row until the commit. If a limit would be exceeded,
 * changes nothing and returns the limit's period. An entry that is older than the newest day or month, as only a replay
 * of the journal adds, counts only in the other periods.
 */
export async function addSpend(
  tx: Db,
  { lineageId, amount, at }: Addition,
  caps: SpendCaps = NO_CAPS,
): Promise<Spent | SpendPeriod> {
  const alone = periodOver(caps, NOTHING_SPENT, amount, at)
  if (alone) return alone
  const { day, month } = periodsOf(at)
  const inDay = sum('day', day, amount)
  const inMonth = sum('month', month, amount)
  const inTotal = sql`key_spend.total_spent + ${amount}`
  const { rows } = await sql<KeySpendRow>`insert into key_spend
    (lineage_id, day, day_spent, month, month_spent, total_spent)
    values (${lineageId}, ${day}, ${amount}, ${month}, ${amount}, ${amount})
    on conflict (lineage_id) do update set
      day = ${newer('day', day)}, day_spent = ${inDay},
      month = ${newer('month', month)}, month_spent = ${inMonth}, total_spent = ${inTotal}
    where ${inDay} <= ${caps.day ?? Number.MAX_SAFE_INTEGER}
      and ${inMonth} <= ${caps.month ?? Number.MAX_SAFE_INTEGER}
      and ${inTotal} <= ${caps.total ?? Number.MAX_SAFE_INTEGER}
    returning *`.execute(tx)
  if (rows[0]) return toSpent(rows[0])
  const spent = (await spentOf(tx, [lineageId])).get(lineageId) ?? NOTHING_SPENT
  return periodOver(caps, spent, amount, at) ?? 'total'
}

export async function spentOf(db: Db, lineageIds: readonly string[]): Promise<Map<string, Spent>> {
  if (lineageIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('key_spend')
    .selectAll()
    .where('lineage_id', 'in', [...lineageIds])
    .execute()
  return new Map(rows.map(row => [row.lineage_id, toSpent(row)]))
}

function sum(period: 'day' | 'month', number: number, amount: MicroDollars) {
  const [name, spent] = [sql.ref(`key_spend.${period}`), sql.ref(`key_spend.${period}_spent`)]
  const added = sql`cast(${amount} as bigint)`
  return sql`case when ${name} < ${number} then ${added} when ${name} = ${number} then ${spent} + ${added} else ${spent} end`
}

function newer(period: 'day' | 'month', number: number) {
  const name = sql.ref(`key_spend.${period}`)
  return sql`case when ${name} < ${number} then ${number} else ${name} end`
}

function toSpent(row: KeySpendRow): Spent {
  return {
    day: row.day,
    daySpent: row.day_spent,
    month: row.month,
    monthSpent: row.month_spent,
    totalSpent: row.total_spent,
  }
}
