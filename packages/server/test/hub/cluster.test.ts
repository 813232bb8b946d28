import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Event, Events } from '../../src/events.ts'
import { createStorage } from '../../src/storage/database.ts'
import { postgresMissing } from '../support/engines.ts'
import { onceInTime, until } from '../support/patience.ts'
import { caller, openServices } from '../support/services.ts'
import { connect, makeKey, open, openHub } from './fixture.ts'

describe('two nodes on one PostgreSQL', { skip: postgresMissing() }, () => {
  test('messages, lists, disconnects and revocations work across nodes, and a dead node’s connections are not listed', async t => {
    const firstNode = await open('postgres', t)
    const { services, key, userId } = firstNode
    const storage = await createStorage(services.opened.config, services.log)
    const secondNode = await openHub(services, t, {}, storage)
    const firstAgent = await connect(services, firstNode.url, key)
    const secondAgent = await connect(services, secondNode.url, key)
    const otherKey = await makeKey(services, userId)
    const thirdAgent = await connect(services, secondNode.url, otherKey)

    firstAgent.send({ type: 'send', id: '1', to: 'all', data: 'x'.repeat(30_000) })
    assert.equal((await firstAgent.next('sent')).delivered, 2)
    assert.equal((await secondAgent.next('message')).from, firstAgent.id)
    thirdAgent.send({ type: 'send', id: '2', to: firstAgent.id, data: 2 })
    assert.equal((await thirdAgent.next('sent')).delivered, 1)
    for (let n = 0; n < 50; n++) firstAgent.send({ type: 'send', id: `${n}`, to: secondAgent.id, data: n })
    for (let n = 0; n < 50; n++) assert.equal((await secondAgent.next('message')).data, n)
    assert.equal((await firstNode.hub.sendTo(userId, otherKey.id, 'hello'))?.delivered, 1)

    const listedConnections = await until('three connections are listed', async () => {
      const connections = await firstNode.hub.connections(userId)
      return connections.length >= 3 ? connections : undefined
    })
    assert.deepEqual(
      listedConnections.map(row => row.connectionId).sort(),
      [firstAgent.id, secondAgent.id, thirdAgent.id].sort(),
    )

    assert.equal(await firstNode.hub.disconnect(userId, thirdAgent.id), true)
    assert.equal(await thirdAgent.end(), '1001 going_away')
    await services.apiKeys.revoke(userId, key.id, caller())
    assert.equal(await firstAgent.end(), '4410 revoked')
    assert.equal(await secondAgent.end(), '4410 revoked')

    await connect(services, secondNode.url, otherKey)
    await until('one is listed', async () => (await firstNode.hub.connections(userId)).length === 1)
    await storage.close() // the second node can no longer deregister itself
    services.clock.advance(10_001)
    assert.deepEqual(await firstNode.hub.connections(userId), [])
  })
})

test('a node accepts agents only after the other nodes know it', async t => {
  const services = await openServices('sqlite', t)
  const { publish, subscribe } = services.storage.events
  const delayedSubscribe = (listener: (event: Event) => void) =>
    subscribe(event => setTimeout(listener, 50, event))
  const oldNode = await openHub(services, t, { events: { publish, subscribe: delayedSubscribe } })
  await openHub(services, t)
  assert.equal(oldNode.hub.health().otherNodes, 1)
})

/** Events, of which this node receives none between `hold` and `release`. `published` has those that this node sent. */
function heldEvents(events: Events) {
  const publishedEvents: Event[] = []
  let heldDeliveries: (() => void)[] | null = null
  return {
    published: publishedEvents,
    hold() {
      heldDeliveries = []
    },
    release() {
      for (const deliver of heldDeliveries ?? []) deliver()
      heldDeliveries = null
    },
    publish(event: Event) {
      publishedEvents.push(event)
      return events.publish(event)
    },
    subscribe: (listener: (event: Event) => void) =>
      events.subscribe(event =>
        heldDeliveries ? heldDeliveries.push(() => listener(event)) : listener(event),
      ),
  }
}

describe('an agent on a draining node', () => {
  test('receives its pong after messages that another node accepted before, also when events are delayed', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const key = await makeKey(services, user.id)
    const events = heldEvents(services.storage.events)
    const oldNode = await openHub(services, t, { events })
    const otherNode = await openHub(services, t)
    const receiver = await connect(services, oldNode.url, key)
    const sender = await connect(services, otherNode.url, key)
    const draining = oldNode.hub.drain(4_000)
    await receiver.next('draining')

    events.hold()
    sender.send({ type: 'send', id: '1', to: 'all', data: 'accepted before' })
    await sender.flush()
    for (let pings = 0; pings < 20; pings++) receiver.send({ type: 'ping' })
    receiver.socket.ping()
    // The hub answers this ping of RFC 6455 once it has read the frames before it.
    await onceInTime(receiver.socket, 'pong')
    const countWhileHeld = receiver.received.length
    events.release()
    await receiver.until(() => (receiver.received.length > 20 ? true : undefined))
    const types = receiver.received.map(({ type }) => type)
    assert.equal(countWhileHeld, 0)
    assert.deepEqual(types, ['message', ...Array.from({ length: 20 }, () => 'pong')])
    const requests = events.published.filter(
      event => event.type === 'hub.relay' && JSON.stringify(event).includes('"ping"'),
    )
    assert.ok(requests.length <= 2, `${requests.length} requests for 20 pings`)

    receiver.socket.close()
    await draining
  })
})
