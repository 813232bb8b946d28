import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentConnection } from '../../src/hub/agent-connection.ts'
import { MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { Registry } from '../../src/hub/registry.ts'
import { caller } from '../support/services.ts'

function aConnection(id: string, userId: string, keyId: string): AgentConnection {
  const claims = { agentId: userId, keyId, scopes: null, expiresAt: 0 }
  const host = { deregister() {}, hold() {}, logClose() {} }
  const log = new MessageLog(userId, new MessageBudget())
  const connection = new AgentConnection(id, null, claims, caller(), 0, host, log)
  connection.state = 'open'
  return connection
}

const idsOf = (connections: Iterable<AgentConnection>) => [...connections].map(({ id }) => id)

function openRegistry() {
  const registry = new Registry()
  const add = (id: string, userId: string, keyId: string) => {
    const connection = aConnection(id, userId, keyId)
    registry.add(connection)
    return connection
  }
  const hold = (connection: AgentConnection) => {
    connection.state = 'held'
    registry.hold(connection)
  }
  return { registry, add, hold }
}

test('connections are found by id, key and owner until they are removed', () => {
  const { registry, add } = openRegistry()
  const first = add('1', 'ann', 'a')
  const second = add('2', 'ann', 'b')
  add('3', 'eve', 'e')
  second.state = 'pending'
  assert.deepEqual([registry.size, registry.countOf('ann'), registry.countOf('bob')], [3, 2, 0])
  assert.deepEqual([idsOf(registry.ofUser('ann')), idsOf(registry.openOf('ann'))], [['1', '2'], ['1']])
  assert.deepEqual([idsOf(registry.ofKey('b')), registry.keyIds()], [['2'], ['a', 'b', 'e']])
  registry.remove(second)
  assert.deepEqual([registry.hasKey('b'), registry.hasKey('a'), registry.hasUser('ann')], [false, true, true])
  registry.remove(first)
  assert.deepEqual([registry.hasUser('ann'), registry.size, registry.keyIds()], [false, 1, ['e']])
})

test('a failed arrival does not remove another connection that got its id', () => {
  const { registry, add } = openRegistry()
  const failedArrival = add('1', 'ann', 'a')
  const successor = add('1', 'ann', 'a')
  registry.remove(failedArrival)
  assert.equal(registry.byId.get('1'), successor)
  assert.deepEqual(idsOf(registry.ofKey('a')), ['1'])
})

test('a connection that renews with another key is found by both keys, and by none after it was removed', () => {
  const { registry, add, hold } = openRegistry()
  const connection = add('1', 'ann', 'a')
  connection.renewalKeyId = 'b'
  registry.bindKey('b', connection)
  assert.deepEqual([idsOf(registry.ofKey('a')), idsOf(registry.ofKey('b'))], [['1'], ['1']])
  assert.deepEqual(registry.keyIdsOf('ann'), ['a', 'b'])
  assert.ok(registry.hasTarget('ann', 'b'))
  registry.remove(connection)
  assert.deepEqual(registry.keyIds(), [])
  registry.add(connection)
  registry.bindKey('b', connection)
  hold(connection)
  assert.deepEqual(registry.keyIds(), ['a'], 'a renewal ends when its connection breaks')
  registry.remove(connection)
  assert.deepEqual([registry.keyIds(), registry.heldCount], [[], 0])
})

test('broken connections are counted apart, and taken from their owners in turn', () => {
  const { registry, add, hold } = openRegistry()
  for (const id of ['1', '2', '3']) hold(add(id, 'ann', 'a'))
  const last = add('4', 'eve', 'e')
  hold(last)
  add('5', 'eve', 'e')
  assert.deepEqual(
    [registry.size, registry.heldCount, registry.countOf('ann'), registry.countOf('eve')],
    [1, 4, 0, 1],
  )
  assert.deepEqual(idsOf(registry.heldOf('ann')), ['1', '2', '3'])
  assert.deepEqual(idsOf(registry.held(10)), ['1', '4', '2', '3'])
  assert.deepEqual(idsOf(registry.held(3)), ['1', '4', '2'])
  assert.deepEqual(idsOf(registry.held(1)), ['1'])
  assert.deepEqual(idsOf(registry.held(0)), [])
  registry.remove(last)
  assert.deepEqual(
    [registry.heldCount, registry.countOf('eve'), idsOf(registry.held(10))],
    [3, 1, ['1', '2', '3']],
  )
  assert.deepEqual(idsOf(registry.heldOf('eve')), [])
  registry.remove(registry.byId.get('2')!)
  assert.deepEqual([idsOf(registry.heldOf('ann')), registry.countOf('ann')], [['1', '3'], 0])
})

test('a message reaches the open and broken connections of its owner that its target selects, without its sender', () => {
  const { registry, add, hold } = openRegistry()
  add('1', 'ann', 'a')
  hold(add('2', 'ann', 'a'))
  add('3', 'ann', 'b')
  add('4', 'ann', 'b').state = 'pending'
  add('5', 'eve', 'e')
  const targets = (to: string, except: string | null = null) => idsOf(registry.targets('ann', to, except))
  assert.deepEqual(targets('all'), ['1', '2', '3'])
  assert.deepEqual(targets('all', '1'), ['2', '3'])
  assert.deepEqual([targets('a'), targets('a', '2'), targets('b')], [['1', '2'], ['1'], ['3']])
  assert.deepEqual([targets('3'), targets('4'), targets('3', '3')], [['3'], [], []])
  assert.deepEqual([targets('5'), targets('e'), targets('unknown')], [[], [], []])
  assert.deepEqual(
    ['1', '4', 'b', '5', 'e', 'unknown'].map(target => registry.hasTarget('ann', target)),
    [true, true, true, false, false, false],
  )
  const renewingConnection = add('6', 'ann', 'c')
  registry.bindKey('d', renewingConnection)
  assert.deepEqual(targets('d'), [], 'it has the key of its token until the renewal is accepted')
})

test('a connection that breaks while it renews with a token of its own key is still found by that key', () => {
  const { registry, add, hold } = openRegistry()
  const connection = add('1', 'ann', 'a')
  connection.renewalKeyId = 'a'
  hold(connection)
  assert.deepEqual(idsOf(registry.ofKey('a')), ['1'])
})

test('a connection that takes over another one is found by the id of that one only', () => {
  const { registry, add } = openRegistry()
  const [old, successor] = [add('1', 'ann', 'a'), add('2', 'ann', 'a')]
  registry.remove(old)
  registry.takeOver(successor, old)
  assert.deepEqual([registry.byId.get('1'), registry.byId.has('2')], [successor, false])
  assert.deepEqual([successor.id, successor.log, idsOf(registry.ofKey('a'))], ['1', old.log, ['1']])
})

test('the keys of an owner are each named once, with those of pending renewals', () => {
  const { registry, add } = openRegistry()
  add('1', 'ann', 'a')
  const renewingConnection = add('2', 'ann', 'a')
  renewingConnection.renewalKeyId = ''
  assert.deepEqual(registry.keyIdsOf('ann'), ['a'], 'the new token is not verified yet')
  renewingConnection.renewalKeyId = 'b'
  assert.deepEqual([registry.keyIdsOf('ann'), registry.keyIdsOf('eve')], [['a', 'b'], []])
})
