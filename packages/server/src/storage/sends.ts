import type { Instant } from '../clock.ts'
import type { SendHistory } from '../magic-links/magic-link-store.ts'
import type { Db } from './engine.ts'
import { countOf } from './statements.ts'

/*
 * Accepted sends of a bucket are numbered 1, 2, 3 … So "was there room within the window" is one point read of
 * the send that lies `limit` sends back, however many there were, and never a count.
 */

interface AskedBucket {
  name: string
  limits: number[]
}

export async function lockSends(db: Db, buckets: AskedBucket[], now: Instant): Promise<SendHistory[]> {
  if (buckets.length === 0) return []
  const names = [...new Set(buckets.map(bucket => bucket.name))].sort()
  // Rows are locked in the order of the values. An update that changes nothing locks without a second statement.
  const locked = await db
    .insertInto('send_buckets')
    .values(names.map(bucket => ({ bucket, count: 0 })))
    .onConflict(conflict =>
      conflict.column('bucket').doUpdateSet(eb => ({ count: eb.ref('send_buckets.count') })),
    )
    .returning(['bucket', 'count'])
    .execute()
  const counts = new Map(locked.map(row => [row.bucket, row.count]))
  const isOnlyLock = buckets.every(({ limits }) => limits.length === 0)
  const times = isOnlyLock ? new Map<string, Instant>() : await readTimes(db, buckets, names, counts, now)
  return buckets.map(({ name, limits }) => {
    const count = counts.get(name) ?? 0
    const nthLast = new Map(limits.map(limit => [limit, times.get(point(name, count - limit + 1)) ?? null]))
    return { bucket: name, count, nthLast }
  })
}

async function readTimes(
  db: Db,
  buckets: AskedBucket[],
  names: string[],
  counts: ReadonlyMap<string, number>,
  now: Instant,
): Promise<Map<string, Instant>> {
  await db
    .updateTable('sends')
    .set({ sent_at: now })
    .where('bucket', 'in', names)
    .where('sent_at', '>', now)
    .execute()
  return readPoints(db, buckets, counts)
}

async function readPoints(
  db: Db,
  buckets: AskedBucket[],
  counts: ReadonlyMap<string, number>,
): Promise<Map<string, Instant>> {
  const rows = await db
    .selectFrom('sends')
    .selectAll()
    .where(eb =>
      eb.or(
        buckets.map(({ name, limits }) =>
          eb.and([
            eb('bucket', '=', name),
            eb('number', 'in', [0, ...limits.map(limit => (counts.get(name) ?? 0) - limit + 1)]),
          ]),
        ),
      ),
    )
    .execute()
  return new Map(rows.map(row => [point(row.bucket, row.number), row.sent_at]))
}

function point(bucket: string, number: number): string {
  return `${number} ${bucket}`
}

export async function recordSend(db: Db, buckets: readonly string[], at: Instant): Promise<void> {
  if (buckets.length === 0) return
  const counted = await db
    .updateTable('send_buckets')
    .set(eb => ({ count: eb('count', '+', 1) }))
    .where('bucket', 'in', [...buckets])
    .returning(['bucket', 'count'])
    .execute()
  await db
    .insertInto('sends')
    .values(counted.map(row => ({ bucket: row.bucket, number: row.count, sent_at: at })))
    .execute()
}

export async function sendTimes(db: Db, bucket: string, since: Instant, limit: number): Promise<Instant[]> {
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

/** The numbering goes on; without its rows nothing of it counts. */
export async function clearSends(db: Db, bucket: string): Promise<void> {
  await db.deleteFrom('sends').where('bucket', '=', bucket).execute()
}

/** With their names, which say whom they count. */
export async function forgetSends(db: Db, buckets: readonly string[]): Promise<void> {
  await db.deleteFrom('sends').where('bucket', 'in', buckets).execute()
  await db.deleteFrom('send_buckets').where('bucket', 'in', buckets).execute()
}

export async function pruneSends(db: Db, before: Instant, batch: number): Promise<number> {
  const old = await db
    .selectFrom('sends')
    .select(['bucket', 'number'])
    .where('sent_at', '<', before)
    .limit(batch)
    .execute()
  let removed = 0
  for (const { bucket, number } of old) {
    const sends = db.deleteFrom('sends').where('bucket', '=', bucket).where('number', '=', number)
    removed += countOf(await sends.where('sent_at', '<', before).executeTakeFirst())
  }
  return removed + (await pruneBuckets(db, batch))
}

/** A bucket goes when none of its sends is left, unless somebody recorded one since: `count` would have moved. */
async function pruneBuckets(db: Db, batch: number): Promise<number> {
  const empty = await db
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
  for (const { bucket, count } of empty) {
    await db.deleteFrom('send_buckets').where('bucket', '=', bucket).where('count', '=', count).execute()
  }
  return 0
}
