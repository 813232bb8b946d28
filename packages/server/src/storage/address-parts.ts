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
 * Number of people that a page reads newest first before it uses the index, which computes all matches before it
 * returns the first. Enough for parts that more than one in `READ_IN_ORDER / limit` people have.
 */
const READ_IN_ORDER = 10_000
/** Maximum number of matches from the index; of more frequent parts, older matches are missing. */
const MAX_MATCHES = 20_000

/** People with a part in their address, newest first. */
export async function searchAddressParts(
  { db, atomically }: Pick<Statements, 'db' | 'atomically'>,
  part: string,
  { status, role }: UserSearch,
  { limit, after }: PageRequest,
): Promise<Slice<User>> {
  const older = after ? sql`id < ${after.id}` : sql`true`
  const matches = sql`email like ${`%${part.replace(/[\\%_]/g, '\\$&')}%`}
    ${status === undefined ? sql`` : sql`and status = ${status}`} ${role === undefined ? sql`` : sql`and role = ${role}`}`
  const newest = await sql<UserRow>`
    select * from (select * from users where ${older} order by id desc limit ${READ_IN_ORDER}) as newest
    where ${matches} order by id desc limit ${limit + 1}`.execute(db)
  const rows = newest.rows.length > limit ? newest.rows : await byIndex()
  return toSlice(
    rows.map(row => toUser(row)!),
    limit,
    ({ id, createdAt }) => ({ at: createdAt, id }),
  )

  /**
   * By the index. Without a hint the planner, which cannot know how rare a part is, would read all people in their
   * order.
   */
  function byIndex(): Promise<UserRow[]> {
    return atomically(async tx => {
      await sql`select set_config(name, value, true) from (values ('enable_seqscan', 'off'), ('enable_indexscan', 'off'),
        ('gin_fuzzy_search_limit', ${String(MAX_MATCHES)})) as settings (name, value)`.execute(tx)
      const { rows } = await sql<UserRow>`
        with found as materialized (select * from users where ${matches} and ${older} limit ${MAX_MATCHES})
        select * from found order by id desc limit ${limit + 1}`.execute(tx)
      return rows
    })
  }
}
