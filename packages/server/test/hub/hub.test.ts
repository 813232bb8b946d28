import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Event } from '../../src/events.ts'
import { type AgentConnection, HEARTBEAT_SECONDS, type HubSocket } from '../../src/hub/agent-connection.ts'
import type { HubDeps } from '../../src/hub/hub.ts'
import { NODE_HEARTBEAT_MS } from '../../src/hub/presence-store.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { newId } from '../../src/ids.ts'
import { onceInTime, until } from '../support/patience.ts'
import { caller, openServices } from '../support/services.ts'
import { Client, connect, makeKey, open, openHub, recordedLog, tokenOf } from './fixture.ts'
import { connectionOn, openAmongPeers } from './support/peers.ts'

const TICK_MS = 500

describe('the timers of a hub', () => {
  test('check all connections twice a second, unless the hub is opened without that timer', async t => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.after(() => mock.timers.reset())
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const key = await makeKey(services, user.id)
    const [ticking, still] = [await openHub(services, t, { tickMs: undefined }), await openHub(services, t)]
    const clients = [await connect(services, ticking.url, key), await connect(services, still.url, key)]
    const pings = [0, 0]
    for (const [index, client] of clients.entries()) client.socket.on('ping', () => pings[index]!++)
    const flush = () => Promise.all(clients.map(client => client.flush()))
    services.clock.advance(HEARTBEAT_SECONDS * 1000)
    for (const { hub } of [ticking, still]) await hub.sweep()
    mock.timers.tick(TICK_MS - 1)
    await flush()
    assert.deepEqual(pings, [0, 0])
    mock.timers.tick(1)
    await flush()
    assert.deepEqual(pings, [1, 0])
  })

  test('record a heartbeat every two seconds, and update the watches then', async t => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.after(() => mock.timers.reset())
    const { services, url, key, userId, addPeer, hub } = await openAmongPeers(t)
    const watcher = await connect(services, url, key)
    watcher.send({ type: 'watch' })
    await watcher.next('presence')
    const peer = await addPeer({ isSilent: true })
    await services.store.presence.heartbeat({
      ...{ id: peer.id, startedAt: 1, seenAt: services.clock.now(), version: 'test' },
      ...{ sealsEvents: true, relayVersion: 1 },
    })
    mock.timers.tick(NODE_HEARTBEAT_MS - 1)
    await setImmediate()
    assert.equal(hub.health().otherNodes, 0)
    mock.timers.tick(1)
    await until('the node is known', () => hub.health().otherNodes === 1)
    peer.order({ op: 'enter', userIds: [userId], targets: [] })
    assert.equal((await peer.next('notice')).notice.op, 'watch')
  })

  test('and other waits of a hub do not keep its process alive', async t => {
    const countTimers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
    const before = countTimers()
    const { services, url, key, userId, hub, addPeer } = await openAmongPeers(t, { tickMs: undefined })
    const peer = await addPeer({ hasUser: true })
    const client = await connect(services, url, key)
    void hub.sendTo(userId, 'all', 'not answered')
    await peer.nextOrder('deliver')
    client.send({ type: 'watch' })
    await client.flush()
    assert.ok(countTimers() <= before, 'no timer is active that the process would wait for')
  })
})

describe('a hub that stops', () => {
  test('terminates its connections, and deletes its row and theirs', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const recorded = Promise.withResolvers<void>()
    const presence = recordedPresence(services)
    const { hub, url, nodeId } = await openHub(services, t, {
      presence: {
        ...presence,
        async record(...changes) {
          await presence.record(...changes)
          recorded.resolve()
        },
      },
    })
    const client = await connect(services, url, await makeKey(services, user.id))
    await recorded.promise
    assert.equal((await presence.listOf(user.id, 0)).length, 1)
    assert.deepEqual(
      (await presence.nodes(0)).map(({ id }) => id),
      [nodeId],
    )
    await hub.stop()
    assert.match(await client.end(), /^1006/)
    assert.deepEqual([await presence.nodes(0), await presence.listOf(user.id, 0)], [[], []])
    assert.equal(hub.health().draining, true)
  })

  test('leaves the connections that it requested where they are', async t => {
    const { services, hub, url, userId, key, addPeer } = await openAmongPeers(t)
    const peer = await addPeer()
    const moving = connectionOn(peer, userId, key.id)
    new Client(url, await tokenOf(services, key), { headers: moving.headers(0) })
    const { question } = await peer.next('release')
    await hub.stop()
    assert.equal((await peer.next('withdrawn')).question, question)
  })

  test('refuses agents, and handles no more events', async t => {
    const { services, hub, url, key, userId, addPeer } = await openAmongPeers(t)
    const peer = await addPeer()
    await peer.next('answer') // To its announcement.
    await hub.stop()
    assert.equal((await new Client(url, await tokenOf(services, key)).refusal()).status, 503)
    peer.order({ op: 'disconnect', userId, target: key.id })
    await setImmediate()
    assert.ok(!peer.received.some(({ kind }) => kind === 'answer'))
  })
})

