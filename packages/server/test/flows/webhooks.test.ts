import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createCharges } from '../../src/billing/charges.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { dropExcess } from '../../src/operations/webhook-delivery.ts'
import { createDb } from '../../src/storage/engine.ts'
import { createWebhookQueue, SUBSCRIPTIONS_CACHED_FOR_MS } from '../../src/storage/webhook-queue.ts'
import { CONCURRENT_CALLS } from '../../src/webhooks/delivery.ts'
import { GIVE_UP_AFTER, LEASE, MAX_SECRETS, MAX_WEBHOOKS } from '../../src/webhooks/webhook.ts'
import type { WebhookEventType } from '../../src/webhooks/webhook-event.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { openServices, refusedWith, type ServiceOverrides } from '../support/services.ts'
import {
  deliveryOf,
  type Endpoint,
  isSignedBy,
  LOCAL_NETWORKS,
  openEndpoint,
  subscribe,
} from '../support/webhook-endpoint.ts'

const ACTED_BY = BY_COMMAND_LINE
const PAGE = { limit: 100, after: null }

async function openWebhooks(engine: EngineName, t: TestContext, overrides: ServiceOverrides = {}) {
  const services = await openServices(engine, t, { webhookPrivateNetworks: LOCAL_NETWORKS, ...overrides })
  const endpoint = await openEndpoint(t)
  const webhooks = await services.webhooks()
  const delivery = deliveryOf(services)
  async function openAnotherNode() {
    const openedStorage = services.opened
    return openServices(engine, t, {
      webhookPrivateNetworks: LOCAL_NETWORKS,
      on: { node: await openedStorage.reopen(), of: openedStorage },
    })
  }
  /** Announces one event of a subject for each number. */
  async function announce(subject: string, numbers: number[], type: WebhookEventType = 'user.updated') {
    const at = services.clock.now()
    await services.storage.transaction(async tx => {
      for (const number of numbers)
        tx.announce({ type, subject: { type: 'user', id: subject }, at, data: { number } })
    })
  }
  return { services, ...services, endpoint, webhooks, delivery, openAnotherNode, announce }
}

function typesOf({ received }: Endpoint): string[] {
  return received.map(({ body }) => body.type)
}

