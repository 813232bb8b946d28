import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Event } from '../../src/events.ts'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { DELIVERIES_PER_SECOND } from '../../src/hub/rate-limits.ts'
import { newId } from '../../src/ids.ts'
import { patienceMs } from '../support/patience.ts'
import { openServices } from '../support/services.ts'
import { connect, makeKey, openHub } from './fixture.ts'

async function openTwoNodes(t: Parameters<typeof openServices>[1] & object) {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  const firstNode = await openHub(services, t)
  const secondNode = await openHub(services, t)
  const agent = await connect(services, secondNode.url, await makeKey(services, user.id))
  return { services, userId: user.id, firstNode, agent }
}

describe('the relay', () => {
  test('a few owners that flood while a node is dead do not delay another owner’s messages', async t => {
    const { services, userId, agent } = await openTwoNodes(t)
    const now = services.clock.now()
    const deadNode = {
      id: newId(now),
      startedAt: now,
      seenAt: now,
      version: 'test',
      sealsEvents: true,
      relayVersion: 1,
    }
    await services.storage.store.presence.heartbeat(deadNode)
    const thirdNode = await openHub(services, t) // The new node reads the list of nodes, which has the dead one.
    const senders = Array.from({ length: 5 }, () => newId(now))
    const floodSends = senders.flatMap(sender =>
      Array.from({ length: 1100 }, () => thirdNode.hub.sendTo(sender, 'all', 'flood').catch(() => null)),
    )
    assert.equal((await thirdNode.hub.sendTo(userId, agent.id, 'through'))?.delivered, 1)
    await Promise.all(floodSends)
  })

  test('a node that left a request unanswered is not awaited until it sends something', async t => {
    const { services, userId, agent } = await openTwoNodes(t)
    const now = services.clock.now()
    const deadNode = {
      id: newId(now),
      startedAt: now,
      seenAt: now,
      version: 'test',
      sealsEvents: true,
      relayVersion: 1,
    }
    await services.storage.store.presence.heartbeat(deadNode)
    const hub = (await openHub(services, t)).hub // The dead node does not answer the announcement of the new one.
    const startedAt = performance.now()
    for (let n = 0; n < 20; n++) assert.equal((await hub.sendTo(userId, agent.id, n))?.delivered, 1)
    assert.ok(
      performance.now() - startedAt < 10 * patienceMs(RELAY_TIMEOUT_MS),
      'not even half of twenty messages waited',
    )
  })

  test('the delivery limit applies to owners without a connection on the node, and survives a reconnection', async t => {
    const { services, userId, firstNode, agent } = await openTwoNodes(t)
    const sends = Array.from({ length: 2 * DELIVERIES_PER_SECOND + 100 }, () =>
      firstNode.hub.sendTo(userId, newId(1), 'x').then(
        () => 'sent',
        (error: { code: string }) => error.code,
      ),
    )
    const refusedSends = (await Promise.all(sends)).filter(outcome => outcome === 'rate_limited')
    assert.equal(refusedSends.length, 100)
    const key = await makeKey(services, userId)
    const reconnected = await connect(services, firstNode.url, key)
    reconnected.send({ type: 'send', id: '1', to: agent.id, data: 'x' })
    assert.equal((await reconnected.next('error')).code, 'rate_limited')
    services.clock.advance(1000)
    assert.equal((await firstNode.hub.sendTo(userId, agent.id, 'a second later'))?.delivered, 1)
  })

  test('a relay message that does not name this process has no effect, even if validly sealed', async t => {
    const { services, userId, agent } = await openTwoNodes(t)
    const command = { op: 'disconnect', userId, target: agent.id } as const
    const from = newId(1)
    const event: Event = {
      type: 'hub.relay',
      to: [newId(1)], // The id of a node before its restart.
      message: { kind: 'order', from, question: 1, order: command },
    }
    await services.storage.events.publish(event)
    agent.send({ type: 'ping' })
    await agent.next('pong')
    assert.equal(agent.closed, null)
  })
})
