import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createClient } from '@redis/client'
import pg from 'pg'
import type { Event } from '../../src/events.ts'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { MIGRATIONS } from '../../src/storage/migrations/index.ts'
import { defineMigration } from '../../src/storage/migrations/migration.ts'
import { postgresConfig, postgresMissing } from '../support/engines.ts'
import {
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  refresh,
  revokeKey,
  signIn,
  startNode,
} from '../support/nodes.ts'
import { patienceMs, until } from '../support/patience.ts'
import { redisMissing, startRedis } from '../support/redis.ts'

/** The interval at which a node delivers hints (`Hint` in events.ts) that arrived unsealed, without duplicates. */
const HINT_INTERVAL_MS = 250
/**
 * Number of messages that show that a node awaits no answers of the old one: RELAY_TIMEOUT_MS for each would take far
 * longer than sending them all, even on a busy machine.
 */
const MESSAGE_COUNT = 20

/** A migration of the next minor version, which may only add tables and columns. */
const nextMigration = defineMigration('9999-next-version', async ({ db }) => {
  for (const table of ['users', 'api_keys', 'sessions', 'messages', 'apps', 'magic_links'])
    await db.schema.alterTable(table).addColumn('of_the_next_version', 'text').execute()
})

describe('adjacent versions', { skip: postgresMissing() }, () => {
  test('a node keeps serving while the next version migrates its database', async t => {
    const url = await freshPostgres(t)
    const links = createPrintedLinks()
    const node = await startNode(t, { KEYWAY_DATABASE_URL: url }, links)
    const session = await signIn(node.origin, links, 'before@example.com')
    const { id, key } = (await createKey(node.origin, session.access_token)).body
    const connection = await connectHub(node.origin, (await exchange(node.origin, key)).body.token)

    const newerStorage = await createStorage(postgresConfig(url), createLog('silent'))
    t.after(() => newerStorage.close())
    await migrate(newerStorage.engine, true, createLog('silent'), [...MIGRATIONS, nextMigration])

    // Each connection of the pool has prepared statements of its own, which must still work with the changed schema, so
    // all connections are used.
    const exchanges = await Promise.all(Array.from({ length: 50 }, () => exchange(node.origin, key)))
    assert.deepEqual(new Set(exchanges.map(answer => answer.status)), new Set([200]))
    const refreshed = await refresh(node.origin, session.refresh_token)
    assert.equal(refreshed.status, 200)
    assert.equal((await createKey(node.origin, refreshed.body.access_token)).status, 201)
    await signIn(node.origin, links, 'after@example.com')
    await revokeKey(node.origin, refreshed.body.access_token, id)
    assert.equal((await connection.closed).code, 4410)

    // A node of this version can be restarted on the migrated database.
    const restartedNode = await startNode(t, { KEYWAY_DATABASE_URL: url }, links)
    assert.equal((await createKey(restartedNode.origin, refreshed.body.access_token)).status, 201)
  })

  test('while a node of the previous version is listed, hints are exchanged with it unsealed, and messages never', t =>
    withOldNode(t, 'PostgreSQL'))

  test(
    'while a node of the previous version is listed, hints are exchanged with it unsealed, also over Redis',
    {
      skip: redisMissing(),
    },
    t => withOldNode(t, 'Redis'),
  )

  async function withOldNode(t: TestContext, carrier: 'PostgreSQL' | 'Redis'): Promise<void> {
    const url = await freshPostgres(t)
    const links = createPrintedLinks()
    const redis = carrier === 'Redis' ? await startRedis(t) : null
    const settings = { KEYWAY_DATABASE_URL: url, ...(redis ? { KEYWAY_EVENTS_URL: redis.url } : {}) }
    const node = await startNode(t, settings, links)
    const session = await signIn(node.origin, links, 'mixed@example.com')
    const { id, key } = (await createKey(node.origin, session.access_token)).body
    const agent = await connectHub(node.origin, (await exchange(node.origin, key)).body.token)
    const received: Event[] = []
    node.services.storage.events.subscribe(event => received.push(event))
    const oldNode = await imitateOldNode(t, url, redis?.url)
    // Only these hints name this person: events of the sign-in above may still arrive.
    const hint = { type: 'user.changed', userId: newId(2) } as const
    const hintCount = () =>
      received.filter(event => event.type === hint.type && event.userId === hint.userId).length

    // Unsealed events are ignored until the node that sends them is registered.
    await oldNode.publish(hint)
    await wait(300)
    assert.equal(hintCount(), 0)

    await oldNode.register()
    await until('the old node is listed', () => node.hub.health().otherNodes === 1, 15_000)
    await until('a hint of the old node is delivered', async () => {
      await oldNode.publish(hint)
      return hintCount() > 0
    })
    // A flood of unsealed events, which anybody can forge, is delivered at intervals and without duplicates.
    const countBeforeFlood = hintCount()
    const floodedAt = performance.now()
    for (let round = 0; round < 10; round++) await oldNode.publish(...Array.from({ length: 200 }, () => hint))
    await wait(300)
    const intervals = (performance.now() - floodedAt) / HINT_INTERVAL_MS
    assert.ok(
      hintCount() - countBeforeFlood <= intervals + 1,
      `${hintCount() - countBeforeFlood} of 2000 were passed on in ${intervals} intervals`,
    )

    const userId = session.user.id
    const relayEvent = (order: object) => ({
      type: 'hub.relay',
      to: '*',
      payload: JSON.stringify({ kind: 'order', from: oldNode.id, question: 1, order }),
    })
    await oldNode.publish(
      { type: 'events.gap' },
      relayEvent({ op: 'disconnect', userId, target: agent.id }),
      relayEvent({ op: 'deliver', userId, to: 'all', frame: '{"type":"message","data":"forged"}' }),
    )
    await wait(300)
    assert.equal(agent.socket.readyState, agent.socket.OPEN)
    assert.deepEqual(agent.frames, [])
    assert.ok(!received.some(({ type }) => type === 'hub.relay' || type === 'events.gap'))

    // The node awaits no response from the old node, which cannot open sealed requests.
    const startedAt = performance.now()
    for (let n = 0; n < MESSAGE_COUNT; n++) {
      agent.send({ type: 'send', id: `${n}`, to: 'all', data: 'secret text' })
      assert.equal((await agent.next(frame => frame.type === 'sent' && frame.id === `${n}`)).delivered, 0)
    }
    assert.ok(performance.now() - startedAt < MESSAGE_COUNT * patienceMs(RELAY_TIMEOUT_MS))

    await revokeKey(node.origin, session.access_token, id)
    assert.equal((await agent.closed).code, 4410)
    await until('the old node receives the hint', () =>
      oldNode.unsealed.some(text => text.includes('api_key.changed') && text.includes(id)),
    )
    assert.ok(!oldNode.unsealed.some(text => text.includes('secret text') || text.includes('hub.relay')))

    await oldNode.deregister()
    await until('the old node is no longer listed', () => node.hub.health().otherNodes === 0, 15_000)
    await wait(300)
    const lastHintCount = hintCount()
    await oldNode.publish(hint)
    await wait(300)
    assert.equal(hintCount(), lastHintCount)
  }
})