test('the health of a hub has the number of its open connections, and whether it drains', async t => {
  const { services, hub, url, key, later } = await open('sqlite', t)
  const startedAt = services.clock.now()
  const health = { databaseFresh: true, writeError: null, lastPollAt: startedAt, otherNodes: 0 }
  assert.deepEqual(hub.health(), { ...health, connections: 0, draining: false })
  const [kept, broken] = [await connect(services, url, key), await connect(services, url, key)]
  broken.socket.terminate()
  await until('it is held', () => hub.connectionCount === 1)
  await later(10)
  const polled = { ...health, lastPollAt: startedAt + 10 }
  assert.deepEqual(hub.health(), { ...polled, connections: 1, draining: false })
  const draining = hub.drain(60_000)
  assert.deepEqual(hub.health(), { ...polled, connections: 1, draining: true })
  kept.socket.close()
  await draining
})

describe('a message over HTTP', () => {
  test('that is too long for a frame is refused, and one to `all` or to a key is sent', async t => {
    const { services, hub, url, key, userId } = await open('sqlite', t)
    await connect(services, url, key)
    await assert.rejects(hub.sendTo(userId, 'all', 'x'.repeat(65_500)), {
      code: 'payload_too_large',
      message: 'The message is longer than 64 KiB.',
    })
    for (const to of ['all', key.id]) assert.equal((await hub.sendTo(userId, to, 1))?.delivered, 1)
  })

  test('that reaches nobody tells whether the user is connected somewhere, by `all`, connection or key', async t => {
    const [connectionId, keyId] = [newId(1), newId(2)]
    const { services, userId } = await open('sqlite', t)
    const { hub } = await openHub(services, t, {
      presence: {
        ...recordedPresence(services),
        listOf: async () => [
          ...[{ connectionId, keyId, nodeId: newId(3), userId, keyName: null, connectedAt: 1 }].map(row => ({
            ...row,
            ...{ address: '::1', client: null },
          })),
        ],
      },
    })
    for (const to of ['all', connectionId, keyId])
      assert.deepEqual(await hub.sendTo(userId, to, 1), { delivered: 0, held: 0 }, to)
    assert.equal(await hub.sendTo(userId, newId(4), 1), null)
  })
})

test('a disconnect names a connection or a key: `all` closes none', async t => {
  const { services, hub, url, key, userId } = await open('sqlite', t)
  const clients = [await connect(services, url, key), await connect(services, url, key)]
  assert.equal(await hub.disconnect(userId, 'all'), false)
  for (const client of clients) await client.flush()
  assert.equal(await hub.disconnect(userId, key.id), true)
  for (const client of clients) assert.equal(await client.end(), '1001 going_away')
})

test('a node is told of a disconnect whose connection it has, and how many it closed', async t => {
  const { services, hub, url, key, userId, addPeer } = await openAmongPeers(t)
  const peer = await addPeer({ hasUser: true })
  const client = await connect(services, url, key)
  const elsewhere = newId(1)
  const disconnecting = hub.disconnect(userId, elsewhere)
  const { order, question } = await peer.nextOrder('disconnect')
  assert.deepEqual(order, { op: 'disconnect', userId, target: elsewhere })
  peer.send({ kind: 'answer', question, count: 1 })
  assert.equal(await disconnecting, true)
  for (const [target, count] of [
    [elsewhere, 0],
    [client.id, 1],
  ] as const) {
    peer.received.length = 0
    peer.order({ op: 'disconnect', userId, target })
    assert.deepEqual((await peer.next('answer')).count, count)
  }
  assert.equal(await client.end(), '1001 going_away')
})

test('a command `enter` is answered with 1, and a ping with 0', async t => {
  const { addPeer, userId } = await openAmongPeers(t)
  const peer = await addPeer()
  assert.equal((await peer.next('answer')).count, 0, 'the announcement of the peer')
  peer.order({ op: 'enter', userIds: [userId] })
  assert.deepEqual(
    [await peer.next('answer')].map(({ count, held }) => [count, held]),
    [[1, 0]],
  )
})

test('a node that answers that it has no connection of a user loses those that watchers saw on it', async t => {
  const { services, url, key, userId, addPeer } = await openAmongPeers(t)
  const peer = await addPeer({ hasUser: true })
  const watcher = await connect(services, url, key)
  watcher.send({ type: 'watch' })
  await peer.next('notice')
  const joined = { connectionId: newId(1), keyId: key.id, keyName: null, address: '::1', client: null }
  peer.send({
    kind: 'notice',
    notice: {
      ...{ op: 'presence', userId, after: null, version: 1, part: 0, parts: 1 },
      changes: [{ joined: { ...joined, connectedAt: 1 } }],
    },
  })
  await watcher.next('presence')
  watcher.send({ type: 'send', id: '1', to: 'all', data: 'x' })
  const { question } = await peer.nextOrder('deliver')
  peer.send({ kind: 'answer', question, count: 0, absent: true })
  const { connection_id, reason } = await watcher.next('left')
  assert.deepEqual([connection_id, reason], [joined.connectionId, 'lost'])
  watcher.send({ type: 'send', id: '2', to: 'all', data: 'x' })
  await watcher.next('sent')
  await watcher.next('sent')
  assert.ok(!peer.received.some(message => message.kind === 'order' && message.order.op === 'deliver'))
})

