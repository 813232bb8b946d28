import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KeySearch } from '../../src/api-keys/api-key-store.ts'
import type { AuditFilter } from '../../src/audit/audit-store.ts'
import { DAY } from '../../src/clock.ts'
import { MAX_SCANNED } from '../../src/storage/bounded-scan.ts'
import type { Connection } from '../../src/storage/engine.ts'
import type { UserSearch } from '../../src/users/user-store.ts'
import { type EngineName, forEachEngine, openTestStorage, postgresMissing } from '../support/engines.ts'
import { NOW } from './fixtures.ts'

/** Number of people, each with one key. */
const MANY_PEOPLE = 20_000
const PEOPLE_PER_STATEMENT = 1_000
/** Maximum number of 8-KiB pages that PostgreSQL may read for one page of a list, which has 50 rows. */
const MAX_PAGES = 150
/** As `MAX_PAGES`, for a list whose rows are filtered after they were read. */
const MAX_PAGES_FILTERED = 3 * MAX_SCANNED + MAX_PAGES
const PAGE = { limit: 50, after: null }

interface RecordedQuery {
  sql: string
  parameters: readonly unknown[]
}

/** Inserts people with one key each; every tenth is suspended, and one in a thousand has the role support. */
async function insertPeople(engine: EngineName, connection: Connection): Promise<void> {
  for (let from = 0; from < MANY_PEOPLE; from += PEOPLE_PER_STATEMENT)
    await insertChunk(engine, connection, from)
  for (const table of ['users', 'api_keys'])
    await connection.execute(engine === 'postgres' ? `analyze ${table}` : 'analyze', [])
}

async function insertChunk(engine: EngineName, connection: Connection, from: number): Promise<void> {
  const n =
    engine === 'sqlite'
      ? `with recursive n(i) as (select ${from + 1} union all select i + 1 from n where i < ${from + PEOPLE_PER_STATEMENT})`
      : `with n(i) as (select * from generate_series(${from + 1}, ${from + PEOPLE_PER_STATEMENT}))`
  const id = (kind: string) => `'${kind}' || substr('00000000' || i, length('' || i) + 1)`
  await connection.execute(
    `${n} insert into users (id, email, role, status, created_at)
      select ${id('u')}, 'person' || i || '@domain' || (i % 100) || '.example.com',
        case when i % 1000 = 0 then 'support' else 'user' end,
        case when i % 10 = 0 then 'suspended' else 'active' end, ${NOW} - i from n`,
    [],
  )
  await connection.execute(
    `${n} insert into api_keys (id, user_id, app_id, key_hash, key_prefix, scopes, allowed_networks, created_at, expires_at)
      select ${id('k')}, ${id('u')}, 'x', 'hash ' || i, 'svc_' || substr('00000000' || i, length('' || i) + 1), '[]', '[]',
        ${NOW} - i, case when i % 2 = 0 then ${NOW} + i else null end from n`,
    [],
  )
}

function recordQueries(connection: Connection): RecordedQuery[] {
  const reads: RecordedQuery[] = []
  const execute = connection.execute.bind(connection)
  connection.execute = (sql, parameters) => {
    if (/^\s*select/i.test(sql)) reads.push({ sql, parameters })
    return execute(sql, parameters)
  }
  return reads
}

async function assertBounded(
  engine: EngineName,
  connection: Connection,
  { sql, parameters }: RecordedQuery,
  pages: number,
) {
  if (engine === 'postgres') {
    const { rows } = await connection.execute(`explain (analyze, buffers, format json) ${sql}`, parameters)
    const [{ Plan: plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: Record<string, number> }] })['QUERY PLAN']
    const pagesRead = plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
    assert.ok(pagesRead < pages, `${pagesRead} pages for ${sql}`)
    return
  }
  const { rows } = await connection.execute(`explain query plan ${sql}`, parameters)
  const steps = (rows as { detail: string }[]).map(({ detail }) => detail)
  for (const step of steps) {
    assert.doesNotMatch(step, /^SCAN \w+$/, `${step} for ${sql}`)
    // A sort by the last term alone orders only rows that are equal in the index, which are few.
    if (!step.includes('FOR LAST TERM OF ORDER BY'))
      assert.doesNotMatch(step, /USE TEMP B-TREE/, `${step} for ${sql}`)
  }
}

