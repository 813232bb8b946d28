import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../src/clock.ts'
import { AgentConnection } from '../../src/hub/agent-connection.ts'
import { MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { createPresence } from '../../src/hub/presence.ts'
import {
  type HubPresence,
  NODE_HEARTBEAT_MS,
  NODE_TIMEOUT_MS,
  type PresenceRow,
} from '../../src/hub/presence-store.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newId } from '../../src/ids.ts'
import { openTestStorage } from '../support/engines.ts'
import { caller } from '../support/services.ts'

async function openPresence(t: TestContext, overrides: (store: HubPresence) => Partial<HubPresence>) {
  const { storage, clock, log } = await openTestStorage('sqlite', t)
  const store = recordedPresence({ storage, clock })
  const nodeId = newId(clock.now())
  const registry = new Registry()
  const presence = createPresence({
    presence: { ...store, ...overrides(store) },
    events: {},
    clock,
    log,
    registry,
    nodeId,
    version: '1',
  })
  return { presence, store, clock, registry }
}

/** A connection without a socket. */
function aConnection(clock: Clock): AgentConnection {
  const now = clock.now()
  const claims = { agentId: 'user', keyId: 'key', scopes: null, expiresAt: now }
  const host = { deregister() {}, hold() {}, logClose() {} }
  const log = new MessageLog('user', new MessageBudget())
  return new AgentConnection(newId(now), null, claims, caller(), now, host, log)
}

test('a node that announces itself while the list of nodes is being read is kept', async t => {
  const nodesWereRead = Promise.withResolvers<void>()
  const storeReleased = Promise.withResolvers<void>()
  const { presence, clock } = await openPresence(t, store => ({
    // Delays the result until the other node has announced itself.
    async nodes(since) {
      const rows = await store.nodes(since)
      nodesWereRead.resolve()
      await storeReleased.promise
      return rows
    },
  }))
  const newNodeId = newId(clock.now())

  const heartbeat = presence.heartbeat()
  await nodesWereRead.promise
  presence.markAlive(newNodeId)
  storeReleased.resolve()
  await heartbeat
  assert.deepEqual(presence.otherNodes(), [newNodeId])

  await presence.heartbeat()
  assert.deepEqual(presence.otherNodes(), [], 'a node without a row is dropped by the next heartbeat')
})

test('a node that stops during its heartbeat is not registered again', async t => {
  const storeReleased = Promise.withResolvers<void>()
  const { presence, store } = await openPresence(t, store => ({
    async heartbeat(node) {
      await storeReleased.promise
      await store.heartbeat(node)
    },
  }))
  const heartbeat = presence.heartbeat()
  const deregistration = presence.deregister()
  storeReleased.resolve()
  await Promise.all([heartbeat, deregistration])
  assert.deepEqual(await store.nodes(0), [])
  await presence.heartbeat()
  assert.deepEqual(await store.nodes(0), [], 'nor by a later one')
})

test('the list has the newest connections first, and of the same instant those with the greatest id', async t => {
  const row = (id: string, connectedAt: number): PresenceRow => ({
    ...{ connectionId: id, nodeId: 'other', userId: 'user', keyId: 'key', keyName: null, connectedAt },
    ...{ address: '::1', client: null },
  })
  const { presence } = await openPresence(t, () => ({
    listOf: async () => [row('b', 1), row('a', 2), row('c', 1), row('d', 3)],
  }))
  const listedIds = (await presence.list('user')).map(({ connectionId }) => connectionId)
  assert.deepEqual(listedIds, ['d', 'a', 'c', 'b'])
})

test('changes are written together, once, and nothing is written without one', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const batches: [added: string[], removed: string[]][] = []
  const { presence, clock } = await openPresence(t, () => ({
    async record(_nodeId, added, removed) {
      batches.push([added.map(({ connectionId }) => connectionId), [...removed]])
    },
  }))
  const [first, second, third] = [aConnection(clock), aConnection(clock), aConnection(clock)]
  for (const connection of [first, second, third]) presence.add(connection)
  presence.remove(second)
  const passBatches = async () => {
    for (let batch = 0; batch < 5; batch++) {
      t.mock.timers.tick(200)
      await setImmediate()
    }
  }
  await passBatches()
  assert.deepEqual(batches, [[[first.id, third.id], [second.id]]])
  presence.remove(first)
  await passBatches()
  assert.deepEqual(batches.slice(1), [[[], [first.id]]])
})

test('a change during a write is written afterwards', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const batches: [added: string[], removed: string[]][] = []
  const firstWrite = Promise.withResolvers<void>()
  const { presence, clock } = await openPresence(t, () => ({
    async record(_nodeId, added, removed) {
      batches.push([added.map(({ connectionId }) => connectionId), [...removed]])
      await firstWrite.promise
    },
  }))
  const [first, second] = [aConnection(clock), aConnection(clock)]
  presence.add(first)
  t.mock.timers.tick(200)
  presence.add(second)
  firstWrite.resolve()
  await setImmediate()
  t.mock.timers.tick(200)
  await setImmediate()
  presence.remove(second)
  t.mock.timers.tick(200)
  assert.deepEqual(batches, [
    [[first.id], []],
    [[second.id], []],
    [[], [second.id]],
  ])
})

test('what could not be written is written after a heartbeat, unless it has changed meanwhile', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const batches: [added: string[], removed: string[]][] = []
  let isFailing = true
  const { presence, clock } = await openPresence(t, () => ({
    async record(_nodeId, added, removed) {
      batches.push([added.map(({ connectionId }) => connectionId), [...removed]])
      if (isFailing) throw new Error('no connection')
    },
  }))
  const passTime = async (ms: number) => {
    t.mock.timers.tick(ms)
    for (let turn = 0; turn < 5; turn++) await setImmediate()
  }
  const [first, second] = [aConnection(clock), aConnection(clock)]
  for (const connection of [first, second]) presence.add(connection)
  await passTime(200)
  presence.remove(second)
  await passTime(NODE_HEARTBEAT_MS)
  isFailing = false
  await passTime(NODE_HEARTBEAT_MS)
  assert.deepEqual(batches, [
    [[first.id, second.id], []],
    [[first.id], [second.id]],
    [[first.id], [second.id]],
  ])
  isFailing = true
  presence.remove(first)
  await passTime(200)
  isFailing = false
  await passTime(NODE_HEARTBEAT_MS)
  await passTime(NODE_HEARTBEAT_MS)
  assert.deepEqual(batches.slice(3), [
    [[], [first.id]],
    [[], [first.id]],
  ])
})

test('a node that was considered dead records its open connections again, and says so', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const rowsWritten = Promise.withResolvers<readonly PresenceRow[]>()
  const { presence, clock, registry } = await openPresence(t, () => ({
    record: async (_nodeId, added) => rowsWritten.resolve(added),
  }))
  const [open, pending] = [aConnection(clock), aConnection(clock)]
  for (const connection of [open, pending]) registry.add(connection)
  open.state = 'open'
  let lapses = 0
  presence.onLapse(() => lapses++)
  await presence.heartbeat()
  clock.advance(NODE_TIMEOUT_MS - 1)
  await presence.heartbeat()
  assert.equal(lapses, 0)
  clock.advance(NODE_TIMEOUT_MS)
  await presence.heartbeat()
  assert.equal(lapses, 1)
  t.mock.timers.tick(200)
  const recordedRows = await rowsWritten.promise
  assert.deepEqual(
    recordedRows.map(({ connectionId }) => connectionId),
    [open.id],
  )
})
