import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Position, Slice } from '../../src/paging.ts'
import {
  EVENT_GROUPS,
  SECURITY_EVENT_TYPES,
  type SecurityEvent,
  securityEvent,
  typesOfGroup,
} from '../../src/security-events/security-event.ts'
import type { SecurityEventFilter } from '../../src/security-events/security-event-store.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'
import { insertUser, NOW } from './fixtures.ts'

/** Number of security events of one person. */
const MANY_EVENTS = 100_000
const EVENTS_PER_STATEMENT = 10_000
const KEY_ID = '0190a5b8-7c3e-7abc-8def-0123456789ab'

/** A statement that inserts EVENTS_PER_STATEMENT sign-ins, one a millisecond, the newest at NOW - 1 - `from`. */
function insertMany(engine: EngineName, userId: string, from: number): string {
  const n =
    engine === 'sqlite'
      ? `with recursive n(i) as (select ${from + 1} union all select i + 1 from n where i < ${from + EVENTS_PER_STATEMENT}) `
      : `with n(i) as (select * from generate_series(${from + 1}, ${from + EVENTS_PER_STATEMENT})) `
  return `${n} insert into security_events (id, user_id, type, at) select 'event ' || i, '${userId}', 'sign_in', ${NOW} - i from n`
}

forEachEngine(engine => {
  test('a page of security events reads only its rows, whatever it is filtered by, also with 100,000 of one person', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    const { connection } = storage.engine
    const user = await insertUser(store)
    for (let from = 0; from < MANY_EVENTS; from += EVENTS_PER_STATEMENT)
      await connection.execute(insertMany(engine, user.id, from), [])
    if (engine === 'postgres') await connection.execute('analyze security_events', [])
    const earlierInstant = NOW - 2 * MANY_EVENTS
    await storage.transaction(async tx => {
      await tx.securityEvents.insert(
        securityEvent('api_key_created', user.id, earlierInstant, null, { keyId: KEY_ID }),
      )
      await tx.securityEvents.insert(securityEvent('account_created', user.id, earlierInstant, null))
    })
    const reads: { sql: string; parameters: readonly unknown[] }[] = []
    const execute = connection.execute.bind(connection)
    connection.execute = (sql, parameters) => {
      reads.push({ sql, parameters })
      return execute(sql, parameters)
    }
    const page = (filter: SecurityEventFilter, after: Position | null = null) =>
      store.securityEvents.list(user.id, { limit: 50, after }, filter)
    assert.equal((await page({})).rows.length, 50)
    assert.equal((await page({}, { at: NOW - MANY_EVENTS + 10, id: 'z' })).rows.length, 13)
    assert.equal((await page({ types: typesOfGroup('sign_ins') })).rows.length, 50)
    assert.equal((await page({ types: typesOfGroup('keys') })).rows.length, 1)
    assert.equal((await page({ types: ['account_created'] })).rows.length, 1)
    assert.equal((await page({ keyId: KEY_ID })).rows.length, 1)
    assert.equal((await page({ keyId: KEY_ID, types: ['sign_in'] })).rows.length, 0)
    for (const { sql, parameters } of reads.splice(0)) {
      if (engine === 'postgres') {
        const { rows } = await execute(`explain (analyze, buffers, format json) ${sql}`, parameters)
        const [{ Plan: plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: Record<string, number> }] })[
          'QUERY PLAN'
        ]
        const pages = plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
        assert.ok(pages < 150, `${pages} pages for ${sql}`)
      } else {
        const { rows } = await execute(`explain query plan ${sql}`, parameters)
        const steps = (rows as { detail: string }[]).map(({ detail }) => detail)
        const searches = steps.filter(step => step.includes(' security_events '))
        assert.ok(searches.length > 0, sql)
        for (const step of searches)
          assert.match(step, /^SEARCH security_events USING INDEX \w+ \(user_id=\?/)
      }
    }
  })

  test('pages of filtered security events contain each once, newest first', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    const user = await insertUser(store)
    const otherUser = await insertUser(store)
    await storage.transaction(async tx => {
      for (let n = 0; n < 200; n++) {
        // Four events a millisecond, of all types in turn, every third about the key.
        const type = SECURITY_EVENT_TYPES[n % SECURITY_EVENT_TYPES.length]!
        const subject = n % 3 === 0 ? { keyId: KEY_ID } : {}
        await tx.securityEvents.insert(securityEvent(type, user.id, NOW - (n >> 2), null, subject))
      }
      await tx.securityEvents.insert(securityEvent('sign_in', otherUser.id, NOW, null, { keyId: KEY_ID }))
    })
    const { rows: allEvents } = await store.securityEvents.list(user.id, { limit: 1000, after: null })
    assert.equal(allEvents.length, 200)
    const filters: SecurityEventFilter[] = [
      ...EVENT_GROUPS.map(group => ({ types: typesOfGroup(group) })),
      { types: ['sign_in'] },
      { types: [] },
      { keyId: KEY_ID },
      { keyId: KEY_ID, types: typesOfGroup('keys') },
    ]
    for (const filter of filters)
      for (const limit of [1, 7, 300]) {
        const readIds: string[] = []
        let after: Position | null = null
        do {
          const { rows, next }: Slice<SecurityEvent> = await store.securityEvents.list(
            user.id,
            { limit, after },
            filter,
          )
          readIds.push(...rows.map(({ id }) => id))
          after = next
        } while (after)
        const matches = ({ type, keyId }: SecurityEvent) =>
          (!filter.types || filter.types.includes(type)) && (!filter.keyId || keyId === filter.keyId)
        assert.deepEqual(
          readIds,
          allEvents.filter(matches).map(({ id }) => id),
          JSON.stringify([filter, limit]),
        )
      }
  })

  test('every type of event is in one group', () => {
    const groupedTypes = EVENT_GROUPS.flatMap(typesOfGroup)
    assert.deepEqual(groupedTypes.toSorted(), SECURITY_EVENT_TYPES.toSorted())
  })
})
