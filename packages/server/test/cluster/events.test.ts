import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import {
  call,
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  revokeKey,
  signIn,
  startNode,
  type TestNode,
} from '../support/nodes.ts'
import { patienceMs, until } from '../support/patience.ts'
import { withOwnTimeouts } from '../support/postgres.ts'
import { startProxy } from '../support/proxy.ts'
import { redisMissing, startRedis } from '../support/redis.ts'

const isReady = async (node: TestNode) => (await call(node.origin, 'GET', '/readyz')).status === 200
const receivesEvents = (node: TestNode) => node.services.storage.eventsHealth().listening
const eventsCheck = async (node: TestNode) =>
  (await call(node.origin, 'GET', '/readyz')).body.checks.find(
    ({ name }: { name: string }) => name === 'events',
  )

/** A signed-in user with a key; `connect` opens a hub connection with it. */
async function openAgent(node: TestNode, links: ReturnType<typeof createPrintedLinks>, email: string) {
  const session = await signIn(node.origin, links, email)
  const { id, key } = (await createKey(node.origin, session.access_token)).body
  return {
    session,
    id,
    connect: async (to: TestNode) => connectHub(to.origin, (await exchange(node.origin, key)).body.token),
  }
}

async function openPair(
  t: TestContext,
  settingsOfB: Record<string, string>,
  settingsOfBoth: Record<string, string> = {},
) {
  const links = createPrintedLinks()
  const a = await startNode(t, settingsOfBoth, links)
  const b = await startNode(t, { ...settingsOfBoth, ...settingsOfB }, links)
  return { a, b, links }
}

/** These tests mostly wait, and each has nodes and a database of its own, so they run concurrently. */
const CONCURRENT = { concurrency: true }

