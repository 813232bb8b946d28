import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { PageRequest, Slice } from '../paging.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { User } from '../users/user.ts'
import type { UserSearch } from '../users/user-store.ts'
import { ADDRESS_PARTS_INDEX, MIN_PART_LENGTH, searchAddressParts } from './address-parts.ts'
import { filteredSlice, rowsToRead } from './bounded-scan.ts'
import type { Db } from './engine.ts'
import type { UserRow } from './schema.ts'
import type { Statements } from './statements.ts'
import { toUser } from './user-row.ts'

const ADDRESS = sql.raw('email')
/** The domain of an address, with its `@`: the expression of an index (migration 0021), so that the index is used. */
const DOMAIN = sql.raw("ltrim(email, 'abcdefghijklmnopqrstuvwxyz0123456789!#$&''*+-./=?^_`{|}~%')")
/** Maximum number of keys that are read for a page of their owners, since a short prefix may match very many keys. */
const MAX_KEYS = 100

export async function searchUsers(
  statements: Statements,
  search: UserSearch,
  page: PageRequest,
): Promise<Slice<User>> {
  const { db } = statements
  const { by, status, role } = search
  const binaryCollation = sql.raw(statements.binaryCollation)
  // Addresses and keys consist of printable ASCII, so any other text matches nothing. It is not sent to the database,
  // since PostgreSQL refuses a NUL character in a parameter.
  if (by && !/^[!-~]*$/.test(Object.values(by)[0]!)) return { rows: [], next: null }
  if (by && 'keyPrefixBeginning' in by)
    return findOwnersOfKeys(db, binaryCollation, by.keyPrefixBeginning, search, page)
  const comparison = by && (await chooseComparison(statements, binaryCollation, by))
  if (comparison && 'part' in comparison) return searchAddressParts(statements, comparison.part, search, page)
  // Whether rows must be filtered after they were read, because there is no index for the filters.
  const isFiltered = status === 'active' || (by !== undefined && (status !== undefined || role !== undefined))
  const rowCount = rowsToRead(page.limit, isFiltered)
  const query = comparison
    ? selectByText(binaryCollation, comparison, page, rowCount)
    : selectByTime(search, page, rowCount)
  const rows = (await query.execute(db)).rows.map(row => toUser(row)!)
  const matches = (user: User) => matchesFilters(user, search)
  return filteredSlice(rows, page.limit, isFiltered, matches, ({ id, createdAt }) => ({ at: createdAt, id }))
}

/** What a text is compared with: the beginning of a column's values, or any part of an address. */
type Comparison = { column: RawBuilder<unknown>; beginning: string } | { part: string }

/**
 * Chooses the comparison for a typed text. It depends on neither filters nor position, so it is the same for all pages
 * of a search.
 */
async function chooseComparison(
  { db, hasIndex }: Pick<Statements, 'db' | 'hasIndex'>,
  binaryCollation: RawBuilder<unknown>,
  by: { addressBeginning: string } | { domainBeginning: string },
): Promise<Comparison> {
  if ('domainBeginning' in by) return { column: DOMAIN, beginning: by.domainBeginning }
  const text = by.addressBeginning
  const hasAt = text.includes('@')
  const mayBePart = text.length >= MIN_PART_LENGTH && (await hasIndex?.(ADDRESS_PARTS_INDEX))
  if (mayBePart && !hasAt) return { part: text }
  const beginningOfAddress = { column: ADDRESS, beginning: text }
  // Who types a whole address wants to know whether it has an account, and not who has a similar one.
  if (parseEmailAddress(text)) return beginningOfAddress
  const firstPage = { limit: 1, after: null }
  const { rows } = await selectByText(binaryCollation, beginningOfAddress, firstPage, 1).execute(db)
  if (rows.length > 0) return beginningOfAddress
  if (!hasAt) return { column: DOMAIN, beginning: `@${text}` }
  return mayBePart ? { part: text } : beginningOfAddress
}

