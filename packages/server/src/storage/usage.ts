import { sql } from 'kysely'
import { noUsage, type UsageRow } from '../usage/usage.ts'
import type { UsageStore } from '../usage/usage-store.ts'
import type { Db } from './engine.ts'
import type { UsageCountsRow, UsageRefusalsRow } from './schema.ts'
import { countOf, inChunks, jsonRows, type Statements } from './statements.ts'

/** Maximum number of deleted accounts whose usage is pruned by one call. */
const MAX_OWNERS = 100
const TABLES = ['usage_counts', 'usage_refusals'] as const
type Table = (typeof TABLES)[number]
/** `key_id` in rows of a person's total, since a primary key column cannot be null. */
const ALL_KEYS = ''

const COUNTERS = [
  'exchanges',
  'api_calls',
  'introspections',
  'connections',
  'connected_ms',
  'messages_sent',
  'messages_received',
  'charged',
] as const
const FIRST_COUNTER_INDEX = 4
const ADD_COUNTS_INTO =
  sql.raw(`insert into usage_counts (user_id, key_id, unit, start, ${COUNTERS.join(', ')})
  select value->>0, value->>1, value->>2, cast(value->>3 as bigint),
    ${COUNTERS.map((_, index) => `cast(value->>${FIRST_COUNTER_INDEX + index} as bigint)`).join(', ')}`)
// Without a condition, SQLite would parse ON CONFLICT as a join condition.
const ADD_COUNTS_TO_EXISTING = sql.raw(`where true on conflict (user_id, key_id, unit, start) do update set
  ${COUNTERS.map(counter => `${counter} = usage_counts.${counter} + excluded.${counter}`).join(', ')}`)

export function createUsageStore(statements: Statements): UsageStore {
  const { db } = statements
  return {
    async recordFlush(writer, sequence, at) {
      const recordedRow = await db
        .insertInto('usage_flushes')
        .values({ writer, sequence, at })
        .onConflict(conflict =>
          conflict
            .column('writer')
            .doUpdateSet({ sequence, at })
            .where('usage_flushes.sequence', '<', sequence),
        )
        .returning('writer')
        .executeTakeFirst()
      return recordedRow !== undefined
    },
    async lastFlush(writer) {
      const row = await db
        .selectFrom('usage_flushes')
        .select('sequence')
        .where('writer', '=', writer)
        .executeTakeFirst()
      return row?.sequence ?? 0
    },
    async add(rows) {
      // All nodes add in the order of the primary key, so that nodes that add to the same rows do not deadlock.
      const sortedRows = [...rows].sort(byPrimaryKey)
      if (sortedRows.length > 0) await addCounts(statements, sortedRows)
      for (const chunk of inChunks(sortedRows.flatMap(toRefusals))) await addRefusals(db, chunk)
    },
    async read({ userId, keyId }, unit, from, to) {
      const bucketsIn = (table: Table) =>
        db
          .selectFrom(table)
          .where('user_id', '=', userId)
          .where('key_id', '=', keyId ?? ALL_KEYS)
          .where('unit', '=', unit)
          .where('start', '>=', from)
          .where('start', '<', to)
          .orderBy('start')
      const [counts, refusals] = await Promise.all([
        bucketsIn('usage_counts').selectAll().execute() as Promise<UsageCountsRow[]>,
        bucketsIn('usage_refusals').selectAll().execute() as Promise<UsageRefusalsRow[]>,
      ])
      return toUsage(counts, refusals)
    },
    async prune(retentionStarts, batch) {
      let removedCount = 0
      for (const table of TABLES) {
        for (const unit of ['hour', 'day'] as const) {
          const isOutdated = sql`unit = ${unit} and start < ${retentionStarts[unit]}`
          removedCount += await deleteSome(db, table, isOutdated, batch)
        }
      }
      return removedCount
    },
    async pruneOfDeletedOwners(deletedBefore, batch) {
      const owners = await db
        .selectFrom('users')
        .select('id')
        .where('deleted_at', 'is not', null)
        .where('deleted_at', '<', deletedBefore)
        .where('usage_pruned', 'is', null)
        .orderBy('deleted_at')
        .limit(MAX_OWNERS)
        .execute()
      if (owners.length === 0) return 0
      const ids = owners.map(({ id }) => id)
      let removedCount = 0
      for (const table of TABLES)
        removedCount += await deleteSome(db, table, sql`user_id in (${sql.join(ids)})`, batch)
      // The update itself checks that no row is left: `removedCount` does not show it, since another node may delete
      // some of the same rows concurrently.
      await db
        .updateTable('users')
        .set({ usage_pruned: 1 })
        .where('id', 'in', ids)
        .where(eb =>
          eb.and(
            TABLES.map(table =>
              eb.not(
                eb.exists(
                  eb.selectFrom(table).select(`${table}.unit`).whereRef(`${table}.user_id`, '=', 'users.id'),
                ),
              ),
            ),
          ),
        )
        .execute()
      return removedCount
    },
    async pruneFlushes(before, batch) {
      const writers = db.selectFrom('usage_flushes').select('writer').where('at', '<', before).limit(batch)
      const deletion = db.deleteFrom('usage_flushes').where('writer', 'in', writers).where('at', '<', before)
      return countOf(await deletion.executeTakeFirst())
    },
  }
}

