import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKey, ApiKeyStatus } from '../../src/api-keys/api-key.ts'
import { DAY, type Instant } from '../../src/clock.ts'
import type { Position, Slice } from '../../src/paging.ts'
import type { Connection } from '../../src/storage/engine.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'
import { aKey, insertUser, NOW } from './fixtures.ts'

/** Number of keys of the owner that have the status under test. */
const MANY_KEYS = 20_000
const KEYS_PER_STATEMENT = 5_000
/** Number of the owner's older keys of each status. */
const FEW_KEYS = 5

interface RecordedQuery {
  sql: string
  parameters: readonly unknown[]
}

forEachEngine(engine => {
  for (const [many, named] of [
    ['revoked', 'revoked'],
    ['expired', 'expired'],
    ['active', 'active'],
    ['expiring', 'active and expiring'],
  ] as const) {
    test(`a page reads only the rows that it returns, also with 20,000 ${named} keys of the same owner`, async t => {
      const { storage } = await openTestStorage(engine, t)
      const { store } = storage
      const user = await insertUser(store)
      const { connection } = storage.engine
      for (let from = 0; from < MANY_KEYS; from += KEYS_PER_STATEMENT)
        await connection.execute(insertMany(engine, user.id, many, from), [])
      if (engine === 'postgres') await connection.execute('analyze api_keys', [])
      // Keys that are older than the 20,000: a query that scans from the newest key on would read all of those first.
      const olderKey = { createdAt: NOW - 2 * DAY }
      for (let index = 0; index < FEW_KEYS; index++) {
        await store.apiKeys.insert(aKey(user.id, { ...olderKey, revokedAt: NOW - DAY }))
        await store.apiKeys.insert(aKey(user.id, { ...olderKey, expiresAt: NOW - DAY }))
        await store.apiKeys.insert(aKey(user.id, { ...olderKey, expiresAt: NOW + DAY }))
        await store.apiKeys.insert(aKey(user.id, olderKey))
      }
      const reads = recordQueries(connection)
      const page = (status: ApiKeyStatus | null, after: Position | null) =>
        store.apiKeys.list(user.id, status, NOW, { limit: 50, after })
      // A page of expired keys also reads the keys that will expire, and skips them. It is left out where there are
      // 20,000 of these, since the service limits the number of active keys.
      const statuses = (['active', 'revoked', null, 'expired'] as const).slice(0, many === 'expiring' ? 3 : 4)
      for (const status of statuses) {
        const firstPage = await page(status, null)
        const hasManyKeys = status === null || status === (many === 'expiring' ? 'active' : many)
        assert.equal(firstPage.rows.length, hasManyKeys ? 50 : status === 'active' ? 10 : 5)
        const lastPage = await page(status, { at: NOW - 2 * DAY + 1, id: 'z' })
        assert.equal(
          lastPage.rows.length,
          status === null ? 4 * FEW_KEYS : status === 'active' ? 2 * FEW_KEYS : FEW_KEYS,
        )
      }
      assert.equal(
        await store.apiKeys.countActive(user.id, NOW, 100),
        many === 'active' || many === 'expiring' ? 100 : 2 * FEW_KEYS,
      )
      const counts = await store.apiKeys.count(user.id, NOW, 1000)
      assert.equal(counts[many === 'expiring' ? 'active' : many], 1000)
      assert.equal(await store.apiKeys.nthLastCreation(user.id, 500), NOW - 500)
      // If the newest keys with an expiry have all expired, `newestActivePage` finds too few active keys for the first
      // page, and a second query reads it.
      assert.equal(reads.length, 2 * statuses.length + 4 + (many === 'expired' ? 1 : 0))
      for (const read of reads.splice(0)) await assertReadsOnlyPage(engine, connection, read)
    })
  }
})