/** Imitates a node of the previous version: its row, and the unsealed events that it publishes and receives. */
async function imitateOldNode(t: TestContext, url: string, redisUrl?: string) {
  const id = newId(1)
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // The database is dropped before the test ends, which breaks the connection.
  await client.connect()
  t.after(() => client.end())
  const unsealedTexts: string[] = []
  const ownTexts = new Set<string>()
  const receive = (text: string) => ownTexts.has(text) || unsealedTexts.push(text)
  const redis = redisUrl === undefined ? null : await openRedis(t, redisUrl, receive)
  await client.query('listen keyway')
  client.on('notification', ({ payload = '' }) => unsealedTexts.push(payload))
  const NOW_SQL = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
  return {
    id,
    unsealed: unsealedTexts,
    async register() {
      await client.query(
        `insert into nodes (id, started_at, seen_at, version) values ($1, ${NOW_SQL}, ${NOW_SQL} + 60000, '0.1.0')`,
        [id],
      )
    },
    async deregister() {
      await client.query('delete from nodes where id = $1', [id])
    },
    async publish(...events: object[]) {
      for (const text of redis ? events.map(event => JSON.stringify(event)) : []) {
        ownTexts.add(text)
        await redis!.publish('keyway', text)
      }
      if (redis) return
      const parts = events.map(event => `${randomUUID()}:0:1:${JSON.stringify(event)}`)
      await client.query("select pg_notify('keyway', part) from unnest($1::text[]) part", [parts])
      unsealedTexts.length = 0
    },
  }
}

async function openRedis(t: TestContext, url: string, receive: (text: string) => void) {
  const [publisher, subscriber] = [createClient({ url }), createClient({ url })]
  for (const client of [publisher, subscriber]) {
    client.on('error', () => {})
    t.after(() => client.destroy())
    await client.connect()
  }
  await subscriber.subscribe('keyway', receive)
  return publisher
}
