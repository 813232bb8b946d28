import { type RawBuilder, sql } from 'kysely'
import type { ApiKeyStatus } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { PageRequest } from '../paging.ts'
import type { Db } from './engine.ts'
import { isOlderThan } from './paging.ts'
import type { ApiKeyRow } from './schema.ts'

/** Reads one page of an owner's keys, newest first, and one row more if there is another page. */
export async function listKeys(
  db: Db,
  userId: string,
  status: ApiKeyStatus | null,
  now: Instant,
  page: PageRequest,
): Promise<ApiKeyRow[]> {
  const newestPage = status === 'active' ? await newestActivePage(db, userId, now, page) : null
  return newestPage ?? (await selectPage(userId, status, now, page).execute(db)).rows
}

export async function listKeysByExternalId(
  db: Db,
  userId: string,
  externalId: string,
  status: ApiKeyStatus | null,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<ApiKeyRow[]> {
  const isAfterPosition = after ? sql`and ${isOlderThan('created_at', after)}` : sql``
  const query = selectKeys(sql`user_id = ${userId} and external_id = ${externalId}
    and ${hasStatus(status, now)} ${isAfterPosition} order by created_at desc, id desc limit ${limit + 1}`)
  return (await query.execute(db)).rows
}

/** Number of active keys of an owner, at most `atMost`. */
export async function countActiveKeys(db: Db, userId: string, now: Instant, atMost: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from (
    select * from (select 1 as one from api_keys where ${neverExpires(userId)} limit ${atMost}) as endless
    union all
    select * from (select 1 as one from api_keys where ${hasExpiry(userId)} and expires_at > ${now}
      limit ${atMost}) as ending
    limit ${atMost}) as active`.execute(db)
  return rows[0]!.count
}

/** Numbers of an owner's keys by status, each at most `atMost`. Each status is counted with a partial index. */
export async function countKeys(
  db: Db,
  userId: string,
  now: Instant,
  atMost: number,
): Promise<Record<ApiKeyStatus, number>> {
  const { rows } = await sql<{ expired: number; revoked: number }>`select
    (select count(*) from (select 1 as one from api_keys
      where ${hasExpiry(userId)} and expires_at <= ${now} limit ${atMost}) as ended) as expired,
    (select count(*) from (select 1 as one from api_keys
      where user_id = ${userId} and revoked_at is not null limit ${atMost}) as gone) as revoked`.execute(db)
  return { active: await countActiveKeys(db, userId, now, atMost), ...rows[0]! }
}

function hasStatus(status: ApiKeyStatus | null, now: Instant): RawBuilder<unknown> {
  if (status === 'revoked') return sql`revoked_at is not null`
  if (status === 'expired') return sql`revoked_at is null and expires_at <= ${now}`
  if (status === 'active') return sql`revoked_at is null and (expires_at is null or expires_at > ${now})`
  return sql`true`
}

/** The condition for keys that are not revoked and never expire. */
const neverExpires = (userId: string) =>
  sql`user_id = ${userId} and revoked_at is null and expires_at is null`
/** The condition for keys that are not revoked and have an expiry, which may be past. */
const hasExpiry = (userId: string) =>
  sql`user_id = ${userId} and revoked_at is null and expires_at is not null`

/**
 * One page of an owner's keys, newest first. A page of all keys, of revoked keys or of keys that never expire is read
 * from an index in this order, so it reads only the rows that it returns. For a page of expired keys, all keys with an
 * expiry are read in this order, and those that have not expired are skipped. Active keys with an expiry are read by
 * expiry and then sorted, since the index by creation may contain any number of expired keys. `+ 0` keeps the planner
 * from using the index by expiry for expired keys, and the index by creation for active ones.
 */
function selectPage(
  userId: string,
  status: ApiKeyStatus | null,
  now: Instant,
  { limit, after }: PageRequest,
) {
  const isAfterPosition = after ? sql`and ${isOlderThan('created_at', after)}` : sql``
  const orderAndLimit = sql`order by created_at desc, id desc limit ${limit + 1}`
  if (status === null) return selectKeys(sql`user_id = ${userId} ${isAfterPosition} ${orderAndLimit}`)
  if (status === 'revoked')
    return selectKeys(sql`user_id = ${userId} and revoked_at is not null ${isAfterPosition} ${orderAndLimit}`)
  if (status === 'expired')
    return selectKeys(
      sql`${hasExpiry(userId)} and expires_at + 0 <= ${now} ${isAfterPosition} ${orderAndLimit}`,
    )
  const olderWithoutIndex = after ? sql`and (created_at + 0, id) < (${after.at}, ${after.id})` : sql``
  const orderAndLimitWithoutIndex = sql`order by created_at + 0 desc, id desc limit ${limit + 1}`
  return sql<ApiKeyRow>`select * from (
    select * from (${selectKeys(sql`${neverExpires(userId)} ${isAfterPosition} ${orderAndLimit}`)}) as endless
    union all
    select * from (${selectKeys(sql`${hasExpiry(userId)} and expires_at > ${now} ${olderWithoutIndex} ${orderAndLimitWithoutIndex}`)}) as ending
    ) as active ${orderAndLimit}`
}

/** How many pages of keys with an expiry `newestActivePage` reads, to find one page of keys that have not expired. */
const PAGES_READ = 3

/**
 * A page of active keys that reads only the newest keys with an expiry: an owner may have very many, and usually enough
 * of the newest have not expired. Null if the page may be incomplete: active keys that were created before `read_to`,
 * the creation time of the oldest key read, may belong on it.
 */
async function newestActivePage(
  db: Db,
  userId: string,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<ApiKeyRow[] | null> {
  const isAfterPosition = after ? sql`and ${isOlderThan('created_at', after)}` : sql``
  const order = sql`order by created_at desc, id desc`
  const maxRowsRead = PAGES_READ * (limit + 1)
  const withExpiry = sql`${hasExpiry(userId)} ${isAfterPosition} ${order}`
  const { rows } = await sql<ApiKeyRow & { read_to: Instant | null }>`select active.*,
    (select created_at from api_keys where ${withExpiry} limit 1 offset ${maxRowsRead - 1}) as read_to from (
    select * from (${selectKeys(sql`${neverExpires(userId)} ${isAfterPosition} ${order} limit ${limit + 1}`)}) as endless
    union all
    select * from (select * from (${selectKeys(sql`${withExpiry} limit ${maxRowsRead}`)}) as recent
      where expires_at > ${now} ${order} limit ${limit + 1}) as ending
    ) as active ${order} limit ${limit + 1}`.execute(db)
  const oldestReadAt = rows[0]?.read_to
  if (oldestReadAt === undefined) return null
  if (oldestReadAt === null) return rows
  return rows.length > limit && rows.every(row => row.created_at > oldestReadAt) ? rows : null
}

function selectKeys(condition: RawBuilder<unknown>): RawBuilder<ApiKeyRow> {
  return sql<ApiKeyRow>`select * from api_keys where ${condition}`
}
