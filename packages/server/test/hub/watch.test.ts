import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import type { Event, RelayNotice } from '../../src/events.ts'
import type { HubDeps } from '../../src/hub/hub.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { LINGER_MS, MAX_WATCHERS, presenceFrames } from '../../src/hub/watches.ts'
import { newId } from '../../src/ids.ts'
import { createStorage } from '../../src/storage/database.ts'
import { postgresMissing } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { redisMissing, startRedis } from '../support/redis.ts'
import { caller, openServices, type Services } from '../support/services.ts'
import { Client, connect, makeKey, open, openHub, tokenOf } from './fixture.ts'
import { openAmongPeers } from './support/peers.ts'

const watch = (client: Client) => {
  client.send({ type: 'watch', id: 'w' })
  return client.next('presence')
}
const idsOf = (connections: { connection_id: string }[]) => connections.map(each => each.connection_id).sort()

describe('watch', () => {
  test('gives all connections of the owner as GET /v1/agents does, and then each change with its reason', async t => {
    const { services, url, key, userId, hub } = await open('sqlite', t)
    const namedKey = await makeKey(services, userId, { name: 'pump 4' })
    const stranger = await services.signIn('eve@example.com')
    await connect(services, url, await makeKey(services, stranger.user.id))
    const namedAgent = await connect(services, url, namedKey)
    const watcher = await connect(services, url, key)
    const { connections, more } = await watch(watcher)
    assert.equal(more, undefined)
    assert.deepEqual(idsOf(connections), [namedAgent.id, watcher.id].sort())
    assert.deepEqual(
      connections.find(each => each.connection_id === namedAgent.id),
      {
        connection_id: namedAgent.id,
        key_id: namedKey.id,
        key_name: 'pump 4',
        connected_at: new Date(services.clock.now()).toISOString(),
        address: '127.0.0.1',
        client: 'test',
      },
    )

    const reasonAfter = async (client: Client & { id: string }, end: () => unknown) => {
      assert.equal((await watcher.next('joined')).connection.connection_id, client.id)
      await end()
      const { connection_id, reason } = await watcher.next('left')
      assert.equal(connection_id, client.id)
      return reason
    }
    const connectNamed = () => connect(services, url, namedKey)
    const [a, b, c, d] = [
      await connectNamed(),
      await connectNamed(),
      await connectNamed(),
      await connectNamed(),
    ]
    assert.equal(await reasonAfter(a, () => a.socket.close(1000)), 'closed')
    assert.equal(await reasonAfter(b, () => b.socket.terminate()), 'away')
    assert.equal(await reasonAfter(c, () => hub.disconnect(userId, c.id)), 'going_away')
    // The frame for d, which connected with the key of `namedAgent`.
    await watcher.next('joined')
    const violation = await connectNamed()
    assert.equal(await reasonAfter(violation, () => violation.socket.send('{}', { mask: false })), 'closed')
    await services.apiKeys.revoke(userId, namedKey.id, caller())
    const leftFrames = [await watcher.next('left'), await watcher.next('left')]
    assert.deepEqual(leftFrames.map(each => each.connection_id).sort(), [d.id, namedAgent.id].sort())
    assert.deepEqual(new Set(leftFrames.map(each => each.reason)), new Set(['revoked']))

    watcher.send({ type: 'unwatch' })
    await watcher.flush()
    await connect(services, url, key)
    await watcher.flush()
    assert.deepEqual(watcher.received, [])
  })

  test('the list includes connections that are not announced to other watchers yet', async t => {
    const { services, url, key } = await open('sqlite', t)
    const [first, second] = [await connect(services, url, key), await connect(services, url, key)]
    await watch(first)
    const newest = await connect(services, url, key)
    const { connections } = await watch(second)
    assert.deepEqual(idsOf(connections), [first.id, second.id, newest.id].sort())
    assert.equal((await first.next('joined')).connection.connection_id, newest.id)
    await second.flush()
    assert.deepEqual(second.received, [])
  })

  test('does not continue when its connection is resumed, and gives the list anew when it is sent again', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const watcher = new Client(url, token)
    const { connection_id, resume_token } = await watcher.next('ready')
    await watch(watcher)
    const resumedClient = new Client(url, token, { headers: { 'keyway-resume': `${resume_token}.0` } })
    const ready = await resumedClient.next('ready')
    assert.deepEqual([ready.resumed, ready.connection_id], [true, connection_id])
    assert.equal(await watcher.end(), '4409 resumed_elsewhere')

    const silentAgent = await connect(services, url, key)
    await resumedClient.flush()
    assert.deepEqual(resumedClient.received, [])
    const { connections } = await watch(resumedClient)
    assert.deepEqual(idsOf(connections), [connection_id, silentAgent.id].sort())
    const lateAgent = await connect(services, url, key)
    assert.equal((await resumedClient.next('joined')).connection.connection_id, lateAgent.id)
    await resumedClient.flush()
    assert.deepEqual(resumedClient.received, [])
  })

  test('a connection that moves to another key by a renewal joins again, and one that renews its token does not', async t => {
    const { services, url, key, userId } = await open('sqlite', t)
    const otherKey = await makeKey(services, userId, { name: 'other' })
    const watcher = await connect(services, url, key)
    const agent = await connect(services, url, key)
    await watch(watcher)
    for (const next of [key, otherKey]) {
      agent.send({ type: 'token', token: await tokenOf(services, next) })
      await agent.next('token_accepted')
    }
    const { connection } = await watcher.next('joined')
    assert.deepEqual([connection.connection_id, connection.key_name], [agent.id, 'other'])
    await watcher.flush()
    assert.deepEqual(watcher.received, [])
  })

  test('needs agents:read, and ends with a renewal by a token without it', async t => {
    const { services, url, userId } = await open('sqlite', t)
    const readerKey = await makeKey(services, userId, { scopes: ['agent:connect', 'agents:read'] })
    const senderKey = await makeKey(services, userId, { scopes: ['agent:connect', 'agents:send'] })
    const refusedClient = await connect(services, url, senderKey)
    refusedClient.send({ type: 'watch', id: 'mine' })
    const { code, id } = await refusedClient.next('error')
    assert.deepEqual([code, id], ['insufficient_scope', 'mine'])

    const watcher = await connect(services, url, readerKey)
    await watch(watcher)
    const joiningAgent = await connect(services, url, readerKey)
    assert.equal((await watcher.next('joined')).connection.connection_id, joiningAgent.id)
    watcher.send({ type: 'token', token: await tokenOf(services, senderKey) })
    await watcher.next('token_accepted')
    await connect(services, url, readerKey)
    assert.deepEqual((await watcher.next('error')).code, 'insufficient_scope')
    await connect(services, url, readerKey)
    await watcher.flush()
    assert.deepEqual(
      watcher.received.filter(({ type }) => type === 'joined' || type === 'left'),
      [],
    )
  })

  test('is bounded: five lists at once for one connection, and a number of watchers for one owner', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const watcher = await connect(services, url, key)
    for (let n = 0; n < 5; n++) await watch(watcher)
    watcher.send({ type: 'watch', id: 'sixth' })
    assert.equal((await watcher.next('error')).code, 'rate_limited')
    await later(9_999)
    await later(1)
    await watch(watcher)

    const clients = await Promise.all(Array.from({ length: MAX_WATCHERS }, () => connect(services, url, key)))
    for (const client of clients.slice(1)) await watch(client)
    clients[0]!.send({ type: 'watch', id: 'one too many' })
    const { code, detail, id } = await clients[0]!.next('error')
    assert.deepEqual([code, id], ['rate_limited', 'one too many'])
    assert.match(detail, /50 connections/)
    clients[1]!.socket.terminate() // It breaks, so it could be resumed, but it watches no more.
    await clients[2]!.until(() => clients[2]!.received.find(({ type }) => type === 'left'))
    await watch(clients[0]!)
  })

  test('is refused like a message while its owner is over the limit of deliveries, which lists count towards', async t => {
    const { services, url, key, userId, hub, later } = await open('sqlite', t, {
      deliveriesPerUser: 50,
      deliveryMibPerUser: 1,
    })
    const watcher = await connect(services, url, key)
    for (let n = 0; n < 99; n++) await hub.sendTo(userId, 'unknown', n)
    await watch(watcher)
    watcher.send({ type: 'watch', id: 'w' })
    const { code, id } = await watcher.next('error')
    assert.deepEqual([code, id], ['rate_limited', 'w'])
    await later(1000)
    await watch(watcher)
  })

  test('a list is in frames of at most 64 KiB, of which all but the last say that there is more', () => {
    const connection = (n: number) => ({
      connectionId: newId(n),
      keyId: newId(n),
      keyName: 'ü'.repeat(100),
      address: '2001:db8::1',
      client: 'x'.repeat(n % 200),
      connectedAt: 1,
    })
    for (const count of [0, 1, 500, 3000]) {
      const frames = [...presenceFrames(Array.from({ length: count }, (_, n) => connection(n)))]
      assert.ok(frames.every(frame => Buffer.byteLength(frame) <= 65_536))
      const parsedFrames = frames.map(frame => JSON.parse(frame))
      assert.equal(new Set(parsedFrames.flatMap(({ connections }) => idsOf(connections))).size, count)
      assert.deepEqual(
        parsedFrames.map(({ more }) => more),
        parsedFrames.map((_, index) => (index < parsedFrames.length - 1 ? true : undefined)),
      )
    }
  })
})