describe('nodes without events or without the database', { ...CONCURRENT, skip: postgresMissing() }, () => {
  test('a node that receives no events closes the connections of a revoked key within ten seconds', async t => {
    const url = await freshPostgres(t)
    const proxy = await startProxy(url, t)
    const { a, b, links } = await openPair(
      t,
      { KEYWAY_EVENTS_URL: proxy.through(url) },
      { KEYWAY_DATABASE_URL: url },
    )
    const agent = await openAgent(a, links, 'no-events@example.com')
    const connection = await agent.connect(b)
    proxy.cut()
    await until('b reports that no events arrive', () => !receivesEvents(b), 15_000)
    const startedAt = performance.now()
    await revokeKey(a.origin, agent.session.access_token, agent.id)
    const { code, at } = await connection.closed
    assert.equal(code, 4410)
    assert.ok(at - startedAt < patienceMs(10_000), `closed after ${at - startedAt} ms`)
    t.diagnostic(`closed by the sweep after ${Math.round(at - startedAt)} ms`)
    assert.ok(await isReady(b), 'a node without events stays ready')
    proxy.heal()
    await until('events reach b again', () => receivesEvents(b), 15_000)
  })

  test('an event connection that stops delivering is detected and reconnected', async t => {
    const url = await freshPostgres(t)
    const proxy = await startProxy(url, t)
    const { a, b, links } = await openPair(
      t,
      { KEYWAY_EVENTS_URL: proxy.through(url) },
      { KEYWAY_DATABASE_URL: url },
    )
    const agent = await openAgent(a, links, 'hole@example.com')
    const connection = await agent.connect(b)
    proxy.blackHole()
    await revokeKey(a.origin, agent.session.access_token, agent.id)
    const startedAt = performance.now()
    const { code, at } = await connection.closed
    assert.deepEqual([code, at - startedAt < patienceMs(10_000)], [4410, true])
    await until('b reports that no events arrive', () => !receivesEvents(b), 20_000)
    proxy.heal()
    await until('events reach b again', () => receivesEvents(b), 20_000)
  })

  test('a node that cannot reach the database closes its connections with 1013 after ten seconds and answers 503', async t => {
    const url = await freshPostgres(t)
    const proxy = await startProxy(url, t)
    const { a, b, links } = await openPair(
      t,
      { KEYWAY_DATABASE_URL: proxy.through(`${withOwnTimeouts(url)}?connect_timeout=8`) },
      {
        KEYWAY_DATABASE_URL: url,
      },
    )
    const agent = await openAgent(a, links, 'blind@example.com')
    const [agentOfA, agentOfB] = [await agent.connect(a), await agent.connect(b)]
    proxy.blackHole()
    const startedAt = performance.now()
    const { code, at } = await agentOfB.closed
    assert.equal(code, 1013)
    assert.ok(
      at - startedAt > 5_000 && at - startedAt < patienceMs(13_000),
      `closed after ${at - startedAt} ms`,
    )
    const answers = await Promise.all([
      call(b.origin, 'GET', '/readyz'),
      call(b.origin, 'POST', '/auth/agent-token', { body: { api_key: `svc_${'a'.repeat(32)}` } }),
      call(b.origin, 'GET', '/livez'),
    ])
    assert.deepEqual(
      answers.map(answer => answer.status),
      [503, 503, 200],
    )
    assert.equal(
      agentOfA.socket.readyState,
      agentOfA.socket.OPEN,
      'the connections of the other node stay open',
    )
    proxy.heal()
    await until('b serves again', () => isReady(b), 5_000)
    const newConnection = await agent.connect(b)
    newConnection.socket.terminate()
  })

  test('a sign-in whose COMMIT loses its connection happens once or not at all', async t => {
    const url = await freshPostgres(t)
    const proxy = await startProxy(url, t)
    const links = createPrintedLinks()
    const a = await startNode(t, { KEYWAY_DATABASE_URL: proxy.through(url) }, links)
    const observer = await startNode(t, { KEYWAY_DATABASE_URL: url }, links)
    for (const when of ['unreceived', 'unanswered'] as const) {
      const cutCommitCountBefore = proxy.commitsCut
      for (let round = 0; round < 8; round++) {
        const email = `${when}-${round}@example.com`
        await call(observer.origin, 'POST', '/auth/send-magic-link', { body: { email } })
        const token = await links.next(email)
        proxy.cutCommits(1, when)
        const verify = (origin: string) =>
          call(origin, 'POST', '/auth/verify-magic-link', { body: { email, token } })
        const answer = await verify(a.origin)
        proxy.cutCommits(0, when)
        const secondAnswer = await verify(observer.origin)
        if (answer.status === 200) assert.equal(secondAnswer.status, 410)
        else assert.deepEqual([answer.status, [200, 410].includes(secondAnswer.status)], [503, true])
        const signInAnswer =
          answer.status === 200 ? answer : secondAnswer.status === 200 ? secondAnswer : null
        if (!signInAnswer) continue
        const account = await call(observer.origin, 'GET', '/v1/me', {
          token: signInAnswer.body.access_token,
        })
        assert.equal(account.body.balance.amount, '2.00')
      }
      assert.ok(proxy.commitsCut - cutCommitCountBefore >= 8, 'the commits were cut')
    }
  })
})