async function addCounts(statements: Statements, rows: readonly UsageRow[]): Promise<void> {
  const values = rows.map(row => {
    const { user_id, key_id, unit, start, ...counts } = toCounts(row)
    return [user_id, key_id, unit, start, ...COUNTERS.map(counter => counts[counter])]
  })
  await sql`${ADD_COUNTS_INTO} from ${jsonRows(statements, values)} ${ADD_COUNTS_TO_EXISTING}`.execute(
    statements.db,
  )
}

async function addRefusals(db: Db, rows: UsageRefusalsRow[]): Promise<void> {
  await db
    .insertInto('usage_refusals')
    .values(rows)
    .onConflict(conflict =>
      conflict.columns(['user_id', 'key_id', 'unit', 'start', 'code']).doUpdateSet(eb => ({
        count: eb('usage_refusals.count', '+', eb.ref('excluded.count')),
      })),
    )
    .execute()
}

/** Deletes at most `batch` rows that meet the condition, so that no DELETE locks many rows for long. */
async function deleteSome(
  db: Db,
  table: Table,
  condition: ReturnType<typeof sql>,
  batch: number,
): Promise<number> {
  const key = sql.raw(
    table === 'usage_counts' ? 'user_id, key_id, unit, start' : 'user_id, key_id, unit, start, code',
  )
  const { numAffectedRows } = await sql`delete from ${sql.table(table)} where (${key}) in
    (select ${key} from ${sql.table(table)} where ${condition} limit ${batch})`.execute(db)
  return Number(numAffectedRows ?? 0)
}

function byPrimaryKey(left: UsageRow, right: UsageRow): number {
  if (left.userId !== right.userId) return left.userId < right.userId ? -1 : 1
  const [leftKey, rightKey] = [left.keyId ?? ALL_KEYS, right.keyId ?? ALL_KEYS]
  if (leftKey !== rightKey) return leftKey < rightKey ? -1 : 1
  if (left.unit !== right.unit) return left.unit < right.unit ? -1 : 1
  return left.start - right.start
}

function bucketOf({ userId, keyId, unit, start }: UsageRow) {
  return { user_id: userId, key_id: keyId ?? ALL_KEYS, unit, start }
}

function toCounts(row: UsageRow): UsageCountsRow {
  return {
    ...bucketOf(row),
    exchanges: row.exchanges,
    api_calls: row.apiCalls,
    introspections: row.introspections,
    connections: row.connections,
    connected_ms: row.connectedMs,
    messages_sent: row.messagesSent,
    messages_received: row.messagesReceived,
    charged: row.charged,
  }
}

function toRefusals(row: UsageRow): UsageRefusalsRow[] {
  return Object.entries(row.refused)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([code, count]) => ({ ...bucketOf(row), code, count }))
}

/** Every bucket has a row of counts, which are all 0 if it has refusals only. */
function toUsage(counts: UsageCountsRow[], refusals: UsageRefusalsRow[]): UsageRow[] {
  const buckets = new Map(counts.map(row => [row.start, toBucket(row)]))
  for (const { start, code, count } of refusals) {
    const bucket = buckets.get(start)
    if (bucket) bucket.refused[code] = count
  }
  return [...buckets.values()]
}

function toBucket(row: UsageCountsRow): UsageRow {
  return {
    ...noUsage(),
    userId: row.user_id,
    keyId: row.key_id === ALL_KEYS ? null : row.key_id,
    unit: row.unit,
    start: row.start,
    exchanges: row.exchanges,
    apiCalls: row.api_calls,
    introspections: row.introspections,
    connections: row.connections,
    connectedMs: row.connected_ms,
    messagesSent: row.messages_sent,
    messagesReceived: row.messages_received,
    charged: row.charged,
  }
}