describe('watch over several nodes', () => {
  test('connections on other nodes join and leave, also those of a node that starts later or dies', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const key = await makeKey(services, user.id)
    const firstNode = await openHub(services, t)
    const secondNode = await openHub(services, t)
    const earlierAgent = await connect(services, secondNode.url, key)
    const watcher = await connect(services, firstNode.url, key)
    assert.deepEqual(idsOf((await watch(watcher)).connections), [earlierAgent.id, watcher.id].sort())
    earlierAgent.socket.close(1000)
    assert.equal((await watcher.next('left')).reason, 'closed')

    const dyingNode = dyingEvents(services)
    const laterNode = await openHub(services, t, { events: dyingNode.events, presence: dyingNode.presence })
    const lastAgent = await connect(services, laterNode.url, key)
    assert.equal((await watcher.next('joined')).connection.connection_id, lastAgent.id)
    dyingNode.die()
    services.clock.advance(10_001)
    await until('the lease ended', async () => {
      await services.storage.store.presence.heartbeat({
        id: secondNode.nodeId,
        startedAt: 1,
        seenAt: services.clock.now(),
        version: 'test',
        sealsEvents: true,
        relayVersion: 1,
      })
      return watcher.received.some(({ type }) => type === 'left')
    })
    const { connection_id, reason } = await watcher.next('left')
    assert.deepEqual([connection_id, reason], [lastAgent.id, 'node_lost'])
  })

  test('agents that watch and stop in a loop get the list of another node once', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const key = await makeKey(services, user.id)
    const { events } = services.storage
    const sentNotices: RelayNotice[] = []
    const publish: HubDeps['events']['publish'] = (event, to) => {
      if (event.type === 'hub.relay' && event.message.kind === 'notice')
        sentNotices.push(event.message.notice)
      return events.publish(event, to)
    }
    const watcherHub = await openHub(services, t, { events: { ...events, publish } })
    const remoteHub = await openHub(services, t, { events: { ...events, publish } })
    const countLists = () =>
      sentNotices.filter(notice => notice.op === 'presence' && notice.after === null).length
    const remoteAgent = await connect(services, remoteHub.url, key)
    for (let n = 0; n < 4; n++) {
      const watcher = await connect(services, watcherHub.url, key)
      for (let times = 0; times < 5; times++) {
        assert.ok(idsOf((await watch(watcher)).connections).includes(remoteAgent.id))
        watcher.send({ type: 'unwatch' })
      }
      await watcher.flush()
    }
    assert.equal(countLists(), 1)

    services.clock.advance(LINGER_MS)
    watcherHub.hub.tick()
    await until('the other node reports no more', () => sentNotices.some(({ op }) => op === 'unwatch'))
    assert.ok(
      idsOf((await watch(await connect(services, watcherHub.url, key))).connections).includes(remoteAgent.id),
    )
    assert.equal(countLists(), 2)
  })

  test('the list waits for the answers of the other nodes, and a node whose notice was lost is queried at once', async t => {
    const { services, url, key, userId, addPeer } = await openAmongPeers(t)
    const peers = [await addPeer({ hasUser: true }), await addPeer({ hasUser: true })]
    const watcher = await connect(services, url, key)
    watcher.send({ type: 'watch', id: 'w' })
    const [first, second, third] = [1, 2, 3].map(connectedAt => ({
      ...{ connectionId: newId(connectedAt), keyId: key.id, keyName: null, address: '::1', client: null },
      connectedAt,
    }))
    const notice = { op: 'presence', userId, part: 0, parts: 1 } as const
    for (const [peer, connection] of [
      [peers[0]!, first!],
      [peers[1]!, second!],
    ] as const) {
      const { notice: query } = await peer.next('notice')
      assert.deepEqual(query, { op: 'watch', userId, have: null })
      await watcher.flush()
      assert.deepEqual(watcher.received, [], 'the list waits')
      const changes = [{ joined: connection }]
      peer.send({ kind: 'notice', notice: { ...notice, after: null, version: 1, changes } })
    }
    const { connections } = await watcher.next('presence')
    assert.deepEqual(
      connections.map(({ connection_id }) => connection_id),
      [watcher.id, second!.connectionId, first!.connectionId],
    )
    const changes = [{ joined: third! }]
    peers[0]!.send({ kind: 'notice', notice: { ...notice, after: 2, version: 3, changes } })
    assert.deepEqual((await peers[0]!.next('notice')).notice, { op: 'watch', userId, have: 1 })
    await watcher.flush()
    assert.deepEqual(watcher.received, [], 'the change is not applied before the one that was lost')
  })

  test('the list waits for all parts of the list of another node', async t => {
    const { services, url, key, userId, addPeer } = await openAmongPeers(t)
    const peer = await addPeer({ hasUser: true })
    const watcher = await connect(services, url, key)
    watcher.send({ type: 'watch', id: 'w' })
    await peer.next('notice')
    const ids = [newId(1), newId(2)]
    for (const [part, connectionId] of ids.entries()) {
      await watcher.flush()
      assert.deepEqual(watcher.received, [], 'the list waits')
      const joined = {
        connectionId,
        keyId: key.id,
        keyName: null,
        address: '::1',
        client: null,
        connectedAt: 1,
      }
      const notice = { op: 'presence' as const, userId, after: null, version: 1, part, parts: ids.length }
      peer.send({ kind: 'notice', notice: { ...notice, changes: [{ joined }] } })
    }
    const { connections } = await watcher.next('presence')
    assert.deepEqual(idsOf(connections), [watcher.id, ...ids].sort())
  })

  test('other nodes are queried again every five seconds', async t => {
    const { services, hub, url, key, userId, addPeer } = await openAmongPeers(t)
    const peer = await addPeer({ hasUser: true })
    const watcher = await connect(services, url, key)
    watcher.send({ type: 'watch', id: 'w' })
    await peer.next('notice')
    const notice = {
      op: 'presence' as const,
      userId,
      after: null,
      version: 1,
      changes: [],
      part: 0,
      parts: 1,
    }
    peer.send({ kind: 'notice', notice })
    await watcher.next('presence')
    for (const ms of [0, 4999]) {
      services.clock.advance(ms)
      hub.tick()
    }
    services.clock.advance(1)
    hub.tick()
    await peer.next('notice')
    await watcher.flush()
    assert.ok(!peer.received.some(({ kind }) => kind === 'notice'), 'one query only')
  })

  test('a node reports no more changes to a node that has stopped watching', async t => {
    const { services, url, key, userId, addPeer } = await openAmongPeers(t)
    const peer = await addPeer()
    const sendQuery = () => peer.send({ kind: 'notice', notice: { op: 'watch', userId, have: null } })
    sendQuery()
    await peer.next('notice')
    peer.send({ kind: 'notice', notice: { op: 'unwatch', userId } })
    const agent = await connect(services, url, key)
    sendQuery()
    const { notice } = await peer.next('notice')
    assert.ok(notice.op === 'presence' && notice.after === null, 'the whole list, not the change')
    assert.deepEqual(
      notice.changes.map(change => 'joined' in change && change.joined.connectionId),
      [agent.id],
    )
  })

  test('a node that stops reports the changes that wait for its next notice', async t => {
    const { services, hub, url, key, userId, addPeer } = await openAmongPeers(t)
    const peer = await addPeer()
    peer.send({ kind: 'notice', notice: { op: 'watch', userId, have: null } })
    const nextChanges = async () => {
      const { notice } = await peer.next('notice')
      return notice.op === 'presence' ? notice.changes : []
    }
    assert.deepEqual(await nextChanges(), [])
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const agent = await connect(services, url, key)
    assert.ok(!peer.received.some(({ kind }) => kind === 'notice'), 'the change waits')
    await hub.stop()
    assert.deepEqual(
      (await nextChanges()).map(change => 'joined' in change && change.joined.connectionId),
      [agent.id],
    )
  })

  test('connections on a node of the previous version are read from the database', async t => {
    const { services, url, key, userId, addPeer } = await openAmongPeers(t)
    const previousNode = await addPeer({ hasUser: true, version: 0 })
    const row = {
      ...{ connectionId: newId(1), nodeId: previousNode.id, userId, keyId: key.id, keyName: null },
      ...{ address: '::1', client: null, connectedAt: 1 },
    }
    await recordedPresence(services).record(previousNode.id, [row], [])
    previousNode.order({ op: 'ping' })
    const watcher = await connect(services, url, key)
    const { connections } = await watch(watcher)
    assert.deepEqual(idsOf(connections), [row.connectionId, watcher.id].sort())
    assert.ok(!previousNode.received.some(({ kind }) => kind === 'notice'), 'it would not understand a query')
  })

  test('a lost notice is found by the next comparison', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const key = await makeKey(services, user.id)
    const lossyCarrier = lossyEvents(services)
    const firstNode = await openHub(services, t)
    const secondNode = await openHub(services, t, { events: lossyCarrier.events })
    const watcher = await connect(services, firstNode.url, key)
    await watch(watcher)
    const listedAgent = await connect(services, secondNode.url, key)
    await watcher.next('joined')
    lossyCarrier.lose = event => event.message.kind === 'notice'
    const missedAgent = await connect(services, secondNode.url, key)
    listedAgent.socket.close()
    await until('both notices were lost', () => lossyCarrier.lost >= 1)
    lossyCarrier.lose = () => false
    services.clock.advance(5_000)
    firstNode.hub.tick()
    assert.equal((await watcher.next('joined')).connection.connection_id, missedAgent.id)
    assert.equal((await watcher.next('left')).connection_id, listedAgent.id)
  })
})

