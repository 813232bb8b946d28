import assert from 'node:assert/strict'
import { describe, mock, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Event } from '../../src/events.ts'
import type { HubDeps } from '../../src/hub/hub.ts'
import type { LocationStore } from '../../src/hub/location-store.ts'
import { NODE_HEARTBEAT_MS, NODE_TIMEOUT_MS } from '../../src/hub/presence-store.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { createStorage } from '../../src/storage/database.ts'
import { postgresMissing } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { redisMissing, startRedis } from '../support/redis.ts'
import { openServices, type Services } from '../support/services.ts'
import { Client, connect, makeKey, openHub, type TestHub, type TestKey, tokenOf } from './fixture.ts'
import { openAmongPeers } from './support/peers.ts'

const CARRIERS = ['PostgreSQL', 'Redis'] as const

interface Node extends TestHub {
  /** The events with a command to deliver a message that this node received, even if the command was for others. */
  deliveryCommands: Event[]
}

/** Nodes with a storage each, so that events between them go through PostgreSQL or Redis. */
async function openNodes(t: TestContext, count: number, carrier: (typeof CARRIERS)[number] = 'PostgreSQL') {
  const services = await openServices('postgres', t)
  const { user } = await services.signIn('ada@example.com')
  const key = await makeKey(services, user.id)
  const url = carrier === 'Redis' ? (await startRedis(t)).url : null
  const config = { ...services.opened.config, ...(url && { events: { kind: 'redis' as const, url } }) }
  const nodes: Node[] = []
  for (let n = 0; n < count; n++) {
    const storage = await createStorage(config, services.log)
    t.after(() => storage.close())
    const deliveryCommands: Event[] = []
    storage.events.subscribe(event => {
      if (JSON.stringify(event).includes('"deliver"')) deliveryCommands.push(event)
    })
    nodes.push({ ...(await openHub(services, t, {}, storage)), deliveryCommands })
  }
  await until('they know each other', () => nodes.every(({ hub }) => hub.health().otherNodes === count - 1))
  return { services, key, nodes }
}

const send = (from: Client, to: string, id: string) => {
  from.send({ type: 'send', id, to, data: id })
  return from.next('sent')
}

