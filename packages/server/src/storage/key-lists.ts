import { type RawBuilder, sql } from 'kysely'
import type { ApiKeyStatus } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { PageRequest } from '../paging.ts'
import type { Db } from './engine.ts'
import { before } from './paging.ts'
import type { ApiKeyRow } from './schema.ts'

/** Reads one page of an owner's keys, newest first, and one row more if there is another page. */
export async function listKeys(
  db: Db,
  userId: string,
  status: ApiKeyStatus | null,
  now: Instant,
  page: PageRequest,
): Promise<ApiKeyRow[]> {
  const newest = status === 'active' ? await newestActive(db, userId, now, page) : null
  return newest ?? (await pageOf(userId, status, now, page).execute(db)).rows
}

export async function listKeysByExternalId(
  db: Db,
  userId: string,
  externalId: string,
  status: ApiKeyStatus | null,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<ApiKeyRow[]> {
  const older = after ? sql`and ${before('created_at', after)}` : sql``
  const query = rowsOf(sql`user_id = ${userId} and external_id = ${externalId}
    and ${hasStatus(status, now)} ${older} order by created_at desc, id desc limit ${limit + 1}`)
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

/** Numbers of an owner's keys by status, each at most `atMost`, by one partial index each. */
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

/** Not revoked, and never expires. */
const neverExpires = (userId: string) =>
  sql`user_id = ${userId} and revoked_at is null and expires_at is null`
/** Not revoked, and expires or has expired. */
const hasExpiry = (userId: string) =>
  sql`user_id = ${userId} and revoked_at is null and expires_at is not null`

/**
 * One page of an owner's keys, newest first. Each condition matches a partial index with this order, so a page reads
 * only the rows that it returns, however many keys there are. Active keys come from two queries: those without an
 * expiry are read in order; those with one are read by expiry, since the index by creation may contain any number of
 * expired keys. `+ 0` prevents the planner from using the order of an index that would scan those.
 */
function pageOf(userId: string, status: ApiKeyStatus | null, now: Instant, { limit, after }: PageRequest) {
  const older = after ? sql`and ${before('created_at', after)}` : sql``
  const page = sql`order by created_at desc, id desc limit ${limit + 1}`
  if (status === null) return rowsOf(sql`user_id = ${userId} ${older} ${page}`)
  if (status === 'revoked')
    return rowsOf(sql`user_id = ${userId} and revoked_at is not null ${older} ${page}`)
  if (status === 'expired')
    return rowsOf(sql`${hasExpiry(userId)} and expires_at + 0 <= ${now} ${older} ${page}`)
  const olderWithoutIndex = after ? sql`and (created_at + 0, id) < (${after.at}, ${after.id})` : sql``
  const pageWithoutIndex = sql`order by created_at + 0 desc, id desc limit ${limit + 1}`
  return sql<ApiKeyRow>`select * from (
    select * from (${rowsOf(sql`${neverExpires(userId)} ${older} ${page}`)}) as endless
    union all
    select * from (${rowsOf(sql`${hasExpiry(userId)} and expires_at > ${now} ${olderWithoutIndex} ${pageWithoutIndex}`)}) as ending
    ) as active ${page}`
}

/** Pages of keys with an expiry that are read by creation, before those that have not expired are read by expiry. */
const PAGES_BY_CREATION = 3

/**
 * A page of active keys without reading all that have an expiry, for owners of very many: usually enough of the newest
 * have not expired. Null if the page may be incomplete, since keys older than `read_to`, the oldest that was read, were
 * not considered (nor those of the same millisecond).
 */
async function newestActive(
  db: Db,
  userId: string,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<ApiKeyRow[] | null> {
  const older = after ? sql`and ${before('created_at', after)}` : sql``
  const order = sql`order by created_at desc, id desc`
  const read = PAGES_BY_CREATION * (limit + 1)
  const withExpiry = sql`${hasExpiry(userId)} ${older} ${order}`
  const { rows } = await sql<ApiKeyRow & { read_to: Instant | null }>`select active.*,
    (select created_at from api_keys where ${withExpiry} limit 1 offset ${read - 1}) as read_to from (
    select * from (${rowsOf(sql`${neverExpires(userId)} ${older} ${order} limit ${limit + 1}`)}) as endless
    union all
    select * from (select * from (${rowsOf(sql`${withExpiry} limit ${read}`)}) as recent
      where expires_at > ${now} ${order} limit ${limit + 1}) as ending
    ) as active ${order} limit ${limit + 1}`.execute(db)
  const readTo = rows[0]?.read_to
  if (readTo === undefined) return null
  if (readTo === null) return rows
  return rows.length > limit && rows.every(row => row.created_at > readTo) ? rows : null
}

function rowsOf(condition: RawBuilder<unknown>): RawBuilder<ApiKeyRow> {
  return sql<ApiKeyRow>`select * from api_keys where ${condition}`
}