forEachEngine(engine => {
  test('every list of administrators reads a bounded number of rows by an index, also with 20,000 people and keys', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { connection } = storage.engine
    await insertPeople(engine, connection)
    const { users, apiKeys, audit, outbox } = storage.store
    const reads = recordQueries(connection)
    const expectBounded = async (list: () => Promise<unknown>, isFiltered = false) => {
      await list()
      assert.ok(reads.length > 0)
      for (const read of reads.splice(0))
        await assertBounded(engine, connection, read, isFiltered ? MAX_PAGES_FILTERED : MAX_PAGES)
      reads.length = 0
    }

    const userSearches: [UserSearch, boolean?][] = [
      [{}],
      [{ oldestFirst: true }],
      [{ status: 'suspended' }],
      [{ status: 'deleted' }],
      [{ status: 'active' }, true],
      [{ role: 'support' }],
      [{ role: 'admin' }],
      [{ role: 'support', status: 'suspended' }],
      [{ by: { addressBeginning: 'person1' } }, true],
      [{ by: { addressBeginning: 'zebra' } }, true],
      [{ by: { addressBeginning: 'person1@' } }],
      [{ by: { addressBeginning: 'person1@domain1.example.com' } }],
      [{ by: { addressBeginning: 'son1@domain' } }, true],
      [{ by: { addressBeginning: 'nobody@example.com' } }, true],
      [{ by: { addressBeginning: 'domain7.' } }, true],
      [{ by: { addressBeginning: 'do' } }],
      [{ by: { addressBeginning: 'xx' } }],
      [{ by: { addressBeginning: 'pe' } }],
      [{ by: { domainBeginning: '@domain7' } }],
      [{ by: { domainBeginning: '@' } }],
      [{ by: { addressBeginning: 'p' }, status: 'deleted' }, true],
      [{ by: { keyPrefixBeginning: 'svc_' } }, true],
      [{ by: { keyPrefixBeginning: 'svc_00000007' } }],
    ]
    for (const [wanted, isFiltered] of userSearches) {
      await expectBounded(() => users.search(wanted, PAGE), isFiltered)
      const { next } = await users.search(wanted, PAGE)
      reads.length = 0
      if (next) await expectBounded(() => users.search(wanted, { limit: 50, after: next }), isFiltered)
    }

    const keySearches: [KeySearch, boolean?][] = [
      [{}],
      [{ prefixBeginning: 'svc_0001' }],
      [{ externalId: 'customer-1' }],
      [{ neverExpires: true }],
      [{ expiresBefore: NOW + DAY }],
      [{ unusedSince: NOW - DAY }, true],
      [{ unusedSince: NOW - 10, neverExpires: true }, true],
      [{ prefixBeginning: 'svc_', externalId: 'customer-1' }, true],
    ]
    for (const [wanted, isFiltered] of keySearches) {
      await expectBounded(() => apiKeys.search(wanted, NOW, PAGE), isFiltered)
      const { next } = await apiKeys.search(wanted, NOW, PAGE)
      reads.length = 0
      if (next) await expectBounded(() => apiKeys.search(wanted, NOW, { limit: 50, after: next }), isFiltered)
    }

    const filters: AuditFilter[] = [
      {},
      { actor: 'a' },
      { subject: 's' },
      { type: 'user.read' },
      { from: 1, to: 2 },
    ]
    for (const filter of filters) await expectBounded(() => audit.list(filter, PAGE))
    await expectBounded(() => outbox.list(null, PAGE))
  })

  test('a filter that matches few rows of many finds all of them over several pages', async t => {
    const { storage } = await openTestStorage(engine, t)
    await insertPeople(engine, storage.engine.connection)
    const { users, apiKeys } = storage.store
    let [found, pages] = [0, 0]
    for (let after = null as never; ; pages++) {
      const search = { by: { addressBeginning: 'person1' }, role: 'support' } as const
      const { rows, next } = await users.search(search, { limit: 50, after })
      found += rows.length
      if (!next) break
      after = next as never
    }
    // `pages` counts the pages after the first. On PostgreSQL the first page has all matches, found by trigrams.
    const scansRows = engine === 'sqlite'
    assert.deepEqual([found, pages], [11, scansRows ? 11 : 0], '1000, 10000, 11000 … 19000, of 11,111 rows')
    const { rows } = await apiKeys.search({ prefixBeginning: 'svc_00000007' }, NOW, PAGE)
    assert.equal(rows.length, 1)
    const owner = await users.search({ by: { keyPrefixBeginning: 'svc_00000007' } }, PAGE)
    assert.equal(owner.rows[0]!.email, 'person7@domain7.example.com')
  })
})

