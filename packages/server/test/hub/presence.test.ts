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
  type NodeRow,
  type PresenceRow,
} from '../../src/hub/presence-store.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newId } from '../../src/ids.ts'
import { openTestStorage } from '../support/engines.ts'
import { caller } from '../support/services.ts'

async function openPresence(
  t: TestContext,
  overrides: (store: HubPresence) => Partial<HubPresence> = () => ({}),
) {
  const { storage, clock, log } = await openTestStorage('sqlite', t)
  const store = recordedPresence({ storage, clock })
  const nodeId = newId(clock.now())
  const registry = new Registry()
  /** What the presence told the carrier of events about nodes of the previous version. */
  const expectations: boolean[] = []
  const presence = createPresence({
    presence: { ...store, ...overrides(store) },
    events: { expectUnsealed: hasOldNode => void expectations.push(hasOldNode) },
    clock,
    log,
    registry,
    nodeId,
    version: '1',
  })
  /** Records a heartbeat of another node; returns its id. */
  const beatOf = async (id: string, abilities: Partial<NodeRow> = {}) => {
    const node = { id, startedAt: 1, seenAt: clock.now(), version: '1', sealsEvents: true, relayVersion: 1 }
    await store.heartbeat({ ...node, ...abilities })
    return id
  }
  return { presence, store, clock, registry, nodeId, expectations, beatOf }
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

  const pendingHeartbeat = presence.heartbeat()
  await nodesWereRead.promise
  presence.markAlive(newNodeId)
  storeReleased.resolve()
  await pendingHeartbeat
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
  const pendingHeartbeat = presence.heartbeat()
  const pendingDeregistration = presence.deregister()
  storeReleased.resolve()
  await Promise.all([pendingHeartbeat, pendingDeregistration])
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
  const letBatchesPass = async () => {
    for (let batch = 0; batch < 5; batch++) {
      t.mock.timers.tick(200)
      await setImmediate()
    }
  }
  await letBatchesPass()
  assert.deepEqual(batches, [[[first.id, third.id], [second.id]]])
  presence.remove(first)
  await letBatchesPass()
  assert.deepEqual(batches.slice(1), [[[], [first.id]]])
})

test('a change during a write is written afterwards', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const batches: [added: string[], removed: string[]][] = []
  const writeReleased = Promise.withResolvers<void>()
  const { presence, clock } = await openPresence(t, () => ({
    async record(_nodeId, added, removed) {
      batches.push([added.map(({ connectionId }) => connectionId), [...removed]])
      await writeReleased.promise
    },
  }))
  const [first, second] = [aConnection(clock), aConnection(clock)]
  presence.add(first)
  t.mock.timers.tick(200)
  presence.add(second)
  writeReleased.resolve()
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
  let lapseCount = 0
  presence.onLapse(() => lapseCount++)
  await presence.heartbeat()
  clock.advance(NODE_TIMEOUT_MS - 1)
  await presence.heartbeat()
  assert.equal(lapseCount, 0)
  clock.advance(NODE_TIMEOUT_MS)
  await presence.heartbeat()
  assert.equal(lapseCount, 1)
  t.mock.timers.tick(200)
  const recordedRows = await rowsWritten.promise
  assert.deepEqual(
    recordedRows.map(({ connectionId }) => connectionId),
    [open.id],
  )
})

test('other nodes are peers if they seal events, and current ones by the version of their messages or row', async t => {
  const { presence, nodeId, expectations, beatOf } = await openPresence(t)
  const nodes = () => [presence.otherNodes(), presence.peers(), presence.currentPeers()]
  await presence.heartbeat()
  assert.deepEqual([nodes(), expectations], [[[], [], []], [false]])
  const current = await beatOf(newId(1))
  const previous = await beatOf(newId(2), { relayVersion: 0 })
  const unsealed = await beatOf(newId(3), { sealsEvents: false, relayVersion: 0 })
  await presence.heartbeat()
  assert.deepEqual(nodes(), [[current, previous, unsealed], [current, previous], [current]])
  assert.deepEqual(expectations, [false, true])
  const [unknown, newcomer] = [newId(4), newId(5)]
  presence.markAlive(unknown)
  presence.markAlive(newcomer, 1)
  presence.markAlive(newcomer)
  presence.markAlive(nodeId, 1)
  assert.deepEqual(nodes().slice(1), [
    [current, previous, unknown, newcomer],
    [current, newcomer],
  ])
})