describe('events over Redis', { ...CONCURRENT, skip: postgresMissing() || redisMissing() }, () => {
  test('revocations and messages reach other nodes when the database supports neither LISTEN nor NOTIFY', async t => {
    const redis = await startRedis(t)
    const url = await freshPostgres(t)
    const proxy = await startProxy(url, t)
    proxy.refuse(/\b(listen|notify|pg_notify|pg_advisory\w*|skip locked)\b/i)
    const sharedSettings = { KEYWAY_DATABASE_URL: proxy.through(url), KEYWAY_EVENTS_URL: redis.url }
    const { a, b, links } = await openPair(t, {}, sharedSettings)
    const agent = await openAgent(a, links, 'redis@example.com')
    const [agentOfA, agentOfB] = [await agent.connect(a), await agent.connect(b)]
    await until('both nodes list each other', () => a.hub.health().otherNodes === 1)
    agentOfA.send({ type: 'send', id: '1', to: agentOfB.id, data: 'hello' })
    assert.equal((await agentOfB.next(frame => frame.type === 'message')).data, 'hello')
    assert.equal((await agentOfA.next(frame => frame.type === 'sent')).delivered, 1)
    const startedAt = performance.now()
    await revokeKey(a.origin, agent.session.access_token, agent.id)
    const { code, at } = await agentOfB.closed
    assert.equal(code, 4410)
    t.diagnostic(`closed after ${Math.round(at - startedAt)} ms`)
    assert.equal(proxy.refused, 0, 'no refused statement was sent')
  })

  test('a node refuses to start without LISTEN and without Redis, and names the setting', async t => {
    const url = await freshPostgres(t)
    const proxy = await startProxy(url, t)
    proxy.refuse(/\blisten\b/i)
    await assert.rejects(startNode(t, { KEYWAY_DATABASE_URL: proxy.through(url) }), /KEYWAY_EVENTS_URL=redis/)
  })

  test('a node receives events over Redis as soon as it has started', async t => {
    const redis = await startRedis(t)
    const url = await freshPostgres(t)
    for (let start = 0; start < 3; start++) {
      const node = await startNode(t, { KEYWAY_DATABASE_URL: url, KEYWAY_EVENTS_URL: redis.url })
      assert.ok(receivesEvents(node), 'the test event has arrived')
    }
  })

  test('without Redis nodes keep serving and the sweep closes connections; events resume when Redis is back', async t => {
    const redis = await startRedis(t)
    const url = await freshPostgres(t)
    const sharedSettings = { KEYWAY_DATABASE_URL: url, KEYWAY_EVENTS_URL: redis.url }
    const { a, b, links } = await openPair(t, {}, sharedSettings)
    const agent = await openAgent(a, links, 'gone@example.com')
    const connection = await agent.connect(b)
    await redis.kill()
    await until(
      'both nodes report that no events arrive',
      () => !receivesEvents(a) && !receivesEvents(b),
      15_000,
    )
    assert.ok((await isReady(a)) && (await isReady(b)))
    await revokeKey(a.origin, agent.session.access_token, agent.id)
    assert.equal((await connection.closed).code, 4410)
    await redis.start()
    await until('events reach both nodes again', () => receivesEvents(a) && receivesEvents(b), 20_000)
    const secondAgent = await openAgent(a, links, 'back@example.com')
    const secondConnection = await secondAgent.connect(b)
    await revokeKey(a.origin, secondAgent.session.access_token, secondAgent.id)
    assert.equal((await secondConnection.closed).code, 4410)
  })

  test('a node that can receive but not publish events reports it, and the sweep of other nodes closes connections', async t => {
    const redis = await startRedis(t)
    const sharedSettings = { KEYWAY_DATABASE_URL: await freshPostgres(t), KEYWAY_EVENTS_URL: redis.url }
    const { a, b, links } = await openPair(t, {}, sharedSettings)
    const agent = await openAgent(a, links, 'silent@example.com')
    const connection = await agent.connect(b)
    const gaps: string[] = []
    a.services.storage.events.subscribe(({ type }) => void (type === 'events.gap' && gaps.push(type)))
    assert.equal((await eventsCheck(a)).ok, true)
    // Only the two subscribers and the connection that sends these commands may stay: publishers cannot reconnect.
    await redis.command('CONFIG SET maxclients 3', 'CLIENT KILL TYPE normal SKIPME yes')
    await until('both nodes report the outage', () => !receivesEvents(a) && !receivesEvents(b))
    const { ok, detail } = await eventsCheck(a)
    assert.deepEqual([ok, /exchanges no events with other nodes/.test(detail)], [false, true])
    assert.ok(await isReady(a))
    await revokeKey(a.origin, agent.session.access_token, agent.id)
    assert.equal((await connection.closed).code, 4410)
    assert.deepEqual([receivesEvents(a), gaps.length], [false, 0], 'the outage lasts')
    await redis.command('CONFIG SET maxclients 100')
    await until('both nodes exchange events again', () => receivesEvents(a) && receivesEvents(b), 20_000)
    assert.equal(gaps.length, 1, 'the store is read again')
    assert.equal((await eventsCheck(a)).ok, true)
  })
})
