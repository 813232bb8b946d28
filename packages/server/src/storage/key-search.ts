import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { toScopes } from '../api-keys/api-key.ts'
import type { KeySearch } from '../api-keys/api-key-store.ts'
import type { Instant } from '../clock.ts'
import type { PageRequest, Position, Slice } from '../paging.ts'
import { type Policies, violationOf } from '../policies/policy.ts'
import { filteredSlice, rowsToRead } from './bounded-scan.ts'
import type { ApiKeyRow } from './schema.ts'
import { type Statements, toList } from './statements.ts'
import { endOf } from './user-search.ts'

/** An access path: the condition that an index answers, its order, and the position of a row in that order. */
interface Path {
  /** An index hint, if the planner would choose another. */
  index?: string
  where: RawBuilder<SqlBool>
  after(position: Position): RawBuilder<SqlBool>
  order: RawBuilder<unknown>
  position(row: ApiKeyRow): Position
}

export async function searchKeys(
  { db, binaryCollation, indexedBy }: Statements,
  wanted: KeySearch,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<Slice<ApiKeyRow>> {
  const path = pathOf(wanted, now, sql.raw(binaryCollation))
  const isFiltered =
    Object.values(wanted).filter(value => value !== undefined).length > 1 ||
    wanted.unusedSince !== undefined ||
    wanted.violating !== undefined
  const later = after ? sql`and ${path.after(after)}` : sql``
  const { rows } =
    await sql<ApiKeyRow>`select * from api_keys ${sql.raw(path.index ? indexedBy(path.index) : '')} where ${path.where} ${later}
    order by ${path.order} limit ${rowsToRead(limit, isFiltered)}`.execute(db)
  return filteredSlice(rows, limit, isFiltered, row => matches(row, wanted, now), path.position)
}

function pathOf(wanted: KeySearch, now: Instant, binary: RawBuilder<unknown>): Path {
  const { prefixBeginning, externalId, expiresBefore, neverExpires } = wanted
  if (prefixBeginning !== undefined) return byPrefix(prefixBeginning, binary)
  if (externalId !== undefined) return byCreation(sql`external_id = ${externalId}`)
  if (expiresBefore !== undefined)
    return {
      where: sql`revoked_at is null and expires_at > ${now} and expires_at < ${expiresBefore}`,
      after: ({ at, id }) => sql`(expires_at, id) > (${at}, ${id})`,
      order: sql`expires_at, id`,
      position: row => ({ at: row.expires_at ?? 0, id: row.id }),
    }
  if (!neverExpires) return byCreation(sql`true`)
  const endless = byCreation(sql`revoked_at is null and expires_at is null`)
  return { ...endless, index: 'api_keys_all_endless' }
}

function byPrefix(beginning: string, binary: RawBuilder<unknown>): Path {
  const prefix = sql`key_prefix ${binary}`
  return {
    where: sql`${prefix} >= ${beginning} and ${prefix} < ${endOf(beginning)}`,
    after: ({ id }) => sql`(${prefix}, id) > ((select ${prefix} from api_keys where id = ${id}), ${id})`,
    order: sql`${prefix}, id`,
    position: row => ({ at: row.created_at, id: row.id }),
  }
}

function byCreation(where: RawBuilder<SqlBool>): Path {
  return {
    where,
    after: ({ at, id }) => sql`(created_at, id) < (${at}, ${id})`,
    order: sql`created_at desc, id desc`,
    position: row => ({ at: row.created_at, id: row.id }),
  }
}

/** Checks all conditions, including those that the index answered. */
function matches(row: ApiKeyRow, wanted: KeySearch, now: Instant): boolean {
  const { prefixBeginning, externalId, unusedSince, expiresBefore, neverExpires, violating } = wanted
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
