import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { PageRequest, Slice } from '../paging.ts'
import type { User } from '../users/user.ts'
import type { UserSearch } from '../users/user-store.ts'
import { ADDRESS_PARTS_INDEX, MIN_PART_LENGTH, searchAddressParts } from './address-parts.ts'
import { filteredSlice, rowsToRead } from './bounded-scan.ts'
import type { Db } from './engine.ts'
import type { UserRow } from './schema.ts'
import type { Statements } from './statements.ts'
import { toUser } from './user-row.ts'

/** The same expression as in migration 0021: the domain of an address, with its `@`. */
const DOMAIN = sql.raw("ltrim(email, 'abcdefghijklmnopqrstuvwxyz0123456789!#$&''*+-./=?^_`{|}~%')")
/** Keys whose owners one page shows; a prefix of a few characters may match very many. */
const MAX_KEYS = 100

export async function searchUsers(
  statements: Statements,
  wanted: UserSearch,
  page: PageRequest,
): Promise<Slice<User>> {
  const { db } = statements
  const { by, status, role } = wanted
  const binary = sql.raw(statements.binaryCollation)
  // Such text matches nothing: addresses and keys have no other characters, and not every engine accepts all of them.
  if (by && !/^[!-~]*$/.test(Object.values(by)[0]!)) return { rows: [], next: null }
  if (by && 'keyPrefixBeginning' in by) return ownersOfKeys(db, binary, by.keyPrefixBeginning, wanted, page)
  const part = by && 'addressBeginning' in by ? by.addressBeginning : ''
  if (isPart(part) && (await statements.hasIndex?.(ADDRESS_PARTS_INDEX)))
    return searchAddressParts(statements, part, wanted, page)
  // Whether a filter has no index of its own.
  const isFiltered = status === 'active' || (by !== undefined && (status !== undefined || role !== undefined))
  const read = rowsToRead(page.limit, isFiltered)
  const query = by
    ? byText(binary, 'addressBeginning' in by ? sql`email` : DOMAIN, Object.values(by)[0]!, page, read)
    : byTime(wanted, page, read)
  const rows = (await query.execute(db)).rows.map(row => toUser(row)!)
  const matches = (user: User) => matchesFilters(user, wanted)
  return filteredSlice(rows, page.limit, isFiltered, matches, ({ id, createdAt }) => ({ at: createdAt, id }))
}

/**
 * Whether the text may be in the middle of an address. A text with an `@` has a complete local part, so a prefix search
 * finds it.
 */
function isPart(text: string): boolean {
  return text.length >= MIN_PART_LENGTH && !text.includes('@')
}

function matchesFilters(user: User, { status, role }: UserSearch): boolean {
  return (status === undefined || user.status === status) && (role === undefined || user.role === role)
}

/** Sorted by the searched text, and after the row of the position, whose text is read from the database. */
function byText(
  binary: RawBuilder<unknown>,
  column: RawBuilder<unknown>,
  beginning: string,
  { after }: PageRequest,
  limit: number,
): RawBuilder<UserRow> {
  const text = sql`(${column}) ${binary}`
  const last = after && sql`(select ${text} from users where id = ${after.id})`
  const later = last ? sql`and (${text}, id) > (${last}, ${after!.id})` : sql``
  return sql<UserRow>`select * from users
    where ${text} >= ${beginning} and ${text} < ${endOf(beginning)} ${later} order by ${text}, id limit ${limit}`
}

function byTime(
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
  const further = sql.raw(oldestFirst ? '>' : '<')
  if (after) conditions.push(sql`(created_at, id) ${further} (${after.at}, ${after.id})`)
  return sql<UserRow>`select * from users where ${sql.join(conditions, sql` and `)}
    order by created_at ${direction}, id ${direction} limit ${limit}`
}

/** Sorted by key prefix; a person with several matching keys is shown once on a page. */
async function ownersOfKeys(
  db: Db,
  binary: RawBuilder<unknown>,
  beginning: string,
  wanted: UserSearch,
  { limit, after }: PageRequest,
): Promise<Slice<User>> {
  const prefix = sql`key_prefix ${binary}`
  const last = after && sql`(select ${prefix} from api_keys where id = ${after.id})`
  const later = last ? sql`and (${prefix}, id) > (${last}, ${after!.id})` : sql``
  const { rows } = await sql<{ id: string; user_id: string; created_at: number }>`
    select id, user_id, created_at from api_keys
    where ${prefix} >= ${beginning} and ${prefix} < ${endOf(beginning)} ${later}
    order by ${prefix}, id limit ${MAX_KEYS}`.execute(db)
  const owners = [...new Set(rows.map(({ user_id }) => user_id))].slice(0, limit)
  const found =
    owners.length > 0 ? await db.selectFrom('users').selectAll().where('id', 'in', owners).execute() : []
  const byId = new Map(found.map(row => [row.id, toUser(row)!]))
  const shown = new Set(owners)
  const rest = rows.findIndex(({ user_id }) => !shown.has(user_id))
  const end = rest < 0 ? rows.at(-1) : rows[rest - 1]
  const isLast = rest < 0 && rows.length < MAX_KEYS
  return {
    rows: owners.map(id => byId.get(id)!).filter(user => matchesFilters(user, wanted)),
    next: isLast || !end ? null : { at: end.created_at, id: end.id },
  }
}

/** The first text that sorts after all with this prefix; searched texts are ASCII. */
export function endOf(beginning: string): string {
  const last = beginning.charCodeAt(beginning.length - 1)
  return beginning.slice(0, -1) + String.fromCharCode(last + 1)
}
