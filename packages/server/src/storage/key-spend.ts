import { sql } from 'kysely'
import type { MicroDollars } from '../billing/money.ts'
import {
  NO_CAPS,
  NOTHING_SPENT,
  periodExceeded,
  periodsOf,
  type SpendCaps,
  type SpentSums,
} from '../billing/spend.ts'
import type { Instant } from '../clock.ts'
import type { SpendPeriod } from '../limits/limit.ts'
import type { Db } from './engine.ts'
import type { KeySpendRow } from './schema.ts'

/** An amount to add to the sums of a lineage (a key and its successors); a negative one reverts an addition. */
interface Addition {
  lineageId: string
  amount: MicroDollars
  /** The `createdAt` of the ledger entry. */
  at: Instant
}

/**
 * Adds to the sums by one conditional statement, which locks the row until the commit, and returns the new sums. If a
 * limit would be exceeded, changes nothing and returns the limit's period. An entry of an earlier day or month than the
 * row's (only entries re-applied from the journal are so old) does not count in that period.
 */
export async function addSpend(
  tx: Db,
  { lineageId, amount, at }: Addition,
  caps: SpendCaps = NO_CAPS,
): Promise<SpentSums | SpendPeriod> {
  // The conditions of the statement do not apply to a new row, so the amount alone is checked here.
  const exceededPeriod = periodExceeded(caps, NOTHING_SPENT, amount, at)
  if (exceededPeriod) return exceededPeriod
  const { day, month } = periodsOf(at)
  const daySum = sumOf('day', day, amount)
  const monthSum = sumOf('month', month, amount)
  const totalSum = sql`key_spend.total_spent + ${amount}`
  const { rows } = await sql<KeySpendRow>`insert into key_spend
    (lineage_id, day, day_spent, month, month_spent, total_spent)
    values (${lineageId}, ${day}, ${amount}, ${month}, ${amount}, ${amount})
    on conflict (lineage_id) do update set
      day = ${newerPeriod('day', day)}, day_spent = ${daySum},
      month = ${newerPeriod('month', month)}, month_spent = ${monthSum}, total_spent = ${totalSum}
    where ${daySum} <= ${caps.day ?? Number.MAX_SAFE_INTEGER}
      and ${monthSum} <= ${caps.month ?? Number.MAX_SAFE_INTEGER}
      and ${totalSum} <= ${caps.total ?? Number.MAX_SAFE_INTEGER}
    returning *`.execute(tx)
  if (rows[0]) return toSpent(rows[0])
  const spent = (await spentOf(tx, [lineageId])).get(lineageId) ?? NOTHING_SPENT
  return periodExceeded(caps, spent, amount, at) ?? 'total'
}

export async function spentOf(db: Db, lineageIds: readonly string[]): Promise<Map<string, SpentSums>> {
  if (lineageIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('key_spend')
    .selectAll()
    .where('lineage_id', 'in', [...lineageIds])
    .execute()
  return new Map(rows.map(row => [row.lineage_id, toSpent(row)]))
}

/**
 * The sum of a period after the addition: in a newer period it starts again from the amount, and an amount of an
 * earlier period does not change it.
 */
function sumOf(period: 'day' | 'month', number: number, amount: MicroDollars) {
  const [name, spent] = [sql.ref(`key_spend.${period}`), sql.ref(`key_spend.${period}_spent`)]
  const amountValue = sql`cast(${amount} as bigint)`
  return sql`case when ${name} < ${number} then ${amountValue} when ${name} = ${number} then ${spent} + ${amountValue} else ${spent} end`
}

function newerPeriod(period: 'day' | 'month', number: number) {
  const name = sql.ref(`key_spend.${period}`)
  return sql`case when ${name} < ${number} then ${number} else ${name} end`
}

function toSpent(row: KeySpendRow): SpentSums {
  return {
    day: row.day,
    daySpent: row.day_spent,
    month: row.month,
    monthSpent: row.month_spent,
    totalSpent: row.total_spent,
  }
}