describe('watch over two storages', { skip: postgresMissing() }, () => {
  for (const carrier of ['PostgreSQL', 'Redis'] as const) {
    const skip = carrier === 'Redis' && redisMissing()
    test(`connections of both nodes are reported over ${carrier}`, { skip }, async t => {
      const services = await openServices('postgres', t)
      const { user } = await services.signIn('ada@example.com')
      const key = await makeKey(services, user.id)
      const url = carrier === 'Redis' ? (await startRedis(t)).url : null
      const config = { ...services.opened.config, ...(url && { events: { kind: 'redis' as const, url } }) }
      const storages = [await createStorage(config, services.log), await createStorage(config, services.log)]
      t.after(() => Promise.all(storages.map(storage => storage.close())))
      const firstNode = await openHub(services, t, {}, storages[0])
      const secondNode = await openHub(services, t, {}, storages[1])
      await until('they know each other', () => firstNode.hub.health().otherNodes >= 1)
      const watcher = await connect(services, firstNode.url, key)
      await watch(watcher)
      const agent = await connect(services, secondNode.url, key)
      assert.equal((await watcher.next('joined')).connection.connection_id, agent.id)
      agent.socket.close(1000)
      assert.deepEqual((await watcher.next('left')).reason, 'closed')
    })
  }

  test('connections on a node that sends no notices are read from the database', async t => {
    // Short, since the second node never answers.
    const firstHub = await open('postgres', t, { relayTimeoutMs: 100 })
    const { services, key } = firstHub
    const storage = await createStorage(services.opened.config, services.log)
    t.after(() => storage.close())
    const muteEvents: HubDeps['events'] = {
      subscribe: () => () => {},
      publish: async () => {},
    }
    const secondHub = await openHub(services, t, { events: muteEvents }, storage)
    const untilRecorded = (id: string) =>
      until('it is recorded', async () =>
        (await firstHub.hub.connections(firstHub.userId)).some(row => row.connectionId === id),
      )
    const secondNodeAgent = await connect(services, secondHub.url, key)
    await untilRecorded(secondNodeAgent.id)
    await until('the node is listed', () => firstHub.hub.health().otherNodes === 1)
    const watcher = await connect(services, firstHub.url, key)
    watcher.send({ type: 'watch' })
    await watcher.flush()
    assert.deepEqual(watcher.received, [], 'the list waits for the other node')
    await firstHub.later(1000)
    assert.deepEqual(
      idsOf((await watcher.next('presence')).connections),
      [secondNodeAgent.id, watcher.id].sort(),
    )
    const nextAgent = await connect(services, secondHub.url, key)
    secondNodeAgent.socket.close()
    await untilRecorded(nextAgent.id)
    await until('the other is no longer recorded', async () =>
      (await firstHub.hub.connections(firstHub.userId)).every(row => row.connectionId !== secondNodeAgent.id),
    )
    await firstHub.later(4000)
    assert.equal((await watcher.next('joined')).connection.connection_id, nextAgent.id)
    assert.equal((await watcher.next('left')).connection_id, secondNodeAgent.id)
  })
})