describe('messages between nodes', { skip: postgresMissing() }, () => {
  for (const carrier of CARRIERS) {
    const skip = carrier === 'Redis' && redisMissing()
    test(`go to the nodes that have connections of their owner, and to no other, over ${carrier}`, {
      skip,
    }, async t => {
      const { services, key, nodes } = await openNodes(t, 4, carrier)
      const [first, second, third, api] = nodes as [Node, Node, Node, Node]
      const sender = await connect(services, first.url, key)
      const receiver = await connect(services, second.url, key)
      const eve = await services.signIn('eve@example.com')
      const strangersKey = await makeKey(services, eve.user.id)
      await connect(services, third.url, strangersKey)
      for (let n = 0; n < 20; n++) {
        assert.equal((await send(sender, 'all', `${n}`)).delivered, 1)
        assert.equal((await receiver.next('message')).data, `${n}`)
      }
      assert.equal((await api.hub.sendTo(key.userId, receiver.id, 'by HTTP'))?.delivered, 1)
      assert.equal((await api.hub.sendTo(eve.user.id, 'all', 'theirs'))?.delivered, 1)
      assert.deepEqual(
        nodes.map(({ deliveryCommands }) => deliveryCommands.length),
        [1, 21, 1, 0],
        'of HTTP, and the sender’s own node only of that',
      )
      const lateAgent = await connect(services, third.url, key)
      assert.equal((await send(sender, 'all', 'to both')).delivered, 2)
      assert.equal((await lateAgent.next('message')).data, 'to both')
      assert.equal((await send(lateAgent, sender.id, 'back')).delivered, 1)
      assert.equal(await api.hub.disconnect(key.userId, lateAgent.id), true)
      assert.equal(await lateAgent.end(), '1001 going_away')
    })
  }

  for (const carrier of CARRIERS) {
    const skip = carrier === 'Redis' && redisMissing()
    test(`to a key or a connection go to the nodes that have it, though the owner is on all of them, over ${carrier}`, {
      skip,
    }, async t => {
      const { services, key, nodes } = await openNodes(t, 4, carrier)
      const otherKey = await makeKey(services, key.userId)
      const [first, second, third] = nodes as [Node, Node, Node, Node]
      const sender = await connect(services, first.url, key)
      const receiver = await connect(services, second.url, otherKey)
      for (const { url } of nodes.slice(2)) await connect(services, url, key)
      const takeCommandCounts = () => nodes.map(({ deliveryCommands }) => deliveryCommands.splice(0).length)
      for (const to of [receiver.id, otherKey.id]) {
        assert.equal((await send(sender, to, 'first')).delivered, 1)
        assert.deepEqual(takeCommandCounts(), [0, 1, 1, 1], 'nobody has told where it is')
        for (let n = 0; n < 20; n++) assert.equal((await send(sender, to, `${n}`)).delivered, 1)
        assert.deepEqual(takeCommandCounts(), [0, 20, 0, 0])
      }
      const lateAgent = await connect(services, third.url, otherKey)
      assert.equal((await send(sender, otherKey.id, 'to both')).delivered, 2)
      assert.equal((await lateAgent.next('message')).data, 'to both')
      lateAgent.send({ type: 'token', token: await tokenOf(services, key) })
      await lateAgent.next('token_accepted')
      assert.equal((await send(sender, otherKey.id, 'it has another key')).delivered, 1)
      lateAgent.send({ type: 'token', token: await tokenOf(services, otherKey) })
      await lateAgent.next('token_accepted')
      assert.equal((await send(sender, otherKey.id, 'and has it again')).delivered, 2)
      takeCommandCounts()
      services.clock.advance(3000)
      await send(sender, receiver.id, 'after a silence')
      assert.deepEqual(takeCommandCounts(), [0, 1, 1, 1], 'what the others told meanwhile may be on its way')
      await send(sender, receiver.id, 'heard again')
      assert.deepEqual(takeCommandCounts(), [0, 1, 0, 0])
    })
  }

  test('reach every connection that was ready before, however many connect at once', async t => {
    const { services, nodes } = await openNodes(t, 3)
    for (let round = 0; round < 8; round++) {
      const { user } = await services.signIn(`owner-${round}@example.com`)
      const key = await makeKey(services, user.id)
      const agents = await Promise.all(nodes.map(({ url }) => connect(services, url, key)))
      // All agents are ready before the first one sends.
      const counts = await Promise.all(agents.map((agent, n) => send(agent, 'all', `${n}`)))
      assert.deepEqual(
        counts.map(({ delivered }) => delivered),
        [2, 2, 2],
        `round ${round}`,
      )
    }
  })

  test('stop going to a node that the owner has left, and find the owner there again', async t => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setInterval'] })
    const { services, key, nodes } = await openNodes(t, 2)
    const [first, second] = nodes as [Node, Node]
    const sender = await connect(services, first.url, key)
    const closedAgent = await connect(services, second.url, key)
    closedAgent.socket.close()
    await until('it is gone', () => second.hub.connectionCount === 0)
    services.clock.advance(5_000)
    const briefAgent = await connect(services, second.url, key)
    assert.equal((await send(sender, 'all', 'it stayed recorded')).delivered, 1)
    briefAgent.socket.close()
    await until('it is gone', () => second.hub.connectionCount === 0)
    const recordedNodes = () => services.storage.store.locations.nodesOf(key.userId)
    await until('the node is no longer recorded', async () => {
      if ((await recordedNodes()).length === 1) return true
      services.clock.advance(500) // In small steps, so that the node can renew its lease.
      mock.timers.tick(NODE_HEARTBEAT_MS)
      return false
    })
    const commandsBefore = second.deliveryCommands.length
    assert.equal((await send(sender, 'all', 'nobody')).delivered, 0)
    assert.equal((await send(sender, 'all', 'nobody again')).delivered, 0)
    assert.equal(
      second.deliveryCommands.length,
      commandsBefore + 1,
      'the first answer says that nobody is there',
    )
    const returnedAgent = await connect(services, second.url, key)
    assert.equal((await send(sender, 'all', 'welcome')).delivered, 1)
    assert.equal((await returnedAgent.next('message')).data, 'welcome')
  })
})