forEachEngine(engine => {
  test('an event is sent to each endpoint that subscribes to it, signed as Standard Webhooks says', async t => {
    const { services, endpoint, delivery, clock, webhooks, signIn } = await openWebhooks(engine, t)
    const otherEndpoint = await openEndpoint(t)
    const webhookForAllTypes = await subscribe(services, endpoint.url)
    const webhookForOneType = await subscribe(services, otherEndpoint.url, ['user.created'])
    const { user, session } = await signIn('ada@example.com')
    await delivery.drain()
    assert.deepEqual(typesOf(endpoint).toSorted(), ['session.created', 'user.created'])
    const [event, ...others] = otherEndpoint.received
    assert.deepEqual(others, [])
    assert.deepEqual(event!.body, {
      type: 'user.created',
      timestamp: new Date(clock.now()).toISOString(),
      sequence: 1,
      subject: { type: 'user', id: user.id },
      data: { user_id: user.id, role: 'user', status: 'active' },
    })
    assert.equal(event!.headers['content-type'], 'application/json')
    assert.equal(event!.headers['webhook-timestamp'], String(Math.floor(clock.now() / SECOND)))
    assert.ok(isSignedBy(event!, webhookForOneType.secret))
    assert.ok(!isSignedBy(event!, webhookForAllTypes.secret))
    const sessionEvent = endpoint.received.find(({ body }) => body.type === 'session.created')!
    assert.deepEqual(sessionEvent.body.data, {
      session_id: session.id,
      user_id: user.id,
      app_id: 'console',
      kind: 'api',
    })
    const [logged] = (await webhooks.deliveries(webhookForOneType.id, null, PAGE)).rows
    assert.equal(logged!.id, event!.id)
    assert.equal(logged!.state, 'delivered')
    assert.equal(logged!.lastAttempt!.status, 200)
    for (const { raw } of endpoint.received) assert.doesNotMatch(raw, /ada@|192\.0\.2/)
  })

  test('acts are announced by events of their subject, numbered without gaps', async t => {
    const { services, endpoint, delivery, users, apiKeys, sessions, signIn, caller } = await openWebhooks(
      engine,
      t,
    )
    await subscribe(services, endpoint.url)
    const { user, session, tokens } = await signIn('ada@example.com')
    const newKey = { name: 'x', scopes: null, expiresAt: null, appId: 'console', allowedNetworks: [] }
    const { apiKey } = await apiKeys.create(user.id, newKey, caller())
    await apiKeys.update(user.id, apiKey.id, { name: 'y', allowedNetworks: ['192.0.2.0/24'] }, 'person')
    const { apiKey: next } = await apiKeys.rotate(user.id, apiKey.id, 60, caller())
    await apiKeys.revokeById(next.id)
    await users.rename(user.id, 'Ada')
    await users.setRole(user.id, 'support')
    const secondSignIn = await signIn('ada@example.com')
    await sessions.end(user.id, secondSignIn.session.id, caller())
    const refreshed = await sessions.refresh(tokens.refreshToken, null, caller())
    await sessions.refresh(tokens.refreshToken, null, caller()).catch(() => {})
    assert.ok(refreshed)
    await users.suspend(user.id)
    await users.activate(user.id)
    await users.delete(user.id)
    await delivery.drain()

    const eventsBySubject = Map.groupBy(endpoint.received, ({ body }) => body.subject.id as string)
    const eventsOf = (id: string) =>
      eventsBySubject.get(id)!.map(({ body }) => `${body.sequence} ${body.type}`)
    assert.deepEqual(eventsOf(user.id), [
      '1 user.created',
      '2 user.updated',
      '3 user.updated',
      '4 user.suspended',
      '5 user.activated',
      '6 user.deleted',
    ])
    assert.deepEqual(eventsOf(session.id), [
      '1 session.created',
      '2 session.reuse_detected',
      '3 session.ended',
    ])
    assert.deepEqual(eventsOf(secondSignIn.session.id), ['1 session.created', '2 session.ended'])
    assert.deepEqual(eventsOf(apiKey.id), [
      '1 api_key.created',
      '2 api_key.updated',
      '3 api_key.rotated',
      '4 api_key.revoked',
    ])
    assert.deepEqual(eventsOf(next.id), ['1 api_key.created', '2 api_key.revoked'])
    const dataOf = (id: string, index: number) => eventsBySubject.get(id)![index]!.body.data
    assert.deepEqual(dataOf(apiKey.id, 1).changed, ['name', 'allowed_networks'])
    assert.equal(dataOf(apiKey.id, 2).replaced_by, next.id)
    assert.deepEqual(dataOf(user.id, 2), { user_id: user.id, changed: ['role'], role: 'support' })
    assert.equal(dataOf(session.id, 2).cause, 'reuse')
    assert.equal(dataOf(secondSignIn.session.id, 1).cause, 'revoked')
  })

  test('an event that fails holds up the later ones of its subject, and no others', async t => {
    const { services, endpoint, delivery, announce, clock } = await openWebhooks(engine, t)
    await subscribe(services, endpoint.url)
    const [failingSubject, otherSubject] = [newId(clock.now()), newId(clock.now())]
    endpoint.answer = ({ body }) => (body.subject.id === failingSubject ? 500 : 204)
    await announce(failingSubject, [1, 2])
    await announce(otherSubject, [1, 2, 3])
    await delivery.drain()
    const numbersOf = (id: string) =>
      endpoint.received.filter(({ body }) => body.subject.id === id).map(({ body }) => body.data.number)
    assert.deepEqual(numbersOf(failingSubject), [1])
    assert.deepEqual(numbersOf(otherSubject), [1, 2, 3])
    clock.advance(2 * SECOND - 1)
    await delivery.drain()
    assert.deepEqual(numbersOf(failingSubject), [1])
    clock.advance(1)
    await delivery.drain()
    assert.deepEqual(numbersOf(failingSubject), [1, 1])
    endpoint.answer = () => 200
    clock.advance(4 * SECOND)
    await delivery.drain()
    assert.deepEqual(numbersOf(failingSubject), [1, 1, 1, 2])
    const [first, again] = endpoint.received.filter(({ body }) => body.subject.id === failingSubject)
    assert.equal(first!.id, again!.id, 'the same webhook-id on every attempt')
  })

  test('after three days an event is given up, and an endpoint that accepted nothing is disabled with a mail', async t => {
    const { services, endpoint, delivery, announce, clock, webhooks, mailsTo, users, signIn } =
      await openWebhooks(engine, t)
    const { user } = await signIn('admin@example.com')
    await users.setRole(user.id, 'admin')
    const { id } = await subscribe(services, endpoint.url, ['user.updated'])
    endpoint.answer = () => 500
    const subject = newId(clock.now())
    await announce(subject, [1, 2])
    const startedAt = clock.now()
    await delivery.drain()
    while (clock.now() - startedAt < GIVE_UP_AFTER) {
      assert.equal((await webhooks.find(id)).disabledAt, null)
      clock.advance(HOUR)
      await delivery.drain()
    }
    const { disabledAt, disabledBy, waiting } = await webhooks.find(id)
    assert.deepEqual([disabledAt !== null, disabledBy, waiting], [true, 'failures', 1])
    const [mail, ...others] = await mailsTo('admin@example.com', 'webhook_disabled')
    assert.deepEqual(others, [])
    assert.deepEqual([mail!.webhookId, mail!.failure], [id, 'status 500'])
    const states = (await webhooks.deliveries(id, null, PAGE)).rows.map(({ state }) => state)
    assert.deepEqual(states.toSorted(), ['failed', 'waiting'])
    const receivedBefore = endpoint.received.length

    await announce(subject, [3])
    clock.advance(DAY)
    await delivery.drain()
    assert.equal(endpoint.received.length, receivedBefore, 'nothing is sent or queued while it is disabled')
    endpoint.answer = () => 200
    await webhooks.change(id, { enabled: true }, ACTED_BY)
    await announce(subject, [4])
    await delivery.drain()
    assert.deepEqual(
      endpoint.received.slice(receivedBefore).map(({ body }) => [body.sequence, body.data.number]),
      [
        [2, 2],
        [3, 4],
      ],
    )
  })

  test('an attempt that a stop of the node breaks off after three days is made again, and disables nothing', async t => {
    const { services, delivery, announce, clock, webhooks } = await openWebhooks(engine, t)
    let requests = 0
    const server = createServer((_request, response) => {
      if (++requests !== 2) response.writeHead(requests === 1 ? 500 : 200).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
    const { port } = server.address() as AddressInfo
    const { id } = await subscribe(services, `http://127.0.0.1:${port}/hook`, ['user.updated'])
    await announce(newId(clock.now()), [1])
    await delivery.drain()
    clock.advance(GIVE_UP_AFTER)
    const stoppingDelivery = deliveryOf(services)
    const drained = stoppingDelivery.drain()
    await until('the second attempt has arrived', () => requests === 2)
    await stoppingDelivery.stop(0)
    await drained
    assert.equal((await webhooks.find(id)).disabledAt, null)
    clock.advance(HOUR)
    await delivery.drain()
    const [event] = (await webhooks.deliveries(id, null, PAGE)).rows
    assert.deepEqual([event!.state, requests], ['delivered', 3])
  })

  test('events queued for an endpoint have three more days when it is enabled again, however long it was disabled', async t => {
    const { services, endpoint, delivery, announce, clock, webhooks } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url, ['user.updated'])
    endpoint.answer = () => 500
    await announce(newId(clock.now()), [1])
    await delivery.drain()
    clock.advance(6 * HOUR)
    await announce(newId(clock.now()), [2])
    while ((await webhooks.find(id)).disabledAt === null) {
      await delivery.drain()
      clock.advance(HOUR)
    }
    assert.equal((await webhooks.find(id)).waiting, 1)
    clock.advance(DAY)
    await webhooks.change(id, { enabled: true }, ACTED_BY)
    await delivery.drain()
    const webhookAfterwards = await webhooks.find(id)
    assert.deepEqual([webhookAfterwards.disabledAt, webhookAfterwards.waiting], [null, 1])
    endpoint.answer = () => 200
    clock.advance(HOUR)
    await delivery.drain()
    assert.equal((await webhooks.find(id)).waiting, 0)
  })

  test('an event that is refused for three days is given up while the endpoint accepts others', async t => {
    const { services, endpoint, delivery, announce, clock, webhooks } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url)
    const [refusedSubject, acceptedSubject] = [newId(clock.now()), newId(clock.now())]
    endpoint.answer = ({ body }) => (body.subject.id === refusedSubject && body.sequence === 1 ? 400 : 200)
    await announce(refusedSubject, [1, 2])
    for (let hours = 0; hours <= 73; hours++) {
      await announce(acceptedSubject, [hours])
      await delivery.drain()
      clock.advance(HOUR)
    }
    assert.equal((await webhooks.find(id)).disabledAt, null)
    const lastEvent = endpoint.received.findLast(({ body }) => body.subject.id === refusedSubject)!
    assert.equal(lastEvent.body.sequence, 2)
    const [failed] = (await webhooks.deliveries(id, 'failed', PAGE)).rows
    assert.deepEqual([failed!.sequence, failed!.lastAttempt!.status], [1, 400])

    endpoint.answer = () => 200
    await webhooks.sendAgain(failed!.id, ACTED_BY)
    assert.equal(await refusedWith(webhooks.sendAgain(failed!.id, ACTED_BY)), 'invalid_request')
    await delivery.drain()
    assert.equal(endpoint.received.at(-1)!.id, failed!.id)
    assert.equal((await webhooks.deliveries(id, 'failed', PAGE)).rows.length, 0)
  })

  test('of too many queued events the oldest agent events are dropped first, then the oldest of all, and counted', async t => {
    const { services, endpoint, announce, clock, webhooks } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url)
    const agent = newId(clock.now())
    await announce(newId(clock.now()), [1, 2])
    clock.advance(1)
    await announce(agent, [1, 2, 3], 'agent.connected')
    clock.advance(1)
    await announce(newId(clock.now()), [1])
    assert.equal(await dropExcess(services, 6), 0)
    assert.equal(await dropExcess(services, 4), 2)
    const waitingTypes = async () =>
      (await webhooks.deliveries(id, 'waiting', PAGE)).rows.map(({ type }) => type.split('.')[0]).toSorted()
    assert.deepEqual(await waitingTypes(), ['agent', 'user', 'user', 'user'])
    assert.equal(await dropExcess(services, 2), 2)
    assert.deepEqual(await waitingTypes(), ['user', 'user'])
    assert.equal((await webhooks.find(id)).dropped, 4)
    await deliveryOf(services).drain()
    assert.deepEqual(
      endpoint.received.map(({ body }) => [body.subject.id === agent, body.sequence]).toSorted(),
      [
        [false, 1],
        [false, 2],
      ],
    )
  })

  test('nodes that trim one queue at once drop its excess once, and log what each dropped', async t => {
    const { services, endpoint, announce, clock, webhooks, openAnotherNode } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url)
    await announce(newId(clock.now()), [1, 2, 3, 4, 5, 6, 7, 8])
    const loggedCounts: number[] = []
    const log = {
      ...services.log,
      warn: (fields: object) => void loggedCounts.push(Reflect.get(fields, 'dropped')),
    }
    const nodes = [services, await openAnotherNode(), services]
    const droppedCounts = await Promise.all(nodes.map(node => dropExcess({ ...node, log }, 6)))
    assert.deepEqual(droppedCounts.toSorted(), [0, 0, 2])
    assert.deepEqual(loggedCounts, [2])
    assert.equal((await webhooks.find(id)).dropped, 2)
    assert.equal((await webhooks.deliveries(id, 'waiting', PAGE)).rows.length, 6)
  })

  test('connections of one person beyond the limit are announced neither at their beginning nor at their end', async t => {
    const { services, endpoint, storage, clock, webhooks } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url)
    const [floodingUser, otherUser] = [newId(clock.now()), newId(clock.now())]
    const connectionIds = Array.from({ length: 301 }, () => newId(clock.now()))
    const announce = (type: WebhookEventType, user_id: string, ids: readonly string[]) =>
      storage.transaction(async tx => {
        for (const connection of ids)
          tx.announce({
            type,
            subject: { type: 'agent', id: connection },
            at: clock.now(),
            data: { user_id },
          })
      })
    const countWaiting = async () => (await webhooks.find(id)).waiting
    await announce('agent.connected', floodingUser, connectionIds)
    assert.equal(await countWaiting(), 300)
    await announce('agent.connected', otherUser, [newId(clock.now())])
    assert.equal(await countWaiting(), 301)
    await announce('agent.disconnected', floodingUser, connectionIds.slice(-2))
    assert.equal(await countWaiting(), 302)
  })

  test('two nodes that deliver at once send each event once, and each subject in its order', async t => {
    const { services, endpoint, announce, openAnotherNode, clock } = await openWebhooks(engine, t)
    await subscribe(services, endpoint.url)
    const otherNode = await openAnotherNode()
    const subjects = Array.from({ length: 12 }, () => newId(clock.now()))
    for (const subject of subjects) await announce(subject, [1, 2, 3])
    const workers = [deliveryOf(services, { nodeId: 'a' }), deliveryOf(otherNode, { nodeId: 'b' })]
    await Promise.all(workers.map(each => each.drain()))
    assert.equal(endpoint.received.length, 36)
    for (const subject of subjects) {
      const eventsOfSubject = endpoint.received.filter(({ body }) => body.subject.id === subject)
      assert.deepEqual(
        eventsOfSubject.map(({ body }) => body.sequence),
        [1, 2, 3],
      )
    }
  })

  test('events that a dead node had leased are sent by another, at once or when the lease ends', async t => {
    const { services, endpoint, announce, delivery, clock, store } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url)
    const lease = (nodeId: string) =>
      store.webhookDeliveries.lease(
        clock.now(),
        clock.now() + LEASE,
        [{ webhookId: id, capacity: 1 }],
        nodeId,
      )
    await announce(newId(clock.now()), [1])
    const [held] = await lease('dead')
    assert.ok(held)
    await delivery.drain()
    assert.equal(endpoint.received.length, 0)
    assert.equal(await store.webhookDeliveries.releaseAbandoned(clock.now()), 1)
    await delivery.drain()
    assert.equal(endpoint.received.length, 1)
    assert.equal(await store.webhookDeliveries.advance(held, null, clock.now() + LEASE), 'lost')

    await announce(newId(clock.now()), [1])
    assert.ok((await lease('dead'))[0])
    clock.advance(LEASE - 1)
    await delivery.drain()
    assert.equal(endpoint.received.length, 1)
    clock.advance(1)
    await delivery.drain()
    assert.equal(endpoint.received.length, 2)
  })

  test('an endpoint that does not answer occupies a bounded number of calls, and holds up no other', async t => {
    const { services, endpoint, announce, clock } = await openWebhooks(engine, t)
    await subscribe(services, endpoint.url)
    const silentWebhook = await subscribe(services, `${endpoint.url}-silent`)
    for (let n = 0; n < CONCURRENT_CALLS + 2; n++) await announce(newId(clock.now()), [n])
    const pendingAnswers: (() => void)[] = []
    const answeredBodies: string[] = []
    const delivery = deliveryOf(services, {
      call: (url, request) =>
        new Promise(resolve => {
          const answer = () => resolve({ status: 200, headers: {}, text: '' })
          if (url.endsWith('-silent')) return pendingAnswers.push(answer)
          answeredBodies.push(request!.body!)
          answer()
        }),
    })
    const draining = delivery.drain()
    await until('all events of the other endpoint', () => answeredBodies.length === CONCURRENT_CALLS + 2)
    await until(
      'all concurrent calls of the silent endpoint',
      () => pendingAnswers.length >= CONCURRENT_CALLS,
    )
    assert.equal(pendingAnswers.length, CONCURRENT_CALLS)
    for (let released = 0; released < CONCURRENT_CALLS + 2; released++) {
      await until('the next call', () => pendingAnswers.length > released)
      pendingAnswers[released]!()
    }
    await draining
    assert.equal((await (await services.webhooks()).find(silentWebhook.id)).waiting, 0)
  })

  test('a body is signed with all secrets of its endpoint, until the old one is removed', async t => {
    const { services, endpoint, announce, delivery, webhooks, clock, store } = await openWebhooks(engine, t)
    const { id, secret } = await subscribe(services, endpoint.url)
    const [first] = (await webhooks.find(id)).secrets
    const secondSecret = await webhooks.addSecret(id, ACTED_BY)
    assert.match(secondSecret.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    const send = async () => {
      await announce(newId(clock.now()), [1])
      await delivery.drain()
      return endpoint.received.at(-1)!
    }
    const eventWithBothSecrets = await send()
    assert.deepEqual(
      [isSignedBy(eventWithBothSecrets, secret), isSignedBy(eventWithBothSecrets, secondSecret.secret)],
      [true, true],
    )
    await webhooks.removeSecret(id, first!.id, ACTED_BY)
    const eventWithSecondSecret = await send()
    assert.deepEqual(
      [isSignedBy(eventWithSecondSecret, secret), isSignedBy(eventWithSecondSecret, secondSecret.secret)],
      [false, true],
    )
    assert.equal(await refusedWith(webhooks.removeSecret(id, secondSecret.id, ACTED_BY)), 'invalid_request')
    assert.equal(await refusedWith(webhooks.removeSecret(id, first!.id, ACTED_BY)), 'not_found')
    for (let n = 1; n < MAX_SECRETS; n++) await webhooks.addSecret(id, ACTED_BY)
    assert.equal(await refusedWith(webhooks.addSecret(id, ACTED_BY)), 'invalid_request')
    for (const { sealedSecret } of await store.webhooks.secrets([id]))
      assert.ok(!sealedSecret.includes(secondSecret.secret))
  })

  test('while no endpoint subscribes, acts read the endpoints once in two seconds at most, and write nothing', async t => {
    const { services, storage, endpoint, users, signIn } = await openWebhooks(engine, t)
    let [now, statements] = [0, 0]
    const countingDb = createDb(storage.engine, storage.engine.connection).withPlugin({
      transformQuery({ node }) {
        statements++
        return node
      },
      transformResult: async ({ result }) => result,
    })
    const queue = createWebhookQueue(storage.events, 1000, () => now)
    const { user } = await signIn('ada@example.com')
    const event = { type: 'user.updated', subject: { type: 'user', id: user.id }, at: 0, data: {} } as const
    const add = async () => [await queue.add(countingDb, [event]), statements]
    assert.deepEqual(await add(), [false, 1])
    now = SUBSCRIPTIONS_CACHED_FOR_MS - 1
    assert.deepEqual(await add(), [false, 1])
    assert.deepEqual([await queue.add(countingDb, []), statements], [false, 1])
    now = SUBSCRIPTIONS_CACHED_FOR_MS
    assert.deepEqual(await add(), [false, 2])
    const { id } = await subscribe(services, endpoint.url, ['session.created'])
    await until('the event of the new endpoint', async () => (await add())[1] === 3)
    assert.deepEqual(await add(), [false, 3], 'the endpoint does not subscribe to this event')
    await (await services.webhooks()).change(id, { events: [] }, ACTED_BY)
    await until('the event of the change', async () => (await add())[0])
    await users.rename(user.id, 'Ada')
  })

  test('an endpoint that another node created receives the next act of every node', async t => {
    const { services, endpoint, delivery, openAnotherNode, users, signIn } = await openWebhooks(engine, t)
    const { user } = await signIn('ada@example.com')
    const otherNode = await openAnotherNode()
    await users.rename(user.id, 'before')
    const changeReceived = Promise.withResolvers<void>()
    services.storage.events.subscribe(({ type }) => type === 'webhooks.changed' && changeReceived.resolve())
    await subscribe(otherNode, endpoint.url, ['user.updated'])
    // On SQLite nodes exchange no events: there the other node stands for a command in a process of its own.
    if (engine === 'postgres') await changeReceived.promise
    await until('the event', async () => {
      await users.rename(user.id, 'after')
      await delivery.drain()
      return endpoint.received.length > 0
    })
    assert.deepEqual(typesOf(endpoint), ['user.updated'])
  })

  test('a test event is sent at once, also to a disabled endpoint, and its answer is logged and cut', async t => {
    const { services, endpoint, webhooks, delivery } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url, ['user.created'])
    endpoint.answer = () => ({ status: 202, text: `\u0000thanks ${'é'.repeat(2000)}` })
    const testEvent = await webhooks.test(id, ACTED_BY)
    assert.deepEqual(
      [testEvent.state, testEvent.type, testEvent.sequence, testEvent.lastAttempt!.status],
      ['delivered', 'webhook.test', 1, 202],
    )
    assert.match(testEvent.lastAttempt!.answer!, /^thanks é+$/)
    assert.ok(Buffer.byteLength(testEvent.lastAttempt!.answer!) <= 1024)
    await webhooks.change(id, { enabled: false }, ACTED_BY)
    endpoint.answer = () => ({ status: 302, headers: { location: `${endpoint.url}/elsewhere` } })
    const failedTest = await webhooks.test(id, ACTED_BY)
    assert.deepEqual(
      [failedTest.state, failedTest.sequence, failedTest.lastAttempt!.error],
      ['failed', 2, 'status 302'],
    )
    await delivery.drain()
    assert.equal(endpoint.received.length, 2)
    assert.equal(await refusedWith(webhooks.test(newId(0), ACTED_BY)), 'not_found')
  })

  test('beyond the maximum number of settled events the oldest agent events are pruned first, and other kinds stay', async t => {
    const { services, endpoint, announce, delivery, clock, webhooks, store } = await openWebhooks(engine, t)
    const { id } = await subscribe(services, endpoint.url)
    await announce(newId(clock.now()), [1, 2])
    const agents = Array.from({ length: 4 }, () => newId(clock.now()))
    for (const agent of agents) {
      clock.advance(1)
      await announce(agent, [1], 'agent.connected')
      clock.advance(1)
      await announce(agent, [2], 'agent.disconnected')
    }
    await delivery.drain()
    clock.advance(5 * MINUTE)
    const prune = (most: number) => store.webhookDeliveries.pruneSurplus(most, clock.now())
    const deliveredTypes = async () =>
      (await webhooks.deliveries(id, 'delivered', PAGE)).rows.map(({ type }) => type)
    assert.equal(await prune(10), false)
    assert.equal((await deliveredTypes()).length, 10)
    assert.equal(await prune(3), false)
    assert.deepEqual(await deliveredTypes(), [
      'agent.disconnected',
      'agent.connected',
      'agent.disconnected',
      'user.updated',
      'user.updated',
    ])
    // The counter of a connection's events is pruned with its last event, so its next event has the number 1 again.
    for (const agent of [agents[0]!, agents[3]!]) await announce(agent, [3], 'agent.connected')
    await delivery.drain()
    assert.deepEqual(
      endpoint.received
        .slice(10)
        .map(({ body }) => body.sequence)
        .toSorted(),
      [1, 3],
    )
  })

  test('a removed endpoint gets no more events, and its rows are pruned', async t => {
    const { services, endpoint, webhooks, announce, delivery, clock, store, signIn } = await openWebhooks(
      engine,
      t,
    )
    const { id } = await subscribe(services, endpoint.url)
    await announce(newId(clock.now()), [1, 2])
    await webhooks.remove(id, ACTED_BY)
    await signIn('ada@example.com')
    await delivery.drain()
    assert.deepEqual(endpoint.received, [])
    assert.equal(await refusedWith(webhooks.find(id)), 'not_found')
    assert.equal(await refusedWith(webhooks.deliveries(id, null, PAGE)), 'not_found')
    const prune = () => store.webhookDeliveries.prune(clock.now(), clock.now(), 100)
    assert.equal(await prune(), 3, 'two events, one numbering')
    assert.equal(await prune(), 1, 'the endpoint')
    assert.equal(await prune(), 0)
  })

  test('deliveries are kept for seven days, and the numbering of subjects that may have further events permanently', async t => {
    const { services, endpoint, announce, delivery, clock, store } = await openWebhooks(engine, t)
    await subscribe(services, endpoint.url)
    const [liveSubject, deletedSubject] = [newId(clock.now()), newId(clock.now())]
    await announce(liveSubject, [1])
    await announce(deletedSubject, [1], 'user.deleted')
    await delivery.drain()
    const prune = () => store.webhookDeliveries.prune(clock.now() - 7 * DAY, clock.now(), 100)
    clock.advance(7 * DAY)
    assert.equal(await prune(), 0)
    clock.advance(1)
    assert.equal(await prune(), 3, 'two deliveries, one numbering')
    await announce(liveSubject, [2])
    await announce(deletedSubject, [2])
    await delivery.drain()
    const numberOf = (id: string) =>
      endpoint.received.slice(2).find(({ body }) => body.subject.id === id)!.body.sequence
    assert.deepEqual([numberOf(liveSubject), numberOf(deletedSubject)], [2, 1])
  })

  test('endpoints that cannot be called, and those beyond the maximum number, are refused', async t => {
    const { services, webhooks } = await openWebhooks(engine, t)
    const refusedUrls = [
      'ftp://hooks.example.com/',
      'not a url',
      'https://user:secret@hooks.example.com/',
      'https://hooks.example.com/#x',
      'https://10.0.0.1/',
      'https://[::ffff:10.0.0.1]/',
      'https://2130706434/',
      'http://8.8.8.8/',
    ]
    const strictWebhooks = await (await openServices(engine, t)).webhooks()
    for (const url of [...refusedUrls, 'http://hooks.example.com/', 'https://127.0.0.1/'])
      assert.equal(
        await refusedWith(strictWebhooks.create({ url, events: [] }, ACTED_BY)),
        'invalid_request',
        url,
      )
    assert.equal(
      await refusedWith(strictWebhooks.create({ url: 'https://8.8.8.8/', events: [] }, ACTED_BY)),
      'none',
    )
    const newWebhook = await webhooks.create({ url: 'http://127.0.0.1:9/', events: [] }, ACTED_BY)
    assert.equal(
      await refusedWith(webhooks.change(newWebhook.webhook.id, { url: 'https://10.0.0.1/' }, ACTED_BY)),
      'invalid_request',
    )
    for (let n = 1; n < MAX_WEBHOOKS; n++) await subscribe(services, 'https://hooks.example.com/')
    assert.equal(await refusedWith(subscribe(services, 'https://hooks.example.com/')), 'invalid_request')
  })

  test('a charge that takes a balance below the threshold is announced once, until it was above again', async t => {
    const { services, endpoint, delivery, signIn, credits, apps, clock } = await openWebhooks(engine, t)
    await subscribe(services, endpoint.url, ['balance.low', 'charge.created'])
    const { user } = await signIn('ada@example.com')
    const hub = await apps.find('hub')
    const charges = createCharges(services)
    let chargeCount = 0
    const charge = (amount: number) =>
      charges.charge(hub, { userId: user.id, amount, description: 'x' }, `key-of-the-charge-${chargeCount++}`)
    await charge(1_500_000)
    await charge(1)
    await charge(1)
    await credits.grant(
      { userId: user.id, amount: 1_000_000, description: 'x' },
      'key-of-the-credit-0',
      ACTED_BY,
    )
    await charge(1_000_000)
    clock.advance(SECOND)
    await delivery.drain()
    const receivedEvents = endpoint.received.map(({ body }) => [
      body.sequence,
      body.type,
      body.data.balance ?? body.data.balance_after,
    ])
    assert.deepEqual(receivedEvents, [
      [1, 'charge.created', '0.50'],
      [2, 'charge.created', '0.499999'],
      [3, 'balance.low', '0.499999'],
      [4, 'charge.created', '0.499998'],
      [5, 'charge.created', '0.499998'],
      [6, 'balance.low', '0.499998'],
    ])
    assert.deepEqual(endpoint.received[2]!.body.data, {
      user_id: user.id,
      balance: '0.499999',
      mark: '0.50',
      currency: 'USD',
    })
  })
})
