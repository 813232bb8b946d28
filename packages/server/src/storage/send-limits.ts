import type { Instant } from '../clock.ts'
import type { SendHistory } from '../magic-links/magic-link-store.ts'
import type { Db, LookUp } from './engine.ts'
import { countOf, type Statements } from './statements.ts'

/*
 * Accepted sends of a `SendBucket` are numbered 1, 2, 3 … Whether a window allows another send is therefore decided by
 * reading one row, that of the `limit`-th last send, and never by counting rows.
 */

/** The queries of `sendHistory`, by their limits: few, since all buckets of a kind have the same limits. */
const lookUps = new Map<string, LookUp>()

export async function sendHistory(
  lookUp: Statements['lookUp'],
  bucket: string,
  limits: readonly number[],
): Promise<SendHistory> {
  const row = (await lookUp(historyLookUp(limits), bucket)) as Record<string, Instant | null> | undefined
  return { bucket, nthLast: new Map(limits.map(limit => [limit, row?.[`at_${limit}`] ?? null])) }
}

function historyLookUp(limits: readonly number[]): LookUp {
  const key = limits.join()
  let lookUp = lookUps.get(key)
  if (!lookUp) {
    // The limits are safe to interpolate: they are integers from the settings, validated at startup.
    const timeColumns = [...new Set(limits)].map(
      limit =>
        `(select s.sent_at from sends s where s.bucket = b.bucket and s.number = b.count - ${limit - 1}) as at_${limit}`,
    )
    const text = `select ${timeColumns.join(', ')}, b.bucket from send_buckets b`
    lookUp = { select: () => text, column: 'b.bucket' }
    lookUps.set(key, lookUp)
  }
  return lookUp
}

export async function lockSendBuckets(db: Db, buckets: readonly string[]): Promise<Map<string, number>> {
  if (buckets.length === 0) return new Map()
  const names = [...new Set(buckets)].sort()
  // All callers lock rows in the order of their names, so that sends cannot deadlock. The update changes nothing; it
  // locks the existing rows without a second statement.
  const lockedRows = await db
    .insertInto('send_buckets')
    .values(names.map(bucket => ({ bucket, count: 0 })))
    .onConflict(conflict =>
      conflict.column('bucket').doUpdateSet(eb => ({ count: eb.ref('send_buckets.count') })),
    )
    .returning(['bucket', 'count'])
    .execute()
  return new Map(lockedRows.map(row => [row.bucket, row.count]))
}

export async function clampFutureSends(db: Db, buckets: readonly string[], now: Instant): Promise<void> {
  await db
    .updateTable('sends')
    .set({ sent_at: now })
    .where('bucket', 'in', buckets)
    .where('sent_at', '>', now)
    .execute()
}

export async function sendHistories(
  db: Db,
  counts: ReadonlyMap<string, number>,
  limits: ReadonlyMap<string, readonly number[]>,
): Promise<SendHistory[]> {
  const requests = [...limits].map(([bucket, nths]) => {
    const count = counts.get(bucket) ?? 0
    return { bucket, numbers: new Map(nths.map(nth => [nth, count - nth + 1])) }
  })
  const rows = await db
    .selectFrom('sends')
    .selectAll()
    .where(eb =>
      eb.or(
        requests.map(({ bucket, numbers }) =>
          eb.and([eb('bucket', '=', bucket), eb('number', 'in', [0, ...numbers.values()])]),
        ),
      ),
    )
    .execute()
  const times = new Map(rows.map(row => [keyOfSend(row.bucket, row.number), row.sent_at]))
  return requests.map(({ bucket, numbers }) => ({
    bucket,
    nthLast: new Map(
      [...numbers].map(([nth, number]) => [nth, times.get(keyOfSend(bucket, number)) ?? null]),
    ),
  }))
}

function keyOfSend(bucket: string, number: number): string {
  return `${number} ${bucket}`
}

export async function recordSend(db: Db, buckets: readonly string[], at: Instant): Promise<void> {
  if (buckets.length === 0) return
  const countedBuckets = await db
    .updateTable('send_buckets')
    .set(eb => ({ count: eb('count', '+', 1) }))
    .where('bucket', 'in', [...buckets])
    .returning(['bucket', 'count'])
    .execute()
  await db
    .insertInto('sends')
    .values(countedBuckets.map(row => ({ bucket: row.bucket, number: row.count, sent_at: at })))
    .execute()
}

export async function sendTimesOf(db: Db, bucket: string, since: Instant, limit: number): Promise<Instant[]> {
  const rows = await db
    .selectFrom('sends')
    .select('sent_at')
    .where('bucket', '=', bucket)
    .where('sent_at', '>', since)
    .orderBy('sent_at', 'desc')
    .limit(limit)
    .execute()
  return rows.map(row => row.sent_at)
}

/** Deletes the sends of a bucket, so that its limits ignore them. Keeps its `count`, which numbers further sends. */
export async function clearSends(db: Db, bucket: string): Promise<void> {
  await db.deleteFrom('sends').where('bucket', '=', bucket).execute()
}

/** Deletes the sends and the buckets, since a bucket's name contains the address. */
export async function forgetSends(db: Db, buckets: readonly string[]): Promise<void> {
  if (buckets.length === 0) return
  await db.deleteFrom('sends').where('bucket', 'in', buckets).execute()
  await db.deleteFrom('send_buckets').where('bucket', 'in', buckets).execute()
}

export async function pruneSends(db: Db, before: Instant, batch: number): Promise<number> {
  const oldSends = await db
    .selectFrom('sends')
    .select(['bucket', 'number'])
    .where('sent_at', '<', before)
    .limit(batch)
    .execute()
  let removedCount = 0
  for (const { bucket, number } of oldSends) {
    const deletion = db.deleteFrom('sends').where('bucket', '=', bucket).where('number', '=', number)
    removedCount += countOf(await deletion.where('sent_at', '<', before).executeTakeFirst())
  }
  await pruneBuckets(db, batch)
  return removedCount
}

/** Deletes buckets without sends, unless a send was recorded after the query, which increments the bucket's `count`. */
async function pruneBuckets(db: Db, batch: number): Promise<void> {
  const emptyBuckets = await db
    .selectFrom('send_buckets')
    .selectAll()
    .where(eb =>
      eb.not(
        eb.exists(
          eb.selectFrom('sends').select('number').whereRef('sends.bucket', '=', 'send_buckets.bucket'),
        ),
      ),
    )
    .orderBy('bucket')
    .limit(batch)
    .execute()
  for (const { bucket, count } of emptyBuckets) {
    await db.deleteFrom('send_buckets').where('bucket', '=', bucket).where('count', '=', count).execute()
  }
}
