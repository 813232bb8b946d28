import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createPresence } from '../../src/hub/presence.ts'
import type { HubPresence } from '../../src/hub/presence-store.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newId } from '../../src/ids.ts'
import { openTestStorage } from '../support/engines.ts'

async function openPresence(t: TestContext, overrides: (store: HubPresence) => Partial<HubPresence>) {
  const { storage, clock, log } = await openTestStorage('sqlite', t)
  const store = recordedPresence({ storage, clock })
  const nodeId = newId(clock.now())
  const presence = createPresence({
    presence: { ...store, ...overrides(store) },
    events: {},
    clock,
    log,
    registry: new Registry(),
    nodeId,
    version: '1',
  })
  return { presence, store, clock }
}

test('a node that announces itself while the list of nodes is being read is kept', async t => {
  const nodesWereRead = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const { presence, clock } = await openPresence(t, store => ({
    // Delays the result until the other node has announced itself.
    async nodes(since) {
      const rows = await store.nodes(since)
      nodesWereRead.resolve()
      await released.promise
      return rows
    },
  }))
  const newNodeId = newId(clock.now())

  const heartbeat = presence.heartbeat()
  await nodesWereRead.promise
  presence.markAlive(newNodeId)
  released.resolve()
  await heartbeat
  assert.deepEqual(presence.otherNodes(), [newNodeId])

  await presence.heartbeat()
  assert.deepEqual(presence.otherNodes(), [], 'a node without a row is dropped by the next heartbeat')
})

test('a node that stops during its heartbeat is not registered again', async t => {
  const released = Promise.withResolvers<void>()
  const { presence, store } = await openPresence(t, store => ({
    async heartbeat(node) {
      await released.promise
      await store.heartbeat(node)
    },
  }))
  const heartbeat = presence.heartbeat()
  const stopped = presence.deregister()
  released.resolve()
  await Promise.all([heartbeat, stopped])
  assert.deepEqual(await store.nodes(0), [])
})