test('a node that has left is no peer, though its row and late messages still exist, until a minute later', async t => {
  const { presence, clock, beatOf } = await openPresence(t)
  const leaving = await beatOf(newId(1))
  await presence.heartbeat()
  presence.markLeft(leaving)
  assert.deepEqual([presence.peers(), presence.currentPeers()], [[], []])
  presence.markAlive(leaving, 1)
  await presence.heartbeat()
  assert.deepEqual([presence.otherNodes(), presence.currentPeers()], [[], []])
  clock.advance(60_000)
  await beatOf(leaving)
  await presence.heartbeat()
  assert.deepEqual(presence.peers(), [])
  clock.advance(1)
  await presence.heartbeat()
  assert.deepEqual([presence.peers(), presence.currentPeers()], [[leaving], [leaving]])
})

test('a node is no current peer any more once its heartbeats stop, and one that returns without a version is not again', async t => {
  const { presence, clock, beatOf } = await openPresence(t)
  const other = await beatOf(newId(1))
  await presence.heartbeat()
  assert.deepEqual(presence.currentPeers(), [other])
  clock.advance(NODE_TIMEOUT_MS)
  await presence.heartbeat()
  assert.deepEqual(presence.peers(), [other], 'seen ten seconds ago')
  clock.advance(1)
  await presence.heartbeat()
  assert.deepEqual(presence.peers(), [])
  presence.markAlive(other)
  assert.deepEqual([presence.peers(), presence.currentPeers()], [[other], []])
})

test('a heartbeat records the node with its version and abilities, and an error until the next one succeeds', async t => {
  let failure: Error | null = new Error('the disk is full')
  const { presence, store, clock, nodeId } = await openPresence(t, store => ({
    async heartbeat(node) {
      if (failure) throw failure
      await store.heartbeat(node)
    },
  }))
  const startedAt = clock.now()
  assert.equal(presence.heartbeatError, null)
  await presence.heartbeat()
  assert.equal(presence.heartbeatError, failure)
  failure = null
  clock.advance(500)
  await presence.heartbeat()
  assert.equal(presence.heartbeatError, null)
  const node = { id: nodeId, startedAt, seenAt: clock.now(), version: '1' }
  assert.deepEqual(await store.nodes(0), [{ ...node, sealsEvents: true, relayVersion: 1 }])
})

test('the connections of a user are listed from memory for this node, and from living nodes for others', async t => {
  const { presence, store, clock, registry, nodeId, beatOf } = await openPresence(t)
  await presence.heartbeat()
  const other = await beatOf(newId(2))
  const row = (connectionId: string, nodeOfRow: string): PresenceRow => ({
    ...{ connectionId, nodeId: nodeOfRow, userId: 'user', keyId: 'key', keyName: null, connectedAt: 1 },
    ...{ address: '::1', client: null },
  })
  const [elsewhere, closed] = [newId(3), newId(4)]
  await store.record(other, [row(elsewhere, other)], [])
  await store.record(nodeId, [row(closed, nodeId)], [])
  const connection = aConnection(clock)
  connection.state = 'open'
  registry.add(connection)
  const idsOf = (rows: PresenceRow[]) => rows.map(({ connectionId }) => connectionId)
  assert.deepEqual(idsOf(await presence.list('user')), [connection.id, elsewhere])
  assert.deepEqual(idsOf(await presence.recordedOn([other], 'user')), [elsewhere])
  assert.deepEqual(idsOf(await presence.recordedOn([nodeId], 'user')), [closed])
  clock.advance(NODE_TIMEOUT_MS + 1)
  assert.deepEqual(idsOf(await presence.list('user')), [connection.id])
  assert.deepEqual(await presence.recordedOn([other], 'user'), [])
})

test('a node that deregisters writes nothing more, waits for the write in progress, and never fails', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const write = Promise.withResolvers<void>()
  const calls: string[] = []
  const { presence, clock } = await openPresence(t, () => ({
    async record(_nodeId, added) {
      calls.push(`record ${added.length}`)
      await write.promise
      calls.push('recorded')
    },
    async deregister() {
      calls.push('deregister')
      throw new Error('the database is down')
    },
  }))
  presence.add(aConnection(clock))
  t.mock.timers.tick(200)
  presence.add(aConnection(clock))
  const deregistration = presence.deregister()
  await setImmediate()
  assert.deepEqual(calls, ['record 1'])
  write.resolve()
  await deregistration
  presence.add(aConnection(clock))
  for (let turn = 0; turn < 5; turn++) {
    t.mock.timers.tick(NODE_HEARTBEAT_MS)
    await setImmediate()
  }
  assert.deepEqual(calls, ['record 1', 'recorded', 'deregister'])
})

test('a node that deregisters before its first write does not write at all', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let writes = 0
  const { presence, clock } = await openPresence(t, () => ({ record: async () => void writes++ }))
  presence.add(aConnection(clock))
  await presence.deregister()
  t.mock.timers.tick(1000)
  assert.equal(writes, 0)
})