/** Events and presence of a node. After `die` it neither sends nor receives events, and records nothing more. */
function dyingEvents(services: Services) {
  const { publish, subscribe } = services.storage.events
  const presence = recordedPresence(services)
  let isDead = false
  return {
    die() {
      isDead = true
    },
    events: {
      publish: async (event: Event) => (isDead ? undefined : publish(event)),
      subscribe: (listener: (event: Event) => void) => subscribe(event => isDead || listener(event)),
    },
    presence: {
      ...presence,
      heartbeat: async (node: Parameters<typeof presence.heartbeat>[0]) =>
        isDead ? undefined : presence.heartbeat(node),
      record: async (...changes: Parameters<typeof presence.record>) =>
        isDead ? undefined : presence.record(...changes),
    },
  }
}

/** Events of a node, whose relay messages (`hub.relay`) are lost when `lose` returns true; `lost` counts these. */
function lossyEvents(services: Services) {
  const { publish, subscribe } = services.storage.events
  const lossyCarrier = {
    lost: 0,
    lose: (_event: Extract<Event, { type: 'hub.relay' }>): boolean => false,
    events: {
      subscribe,
      async publish(event: Event) {
        if (event.type === 'hub.relay' && lossyCarrier.lose(event)) lossyCarrier.lost++
        else await publish(event)
      },
    },
  }
  return lossyCarrier
}
