import { sql } from 'kysely'
import { type PageRequest, type Slice, toSlice } from '../paging.ts'
import type { User } from '../users/user.ts'
import type { UserSearch } from '../users/user-store.ts'
import type { UserRow } from './schema.ts'
import type { Statements } from './statements.ts'
import { toUser } from './user-row.ts'

export const ADDRESS_PARTS_INDEX = 'users_address_parts'
/** The length of a trigram; shorter parts cannot be found by the index. */
export const MIN_PART_LENGTH = 3
/**
 * A page is first searched among this many of the newest people, where a frequent part has enough matches to fill it.
 * Otherwise the index is used, which computes all matches before it returns any, and so would be slow for such a part.
 */
const SCANNED_PEOPLE = 10_000
/** Maximum number of matches from the index. If a part has more, arbitrary ones are left out. */
const MAX_MATCHES = 20_000

/** People whose address contains `part`, newest first. */
export async function searchAddressParts(
  { db, atomically }: Pick<Statements, 'db' | 'atomically'>,
  part: string,
  { status, role }: UserSearch,
  { limit, after }: PageRequest,
): Promise<Slice<User>> {
  const isAfterPosition = after ? sql`id < ${after.id}` : sql`true`
  const isMatch = sql`email like ${`%${part.replace(/[\\%_]/g, '\\$&')}%`}
    ${status === undefined ? sql`` : sql`and status = ${status}`} ${role === undefined ? sql`` : sql`and role = ${role}`}`
  const newestMatches = await sql<UserRow>`
    select * from (select * from users where ${isAfterPosition} order by id desc limit ${SCANNED_PEOPLE}) as newest
    where ${isMatch} order by id desc limit ${limit + 1}`.execute(db)
  const rows = newestMatches.rows.length > limit ? newestMatches.rows : await findByIndex()
  return toSlice(
    rows.map(row => toUser(row)!),
    limit,
    ({ id, createdAt }) => ({ at: createdAt, id }),
  )

  /**
   * Finds matches by the trigram index of addresses. Other scans are disabled for the transaction: the planner cannot
   * know how rare a part is, and might read all people instead.
   */
  function findByIndex(): Promise<UserRow[]> {
    return atomically(async tx => {
      await sql`select set_config(name, value, true) from (values ('enable_seqscan', 'off'), ('enable_indexscan', 'off'),
        ('gin_fuzzy_search_limit', ${String(MAX_MATCHES)})) as settings (name, value)`.execute(tx)
      const { rows } = await sql<UserRow>`
        with found as materialized (select * from users where ${isMatch} and ${isAfterPosition} limit ${MAX_MATCHES})
        select * from found order by id desc limit ${limit + 1}`.execute(tx)
      return rows
    })
  }
}