forEachEngine(engine => {
  test('pages of active keys contain each key once, in order, while others expire', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    const user = await insertUser(store)
    const expiries = [null, NOW + DAY, NOW, NOW + 1, NOW - 1, null, NOW - DAY]
    await storage.transaction(async tx => {
      for (let n = 0; n < 300; n++) {
        // Runs of 1, 8 and 32 keys of one kind, four keys a millisecond.
        const kind = n < 100 ? n : n < 200 ? n >> 3 : n >> 5
        const expiresAt = expiries[kind % expiries.length]!
        const revokedAt = n % 11 === 0 ? NOW : null
        await tx.apiKeys.insert(aKey(user.id, { createdAt: NOW - (n >> 2), expiresAt, revokedAt }))
      }
    })
    const allKeys = (await store.apiKeys.list(user.id, null, NOW, { limit: 1000, after: null })).rows
    const activeKeys = allKeys.filter(key => key.revokedAt === null && (key.expiresAt ?? NOW + 1) > NOW)
    for (const limit of [1, 3, 7, 50, 299]) {
      const readIds: string[] = []
      let after: Position | null = null
      do {
        const { rows, next }: Slice<ApiKey> = await store.apiKeys.list(user.id, 'active', NOW, {
          limit,
          after,
        })
        readIds.push(...rows.map(({ id }) => id))
        after = next
      } while (after)
      assert.deepEqual(
        readIds,
        activeKeys.map(({ id }) => id),
        `${limit} a page`,
      )
    }
  })
})

/** SQL that inserts KEYS_PER_STATEMENT keys, created in the milliseconds before NOW - `from`. */
function insertMany(
  engine: EngineName,
  userId: string,
  status: ApiKeyStatus | 'expiring',
  from: number,
): string {
  const n =
    engine === 'sqlite'
      ? `with recursive n(i) as (select ${from + 1} union all select i + 1 from n where i < ${from + KEYS_PER_STATEMENT}) `
      : `with n(i) as (select * from generate_series(${from + 1}, ${from + KEYS_PER_STATEMENT})) `
  const columns =
    'id, user_id, app_id, key_hash, key_prefix, scopes, allowed_networks, created_at, expires_at, revoked_at'
  const expiresAt: Instant | 'null' =
    status === 'expired' ? NOW - DAY : status === 'expiring' ? NOW + DAY : 'null'
  return `${n} insert into api_keys (${columns}) select 'key ' || i, '${userId}', 'service-sdk', 'hash ' || i, 'svc_', '[]', '[]',
    ${NOW} - i, ${expiresAt}, ${status === 'revoked' ? NOW - DAY : 'null'} from n`
}

/** Records every statement that reads keys from now on. */
function recordQueries(connection: Connection): RecordedQuery[] {
  const reads: RecordedQuery[] = []
  const execute = connection.execute.bind(connection)
  connection.execute = (sql, parameters) => {
    if (sql.includes('from api_keys') || sql.includes('from "api_keys"')) reads.push({ sql, parameters })
    return execute(sql, parameters)
  }
  return reads
}

/** PostgreSQL reports the pages that it read, SQLite the index that it uses. */
async function assertReadsOnlyPage(
  engine: EngineName,
  connection: Connection,
  { sql, parameters }: RecordedQuery,
) {
  if (engine === 'postgres') {
    const { rows } = await connection.execute(`explain (analyze, buffers, format json) ${sql}`, parameters)
    const [{ Plan: plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: Record<string, number> }] })['QUERY PLAN']
    const pages = plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
    assert.ok(pages < 150, `${pages} pages for ${sql}`)
    return
  }
  const { rows } = await connection.execute(`explain query plan ${sql}`, parameters)
  const steps = (rows as { detail: string }[]).map(({ detail }) => detail)
  for (const step of steps.filter(each => each.includes(' api_keys '))) {
    assert.match(step, /^SEARCH api_keys USING (COVERING )?INDEX api_keys_\w+ \(user_id=\?/, sql)
    const isFiltered = /revoked_at|expires_at/.test(sql)
    if (isFiltered) assert.match(step, /INDEX api_keys_(revoked|endless|ending|by_end) /, sql)
  }
  assert.ok(
    steps.some(step => step.includes(' api_keys ')),
    sql,
  )
}
