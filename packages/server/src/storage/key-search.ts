import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { toScopes } from '../api-keys/api-key.ts'
import type { KeySearch } from '../api-keys/api-key-store.ts'
import type { Instant } from '../clock.ts'
import type { PageRequest, Position, Slice } from '../paging.ts'
import { type Policies, violationOf } from '../policies/policy.ts'
import { filteredSlice, rowsToRead } from './bounded-scan.ts'
import type { ApiKeyRow } from './schema.ts'
import { type Statements, toList } from './statements.ts'
import { prefixEnd } from './user-search.ts'

/** How rows are found: a condition that an index answers, the index's order, and a row's position in that order. */
interface AccessPath {
  /** The name of the index to use, if the planner would choose another. */
  index?: string
  where: RawBuilder<SqlBool>
  after(position: Position): RawBuilder<SqlBool>
  order: RawBuilder<unknown>
  position(row: ApiKeyRow): Position
}

export async function searchKeys(
  { db, binaryCollation, indexedBy }: Statements,
  search: KeySearch,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<Slice<ApiKeyRow>> {
  const path = accessPathOf(search, now, sql.raw(binaryCollation))
  const isFiltered =
    Object.values(search).filter(value => value !== undefined).length > 1 ||
    search.unusedSince !== undefined ||
    search.violating !== undefined
  const afterPosition = after ? sql`and ${path.after(after)}` : sql``
  const { rows } =
    await sql<ApiKeyRow>`select * from api_keys ${sql.raw(path.index ? indexedBy(path.index) : '')} where ${path.where} ${afterPosition}
    order by ${path.order} limit ${rowsToRead(limit, isFiltered)}`.execute(db)
  return filteredSlice(rows, limit, isFiltered, row => matches(row, search, now), path.position)
}

function accessPathOf(search: KeySearch, now: Instant, collation: RawBuilder<unknown>): AccessPath {
  const { prefixBeginning, externalId, expiresBefore, neverExpires } = search
  if (prefixBeginning !== undefined) return byPrefix(prefixBeginning, collation)
  if (externalId !== undefined) return byCreation(sql`external_id = ${externalId}`)
  if (expiresBefore !== undefined)
    return {
      where: sql`revoked_at is null and expires_at > ${now} and expires_at < ${expiresBefore}`,
      after: ({ at, id }) => sql`(expires_at, id) > (${at}, ${id})`,
      order: sql`expires_at, id`,
      position: row => ({ at: row.expires_at ?? 0, id: row.id }),
    }
  if (!neverExpires) return byCreation(sql`true`)
  const withoutExpiry = byCreation(sql`revoked_at is null and expires_at is null`)
  return { ...withoutExpiry, index: 'api_keys_all_endless' }
}

function byPrefix(beginning: string, collation: RawBuilder<unknown>): AccessPath {
  const prefix = sql`key_prefix ${collation}`
  return {
    where: sql`${prefix} >= ${beginning} and ${prefix} < ${prefixEnd(beginning)}`,
    after: ({ id }) => sql`(${prefix}, id) > ((select ${prefix} from api_keys where id = ${id}), ${id})`,
    order: sql`${prefix}, id`,
    position: row => ({ at: row.created_at, id: row.id }),
  }
}

function byCreation(where: RawBuilder<SqlBool>): AccessPath {
  return {
    where,
    after: ({ at, id }) => sql`(created_at, id) < (${at}, ${id})`,
    order: sql`created_at desc, id desc`,
    position: row => ({ at: row.created_at, id: row.id }),
  }
}

/** Whether the row meets all conditions of the search, including the one that the index answered. */
function matches(row: ApiKeyRow, search: KeySearch, now: Instant): boolean {
  const { prefixBeginning, externalId, unusedSince, expiresBefore, neverExpires, violating } = search
  const isActive = row.revoked_at === null && (row.expires_at === null || row.expires_at > now)
  return (
    (prefixBeginning === undefined || row.key_prefix.startsWith(prefixBeginning)) &&
    (externalId === undefined || row.external_id === externalId) &&
    (unusedSince === undefined || (isActive && (row.last_used_at ?? row.created_at) < unusedSince)) &&
    (expiresBefore === undefined ||
      (isActive && row.expires_at !== null && row.expires_at < expiresBefore)) &&
    (neverExpires === undefined || (isActive && row.expires_at === null)) &&
    (violating === undefined || (isActive && violates(row, violating)))
  )
}

function violates({ scopes, expires_at, created_at }: ApiKeyRow, policies: Policies): boolean {
  return (
    violationOf({ scopes: toScopes(toList(scopes)), expiresAt: expires_at }, policies, created_at) !== null
  )
}