describe('a node', () => {
  test('that cannot record where its agents are still exchanges messages with all nodes', async t => {
    const { services, key, open } = await openInProcess(t)
    const rejectWrite = async () => Promise.reject(new Error('the disk is full'))
    const locations = { ...services.storage.store.locations, enter: rejectWrite }
    const failingNode = await open({ locations })
    const healthyNode = await open({})
    const earlierAgent = await connect(services, healthyNode.url, key)
    const agent = await connect(services, failingNode.url, key)
    assert.equal((await send(agent, 'all', '1')).delivered, 1)
    assert.equal((await send(earlierAgent, 'all', '2')).delivered, 1)
  })

  test('that counted as dead records its users again, also if that fails at first', async t => {
    const { services, url, key, nodeId, beat, recordedNodes, database, writes } = await openRecordingWrites(t)
    await connect(services, url, key)
    await beat()
    // As another node does that takes this one for dead.
    await services.storage.store.locations.leave(nodeId, [key.userId])
    database.beforeWrite = async () => Promise.reject(new Error('the disk is full'))
    await beat(NODE_TIMEOUT_MS - 1)
    assert.deepEqual(writes, ['enter'])
    await beat(NODE_TIMEOUT_MS)
    assert.deepEqual([await recordedNodes(), writes], [[], ['enter', 'enter']])
    database.beforeWrite = async () => {}
    await beat()
    await until('the user is recorded again', async () => (await recordedNodes()).includes(nodeId))
    await beat()
    assert.equal(writes.length, 3)
  })

  test('of the previous version gets all messages, over the channel of all nodes', async t => {
    const { services, key, open } = await openInProcess(t)
    const { presence, locations } = services.storage.store
    const previousNode = await open({
      presence: {
        ...recordedPresence(services),
        heartbeat: node => presence.heartbeat({ ...node, relayVersion: 0 }),
      },
      locations: { ...locations, enter: async () => new Map(), leave: async () => {} },
      events: withoutOwnChannel(services),
    })
    const currentNode = await open({})
    const oldAgent = await connect(services, previousNode.url, key)
    const agent = await connect(services, currentNode.url, key)
    await until('the row of the old node was read', () => currentNode.hub.health().otherNodes === 1)
    assert.equal((await send(agent, 'all', '1')).delivered, 1)
    assert.equal((await oldAgent.next('message')).data, '1')
    assert.equal((await currentNode.hub.sendTo(key.userId, oldAgent.id, 'by HTTP'))?.delivered, 1)
  })
})

/**
 * Opens a hub. The test controls its heartbeats and the other nodes. `writes` lists the hub's writes of its users'
 * locations; each of them waits for `beforeWrite`.
 */
async function openRecordingWrites(t: TestContext) {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setInterval'] })
  const writes: string[] = []
  const database = { beforeWrite: async (_operation: string): Promise<void> => {} }
  let onHeartbeat = () => {}
  const hub = await openAmongPeers(t, services => {
    const { locations, presence } = services.storage.store
    const recording =
      (operation: 'enter' | 'leave'): LocationStore['enter'] & LocationStore['leave'] =>
      async (...change) => {
        writes.push(operation)
        await database.beforeWrite(operation)
        return (await locations[operation](...change)) as never
      }
    return {
      locations: { ...locations, enter: recording('enter'), leave: recording('leave') },
      presence: {
        ...recordedPresence(services),
        async nodes(seenSince) {
          const rows = await presence.nodes(seenSince)
          onHeartbeat()
          return rows
        },
      },
    }
  })
  /** Advances the clock, then has the hub record its heartbeat, update its locations and begin to write them. */
  const beat = async (ms = NODE_HEARTBEAT_MS) => {
    hub.services.clock.advance(ms)
    const { promise, resolve } = Promise.withResolvers<void>()
    onHeartbeat = resolve
    mock.timers.tick(NODE_HEARTBEAT_MS)
    await promise
    for (let turn = 0; turn < 2; turn++) await setImmediate()
  }
  const recordedNodes = () => hub.services.storage.store.locations.nodesOf(hub.userId)
  return { ...hub, writes, database, beat, recordedNodes }
}