function matchesFilters(user: User, { status, role }: UserSearch): boolean {
  return (status === undefined || user.status === status) && (role === undefined || user.role === role)
}

/**
 * Finds people by a prefix of the column, sorted by the column. A position does not have the column's value, so the
 * query reads it from the row with the position's id.
 */
function selectByText(
  binaryCollation: RawBuilder<unknown>,
  { column, beginning }: { column: RawBuilder<unknown>; beginning: string },
  { after }: PageRequest,
  limit: number,
): RawBuilder<UserRow> {
  const text = sql`(${column}) ${binaryCollation}`
  const lastText = after && sql`(select ${text} from users where id = ${after.id})`
  const afterPosition = lastText ? sql`and (${text}, id) > (${lastText}, ${after!.id})` : sql``
  return sql<UserRow>`select * from users
    where ${text} >= ${beginning} and ${text} < ${prefixEnd(beginning)} ${afterPosition} order by ${text}, id limit ${limit}`
}

function selectByTime(
  { status, role, oldestFirst }: UserSearch,
  { after }: PageRequest,
  limit: number,
): RawBuilder<UserRow> {
  const conditions = [sql<SqlBool>`true`]
  if (role !== undefined) conditions.push(sql`role = ${role}`)
  if (role !== undefined && role !== 'user') conditions.push(sql`role <> 'user'`)
  if (status !== undefined && status !== 'active')
    conditions.push(sql`status = ${status} and status <> 'active'`)
  const direction = sql.raw(oldestFirst ? 'asc' : 'desc')
  const comparison = sql.raw(oldestFirst ? '>' : '<')
  if (after) conditions.push(sql`(created_at, id) ${comparison} (${after.at}, ${after.id})`)
  return sql<UserRow>`select * from users where ${sql.join(conditions, sql` and `)}
    order by created_at ${direction}, id ${direction} limit ${limit}`
}

/** Finds people by a prefix of their keys, sorted by the keys. Each appears once on a page, even with several keys. */
async function findOwnersOfKeys(
  db: Db,
  binaryCollation: RawBuilder<unknown>,
  beginning: string,
  search: UserSearch,
  { limit, after }: PageRequest,
): Promise<Slice<User>> {
  const prefix = sql`key_prefix ${binaryCollation}`
  const lastPrefix = after && sql`(select ${prefix} from api_keys where id = ${after.id})`
  const afterPosition = lastPrefix ? sql`and (${prefix}, id) > (${lastPrefix}, ${after!.id})` : sql``
  const { rows } = await sql<{ id: string; user_id: string; created_at: number }>`
    select id, user_id, created_at from api_keys
    where ${prefix} >= ${beginning} and ${prefix} < ${prefixEnd(beginning)} ${afterPosition}
    order by ${prefix}, id limit ${MAX_KEYS}`.execute(db)
  const owners = [...new Set(rows.map(({ user_id }) => user_id))].slice(0, limit)
  const userRows =
    owners.length > 0 ? await db.selectFrom('users').selectAll().where('id', 'in', owners).execute() : []
  const usersById = new Map(userRows.map(row => [row.id, toUser(row)!]))
  const shownIds = new Set(owners)
  const firstNotShownIndex = rows.findIndex(({ user_id }) => !shownIds.has(user_id))
  const lastShownRow = firstNotShownIndex < 0 ? rows.at(-1) : rows[firstNotShownIndex - 1]
  const isLastPage = firstNotShownIndex < 0 && rows.length < MAX_KEYS
  return {
    rows: owners.map(id => usersById.get(id)!).filter(user => matchesFilters(user, search)),
    next: isLastPage || !lastShownRow ? null : { at: lastShownRow.created_at, id: lastShownRow.id },
  }
}

/** The first text that sorts after all texts with this prefix, which must be ASCII and not empty. */
export function prefixEnd(beginning: string): string {
  const lastCharCode = beginning.charCodeAt(beginning.length - 1)
  return beginning.slice(0, -1) + String.fromCharCode(lastCharCode + 1)
}
