import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveConnection } from '../../src/events.ts'
import { WatchedUser } from '../../src/hub/watched-user.ts'

function aConnection(connectionId: string, change: Partial<LiveConnection> = {}): LiveConnection {
  const key = { keyId: 'key', keyName: 'Robot' }
  const client = { connectedAt: 1, address: '192.0.2.1', client: 'agent' }
  return { connectionId, ...key, ...client, ...change } as LiveConnection
}

function openWatchedUser() {
  const events: string[] = []
  const user = new WatchedUser({
    joined: ({ connectionId, keyId, keyName }) =>
      events.push(`${connectionId} joined with ${keyId} ${keyName}`),
    left: (connectionId, reason) => events.push(`${connectionId} left: ${reason}`),
  })
  return {
    user,
    listed: () => user.connections.map(({ connectionId }) => connectionId),
    /** The events since the last call. */
    events: () => events.splice(0),
  }
}

test('changes of a node apply in the order of its versions, and a missed one requires a new query', () => {
  const { user, listed, events } = openWatchedUser()
  assert.equal(user.countQuery('a'), null)
  assert.equal(user.unansweredBy('a'), 1)
  user.replacePart('a', 5, [{ joined: aConnection('one') }], 0, 1)
  assert.equal(user.unansweredBy('a'), 0)
  assert.equal(user.countQuery('a'), 5)
  const second = aConnection('two', { connectedAt: 2 })
  assert.equal(user.change('a', 5, 6, [{ joined: second }]), true)
  assert.deepEqual([user.unansweredBy('a'), listed()], [0, ['two', 'one']])
  user.countQuery('a')
  assert.equal(user.change('a', 7, 8, [{ left: 'one', reason: 'closed' }]), false)
  assert.deepEqual([user.unansweredBy('a'), user.countQuery('a'), listed()], [0, 6, ['two', 'one']])
  assert.equal(user.change('a', 6, 7, [{ left: 'one', reason: 'closed' }]), true)
  assert.equal(user.change('a', 7, 8, [{ left: 'unknown', reason: 'closed' }]), true)
  assert.deepEqual(listed(), ['two'])
  assert.deepEqual(events(), ['one joined with key Robot', 'two joined with key Robot', 'one left: closed'])
})

test('a list that comes in parts replaces the connections of its node once it is whole', () => {
  const { user, listed, events } = openWatchedUser()
  user.replace('a', [aConnection('old'), aConnection('one')], 1)
  events()
  const part = (id: string) => [{ joined: aConnection(id) }]
  user.replacePart('a', 2, part('one'), 0, 3)
  user.replacePart('a', 2, part('three'), 2, 3)
  assert.deepEqual([user.countQuery('a'), listed()], [1, ['old', 'one']], 'the second part was lost')
  user.replacePart('a', 3, part('one'), 0, 2)
  user.replacePart('a', 3, part('two'), 1, 2)
  assert.deepEqual([user.countQuery('a'), listed()], [3, ['one', 'two']])
  assert.deepEqual(events(), ['old left: lost', 'two joined with key Robot'])
})

test('a connection that moves between nodes is listed without interruption, whichever node reports first', () => {
  const { user, listed, events } = openWatchedUser()
  user.replace('a', [aConnection('one')], 1)
  user.replace('b', [aConnection('one', { keyId: 'other' })], 1)
  assert.deepEqual(events(), ['one joined with key Robot'])
  user.change('a', 1, 2, [{ left: 'one', reason: 'moved' }])
  assert.deepEqual([listed(), events()], [['one'], ['one joined with other Robot']])
  user.change('b', 1, 2, [{ left: 'one', reason: 'closed' }])
  assert.deepEqual([listed(), events()], [[], ['one left: closed']])
})

test('a connection is reported again when its key or the name of its key has changed', () => {
  const { user, events } = openWatchedUser()
  for (const change of [{}, {}, { keyName: 'Rover' }, { keyId: 'other', keyName: 'Rover' }])
    user.replace('a', [aConnection('one', change)])
  assert.deepEqual(events(), [
    'one joined with key Robot',
    'one joined with key Rover',
    'one joined with other Rover',
  ])
})

test('a node that is dropped takes its connections along, and is queried anew if it returns', () => {
  const { user, listed, events } = openWatchedUser()
  user.replace('a', [aConnection('one')], 4)
  user.replace('b', [aConnection('two')], 9)
  user.drop('unknown')
  user.drop('a')
  user.drop('b', 'lost')
  assert.deepEqual([listed(), user.nodeIds], [[], []])
  assert.deepEqual(events().slice(2), ['one left: node_lost', 'two left: lost'])
  assert.deepEqual([user.unansweredBy('a'), user.countQuery('a')], [1, null])
})