describe('the record of the nodes of a user', () => {
  test('has a node until ten seconds after its last connection of the user has closed', async t => {
    const { services, hub, url, key, nodeId, beat, recordedNodes, writes } = await openRecordingWrites(t)
    const client = await connect(services, url, key)
    await beat()
    client.socket.close(1000)
    await until('it is gone', () => hub.connectionCount === 0)
    await beat()
    for (const ms of [5000, 4999]) await beat(ms)
    assert.deepEqual([await recordedNodes(), writes], [[nodeId], ['enter']])
    await beat(1)
    await until('it is no longer recorded', async () => (await recordedNodes()).length === 0)
    await connect(services, url, key)
    await beat()
    for (const ms of [5000, 5000]) await beat(ms)
    assert.deepEqual([await recordedNodes(), writes], [[nodeId], ['enter', 'leave', 'enter']])
  })

  test('gets no node whose last connection of the user was closed before it could be recorded', async t => {
    const { services, hub, url, key, beat, recordedNodes, database, writes } = await openRecordingWrites(t)
    database.beforeWrite = async () => Promise.reject(new Error('the disk is full'))
    const client = await connect(services, url, key)
    client.socket.close(1000)
    await until('it is gone', () => hub.connectionCount === 0)
    await beat()
    await beat(5000)
    database.beforeWrite = async () => {}
    const failedWriteCount = writes.length
    await beat(5000)
    await until('the node was removed', () => writes.length > failedWriteCount)
    await beat()
    assert.deepEqual([writes.slice(failedWriteCount), await recordedNodes()], [['leave'], []])
  })

  test('keeps a node whose record could not be removed only until the database works again', async t => {
    const { services, hub, url, key, beat, recordedNodes, database } = await openRecordingWrites(t)
    const client = await connect(services, url, key)
    client.socket.close(1000)
    await until('it is gone', () => hub.connectionCount === 0)
    await beat()
    database.beforeWrite = async () => Promise.reject(new Error('the disk is full'))
    for (const ms of [5000, 5000]) await beat(ms)
    assert.equal((await recordedNodes()).length, 1)
    database.beforeWrite = async () => {}
    await beat()
    await until('it is no longer recorded', async () => (await recordedNodes()).length === 0)
  })

  test('keeps a node to which the user returned while its removal failed', async t => {
    const { services, hub, url, key, nodeId, beat, recordedNodes, database } = await openRecordingWrites(t)
    const client = await connect(services, url, key)
    client.socket.close(1000)
    await until('it is gone', () => hub.connectionCount === 0)
    await beat()
    await beat(5000)
    const [reached, failure] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    database.beforeWrite = () => {
      database.beforeWrite = async () => {}
      reached.resolve()
      return failure.promise
    }
    await beat(5000)
    await reached.promise
    const returningClient = new Client(url, await tokenOf(services, key))
    await until('it is back', () => hub.connectionCount === 1)
    failure.reject(new Error('the disk is full'))
    await beat()
    await returningClient.next('ready')
    await beat()
    await beat()
    assert.deepEqual(await recordedNodes(), [nodeId])
  })

  test('gets no user of a node that has stopped, though a record was being written', async t => {
    const { services, hub, url, key, database, writes } = await openRecordingWrites(t)
    const eve = await services.signIn('eve@example.com')
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    database.beforeWrite = async () => {
      reached.resolve()
      await released.promise
    }
    new Client(url, await tokenOf(services, key))
    await reached.promise
    new Client(url, await tokenOf(services, await makeKey(services, eve.user.id)))
    await until('both are connected', () => hub.connectionCount === 2)
    await hub.stop()
    released.resolve()
    for (let turn = 0; turn < 3; turn++) {
      await services.storage.store.locations.nodesOf(key.userId)
      await setImmediate()
    }
    assert.deepEqual(writes, ['enter'])
  })
})

describe('another node that has connections of a user', () => {
  /** A node that is recorded for the user, but not alive for now. */
  async function openWithUnstartedNode(t: TestContext) {
    const hub = await openRecordingWrites(t)
    const peer = await hub.addPeer({ hasUser: true, isSilent: true })
    const notices = () => peer.received.filter(({ kind }) => kind === 'order')
    return { ...hub, peer, notices }
  }

  test('is notified of this one once it is alive, and again until it confirms that', async t => {
    const { services, url, key, userId, beat, peer, notices } = await openWithUnstartedNode(t)
    await connect(services, url, key)
    await beat()
    assert.deepEqual(notices(), [], 'it is not alive')
    await peer.start()
    for (const count of [0, 0, 1]) {
      await beat()
      const { order, question } = await peer.nextOrder('enter')
      assert.deepEqual(order.userIds, [userId])
      peer.send({ kind: 'answer', question, count })
      await setImmediate()
    }
    await beat()
    assert.deepEqual(notices(), [])
  })

  test('is not notified if the user has left this one before', async t => {
    const { services, hub, url, key, beat, peer, notices } = await openWithUnstartedNode(t)
    const client = await connect(services, url, key)
    client.socket.close(1000)
    await until('it is gone', () => hub.connectionCount === 0)
    await beat()
    for (const ms of [5000, 5000]) await beat(ms)
    await peer.start()
    await beat()
    assert.deepEqual(notices(), [])
  })
})

async function openInProcess(t: TestContext): Promise<{
  services: Services
  key: TestKey
  open(overrides: Partial<HubDeps>): Promise<TestHub>
}> {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  const key = await makeKey(services, user.id)
  return { services, key, open: overrides => openHub(services, t, overrides) }
}

/** The events of a node that uses only the channel of all nodes: it follows no channel of its own. */
function withoutOwnChannel({ storage: { events } }: Services): HubDeps['events'] {
  return { publish: event => events.publish(event), subscribe: events.subscribe }
}