describe('on postgres with trigrams', { skip: postgresMissing() }, () => {
  test('a search for three or more characters of addresses lists all matches, newest first, over several pages', async t => {
    const { storage } = await openTestStorage('postgres', t)
    const { engine, store } = storage
    await insertPeople('postgres', engine.connection)
    // Adds people, so that a match is older than all the people that a search scans before it uses the index.
    for (let from = MANY_PEOPLE; from < MANY_PEOPLE + 4_000; from += PEOPLE_PER_STATEMENT)
      await insertChunk('postgres', engine.connection, from)
    const search = (part: string, more = {}) =>
      store.users.search({ by: { addressBeginning: part }, ...more }, PAGE)
    assert.ok(await engine.hasIndex!('users_address_parts'))
    const emailsOf = async (part: string) => (await search(part)).rows.map(({ email }) => email)
    assert.deepEqual(await emailsOf('on17@'), ['person17@domain17.example.com'])
    assert.deepEqual(await emailsOf('son23999@domain99'), ['person23999@domain99.example.com'])
    assert.deepEqual(await emailsOf('son23999@domain99.example.com'), [], 'a whole address without account')
    assert.deepEqual(await emailsOf('person17@'), ['person17@domain17.example.com'], 'not person1017')
    assert.deepEqual(await emailsOf('son23999'), ['person23999@domain99.example.com'])
    assert.deepEqual(await emailsOf('rson17890'), ['person17890@domain90.example.com'], 'one of the oldest')
    for (const none of ['son_1', 'per%1', 'x\\', 'zebra']) assert.deepEqual(await emailsOf(none), [], none)
    const commonMatches = await search('example.com')
    assert.deepEqual(
      [commonMatches.rows.length, commonMatches.rows[0]!.email],
      [50, 'person24000@domain0.example.com'],
    )
    const foundIds = new Set<string>()
    for (let after = null as never; ; ) {
      const { rows, next } = await store.users.search(
        { by: { addressBeginning: 'domain7.' }, status: 'active' },
        { limit: 50, after },
      )
      for (const { id } of rows) foundIds.add(id)
      if (!next) break
      after = next as never
    }
    assert.equal(foundIds.size, 240)
    assert.equal((await search('domain7.', { role: 'support' })).rows.length, 0)
  })

  test('without the right to add trigrams a migration goes on, and the beginning of an address is searched', async t => {
    const { storage } = await openTestStorage('postgres', t)
    const { engine, store } = storage
    await insertChunk('postgres', engine.connection, 0)
    await engine.connection.execute('drop extension pg_trgm cascade', [])
    for (const statement of engine.trigramIndex('users_address_parts', 'users', 'no_such_column'))
      await engine.connection.execute(statement, [])
    assert.equal(await engine.hasIndex!('users_address_parts'), false)
    const search = async (text: string) =>
      (await store.users.search({ by: { addressBeginning: text } }, PAGE)).rows.length
    assert.deepEqual([await search('person123'), await search('son123')], [1, 0])
    assert.deepEqual(
      [await search('domain9.example'), await search('person1@dom'), await search('on1@')],
      [10, 1, 0],
    )
  })
})