test('a node says to which targets it has no connection, if the message has a number', async t => {
  const { services, url, key, userId, addPeer } = await openAmongPeers(t)
  const peer = await addPeer()
  const answerTo = async (to: string, number?: number) => {
    peer.received.length = 0
    peer.order({ op: 'deliver', userId, to, frame: '{"type":"message"}', ...(number && { number }) })
    const { absent, lacks } = await peer.next('answer')
    return { absent, lacks }
  }
  assert.deepEqual(await answerTo('all', 1), { absent: true, lacks: undefined })
  await connect(services, url, key)
  assert.deepEqual(await answerTo(newId(1)), { absent: undefined, lacks: undefined })
  assert.deepEqual(await answerTo(newId(1), 2), { absent: undefined, lacks: true })
  for (const to of ['all', key.id])
    assert.deepEqual(await answerTo(to, 3), { absent: undefined, lacks: undefined })
})

test('after lost events the nodes of watched users are queried', async t => {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  const key = await makeKey(services, user.id)
  const queries: Event[] = []
  const publish: HubDeps['events']['publish'] = (event, to) => {
    if (event.type === 'hub.relay' && event.message.kind === 'notice' && event.message.notice.op === 'watch')
      queries.push(event)
    return services.storage.events.publish(event, to)
  }
  const node = await openHub(services, t, { events: { ...services.storage.events, publish } })
  const otherNode = await openHub(services, t)
  await connect(services, otherNode.url, key)
  const watcher = await connect(services, node.url, key)
  watcher.send({ type: 'watch' })
  await watcher.next('presence')
  const queriesBefore = queries.length
  await services.storage.events.publish({ type: 'events.gap' })
  await until('the other node is queried', () => queries.length === queriesBefore + 1)
})

test('a connection that this side closes is logged once, with its ids and close status', async t => {
  const { log, lines } = recordedLog()
  const { services, hub, url, key, userId } = await open('sqlite', t, { log })
  const client = await connect(services, url, key)
  await hub.disconnect(userId, client.id)
  await hub.disconnect(userId, client.id)
  await client.end()
  const leaving = await connect(services, url, key)
  leaving.socket.close(1000)
  await leaving.end()
  assert.deepEqual(
    lines.filter(({ message }) => message === 'closed a connection'),
    [
      {
        level: 'debug',
        message: 'closed a connection',
        fields: { connectionId: client.id, keyId: key.id, code: 1001, reason: 'going_away' },
      },
    ],
  )
})

test('a connection that was not ready is recorded nowhere, also when it ends', async t => {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  const presence = recordedPresence(services)
  const removed: string[] = []
  const written = Promise.withResolvers<void>()
  const { url } = await openHub(services, t, {
    presence: {
      ...presence,
      async record(_nodeId, _added, removedIds) {
        removed.push(...removedIds)
        if (removedIds.length > 0) written.resolve()
      },
    },
  })
  const [revoked, other] = [await makeKey(services, user.id), await makeKey(services, user.id)]
  const token = await tokenOf(services, revoked)
  await services.apiKeys.revoke(user.id, revoked.id, caller())
  assert.equal(await new Client(url, token).end(), '4410 revoked')
  const client = await connect(services, url, other)
  client.socket.close(1000)
  await written.promise
  assert.deepEqual(removed, [client.id])
})

test('refused sockets are terminated at once while 5000 others are in the closing handshake', async t => {
  const { hub } = await open('sqlite', t)
  let terminated = 0
  const refuseOne = () => {
    const calls: string[] = []
    const socket = {
      on() {},
      close: (code: number) => calls.push(`${code}`),
      terminate: () => terminated++,
      connection: null as AgentConnection | null,
    }
    hub.accept(socket as unknown as HubSocket, null, caller(), null)
    assert.deepEqual(calls, ['4401'])
  }
  for (let n = 0; n < 5000; n++) refuseOne()
  assert.equal(terminated, 0)
  refuseOne()
  assert.equal(terminated, 1)
})

test('a client’s first frames are answered in order, though they come with its handshake', async t => {
  const { services, url, key } = await open('sqlite', t)
  const client = new Client(url, await tokenOf(services, key))
  await onceInTime(client.socket, 'open')
  for (let n = 0; n < 3; n++) client.send({ type: 'ping' })
  for (let n = 0; n < 3; n++) await client.next('pong')
  await client.next('ready')
})
