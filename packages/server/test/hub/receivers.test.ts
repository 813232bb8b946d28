import assert from 'node:assert/strict'
import { describe, mock, type TestContext, test } from 'node:test'
import type { Instant } from '../../src/clock.ts'
import { Absences, PROMISE_MS, RELIANCE_MS } from '../../src/hub/absences.ts'
import { createReceivers } from '../../src/hub/receivers.ts'
import { newId } from '../../src/ids.ts'
import { createTestClock } from '../support/clock.ts'

const [USER, OTHER_USER, KEY, ID, HERE] = [1, 2, 3, 4, 5].map(newId) as [
  string,
  string,
  string,
  string,
  string,
]
const CONNECTION = { userId: USER, connectionId: ID, keyId: KEY }

/** The receivers of one node, which has the peers `a` and `b`. */
function openReceivers(t: TestContext) {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setTimeout'] })
  const clock = createTestClock()
  const queries: [node: string, targets: readonly string[]][] = []
  const state = { answers: 1, receivedUntil: clock.now() as Instant, peers: ['a', 'b'], has: [HERE] }
  const receivers = createReceivers({
    clock,
    presence: { peers: () => state.peers },
    registry: { hasTarget: (userId, target) => userId === USER && state.has.includes(target) },
    relay: {
      get receivedUntil() {
        return state.receivedUntil
      },
    },
    async sendCommand(nodeId, { targets }) {
      queries.push([nodeId, targets!])
      return state.answers
    },
  })
  return { receivers, clock, queries, state }
}

/** Resolves when all promises that wait for no timer have settled. */
const settlePromises = () => new Promise(resolve => setImmediate(() => setImmediate(resolve, 'later')))

async function isSettled(promise: Promise<unknown> | undefined): Promise<boolean> {
  return (await Promise.race([promise, settlePromises()])) !== 'later'
}

describe('the nodes that hold a receiver', () => {
  test('are all but those that reported an absence, until it ends, events were lost or a minute has passed', t => {
    const { receivers, clock, state } = openReceivers(t)
    const nodes = () => receivers.filterNodes(USER, KEY, ['a', 'b'])
    const reportAbsence = () => receivers.receiveAbsence('b', USER, KEY)
    assert.deepEqual(nodes(), ['a', 'b'])
    reportAbsence()
    assert.deepEqual(nodes(), ['a'])
    assert.deepEqual(receivers.filterNodes(OTHER_USER, KEY, ['a', 'b']), ['a', 'b'], 'of another owner')
    assert.deepEqual(receivers.filterNodes(USER, ID, ['a', 'b']), ['a', 'b'], 'another target')
    receivers.receiveTargets('b', [USER], [KEY])
    assert.deepEqual(nodes(), ['a', 'b'])
    reportAbsence()
    receivers.clearAbsences()
    assert.deepEqual(nodes(), ['a', 'b'])
    reportAbsence()
    clock.advance(2000)
    assert.deepEqual(nodes(), ['a'])
    clock.advance(1)
    assert.deepEqual(nodes(), ['a', 'b'], 'nothing was heard for two seconds')
    clock.advance(RELIANCE_MS - 2001)
    state.receivedUntil = clock.now()
    assert.deepEqual(nodes(), ['a'])
    clock.advance(1)
    state.receivedUntil = clock.now()
    assert.deepEqual(nodes(), ['a', 'b'])
  })

  test('notify the nodes that rely on their absence before a connection is ready, and only those', async t => {
    const { receivers, queries, state } = openReceivers(t)
    assert.equal(receivers.promiseNotice('a', USER, HERE), false, 'it has one')
    assert.equal(receivers.promiseNotice('a', USER, 'all'), false)
    assert.equal(receivers.announce(CONNECTION), undefined, 'nobody relies on it')
    assert.equal(receivers.promiseNotice('a', USER, KEY), true)
    assert.equal(receivers.promiseNotice('b', OTHER_USER, KEY), true)
    const [firstNotice, secondNotice] = [receivers.announce(CONNECTION), receivers.announce(CONNECTION)]
    await Promise.all([firstNotice, secondNotice])
    assert.deepEqual(queries, [['a', [KEY]]], 'once for connections of one turn')
    assert.equal(receivers.announce(CONNECTION), undefined, 'it was told')
    receivers.promiseNotice('a', USER, ID)
    state.peers = ['b']
    assert.equal(receivers.announce(CONNECTION), undefined, 'it is gone')
  })

  test('wait for a node that does not answer until it no longer relies on the absence, and notify it again', async t => {
    const { receivers, queries, state } = openReceivers(t)
    state.answers = 0
    receivers.promiseNotice('a', USER, KEY)
    const announcement = receivers.announce(CONNECTION)
    assert.equal(await isSettled(announcement), false)
    mock.timers.tick(2999)
    assert.equal(await isSettled(announcement), false)
    mock.timers.tick(1)
    assert.equal(await isSettled(announcement), true)
    state.has.push(KEY)
    receivers.tick()
    await settlePromises()
    state.answers = 1
    receivers.tick()
    await settlePromises()
    receivers.tick()
    await settlePromises()
    assert.equal(queries.length, 3, 'and not again after its answer')
  })

  test('do not wait for a node that left before it answered', async t => {
    const { receivers, state } = openReceivers(t)
    state.answers = 0
    receivers.promiseNotice('a', USER, KEY)
    const announcement = receivers.announce(CONNECTION)
    state.peers = ['b']
    assert.equal(await isSettled(announcement), true)
  })

  test('do not treat an answer as confirming a promise that was made after the question', async t => {
    const { receivers, state } = openReceivers(t)
    receivers.promiseNotice('a', USER, KEY)
    const announcement = receivers.announce(CONNECTION)
    receivers.promiseNotice('a', USER, KEY) // since the connection is gone, and node a has asked again
    await announcement
    assert.notEqual(receivers.announce(CONNECTION), undefined)
    assert.deepEqual(state.peers, ['a', 'b'])
  })

  test('keep a promise for longer than it is relied on', async t => {
    const { receivers, clock } = openReceivers(t)
    receivers.promiseNotice('a', USER, KEY)
    clock.advance(PROMISE_MS)
    receivers.tick()
    assert.notEqual(receivers.announce(CONNECTION), undefined)
    clock.advance(1)
    receivers.tick()
    assert.equal(receivers.announce(CONNECTION), undefined)
  })
})

test('absences that are no longer relied on leave their room to later ones', t => {
  const { receivers, clock, state } = openReceivers(t)
  const reportUntilFull = () => {
    for (let n = 0; n < 5000; n++) receivers.receiveAbsence('b', USER, `${n}`)
  }
  reportUntilFull()
  receivers.receiveAbsence('b', USER, KEY)
  assert.deepEqual(receivers.filterNodes(USER, KEY, ['a', 'b']), ['a', 'b'], 'there is no room')
  clock.advance(RELIANCE_MS + 1)
  state.receivedUntil = clock.now()
  receivers.tick()
  receivers.receiveAbsence('b', USER, KEY)
  assert.deepEqual(receivers.filterNodes(USER, KEY, ['a', 'b']), ['a'])
})

test('an owner may use half of the room for absences that others leave free', () => {
  const absences = new Absences(8)
  const add = (userId: string, count: number) =>
    Array.from({ length: count }, (_, n) => absences.add(userId, `${n}`, 'a', 10)).filter(Boolean).length
  assert.equal(add(USER, 10), 4)
  assert.equal(add(OTHER_USER, 10), 2)
  assert.equal(absences.add(USER, '0', 'b', 20), true, 'another node for the same target')
  absences.remove(USER, '1', 'a')
  assert.equal(absences.of(USER, '1').size, 0)
  absences.prune(11)
  assert.deepEqual([...absences.of(USER, '0').keys()], ['b'])
  assert.equal(absences.of(USER, '2').size, 0)
  absences.clear()
  assert.equal(add(OTHER_USER, 10), 4)
})

test('the absence of one node ends without that of another, and a later report of the same node outlasts it', () => {
  const absences = new Absences()
  for (const node of ['a', 'b']) absences.add(USER, KEY, node, 10)
  absences.remove(USER, KEY, 'a')
  assert.deepEqual([...absences.of(USER, KEY).keys()], ['b'])
  const earlier = absences.of(USER, KEY).get('b')!
  absences.add(USER, KEY, 'b', 20)
  absences.remove(USER, KEY, 'b', earlier)
  assert.equal(absences.of(USER, KEY).get('b')?.until, 20)
  absences.remove(USER, ID, 'b')
  absences.remove(OTHER_USER, KEY, 'b')
  absences.remove(USER, KEY, 'b', absences.of(USER, KEY).get('b')!)
  assert.equal(absences.of(USER, KEY).size, 0)
})

test('absences that were removed or have ended leave their room, and only targets with others are visited', () => {
  const absences = new Absences(4)
  const visited: string[] = []
  assert.deepEqual([absences.add(USER, '1', 'a', 10), absences.add(USER, '2', 'a', 20)], [true, true])
  assert.equal(absences.add(USER, '3', 'a', 10), false)
  absences.remove(USER, '2', 'a')
  assert.equal(absences.add(USER, '3', 'a', 11), true)
  absences.prune(11, (userId, target) => void visited.push(`${userId === USER} ${target}`))
  assert.deepEqual(visited, ['true 3'])
  assert.equal(absences.add(USER, '4', 'a', 20), true)
  assert.deepEqual([absences.of(USER, '1').size, absences.of(USER, '4').size], [0, 1])
})

test('a removed absence leaves its room once, however often others are pruned', () => {
  const absences = new Absences(4)
  absences.add(USER, '1', 'a', 10)
  absences.remove(USER, '1', 'a')
  for (let times = 0; times < 5; times++) absences.prune(0)
  const added = ['2', '3', '4', '5'].filter(target => absences.add(USER, target, 'a', 10))
  assert.deepEqual(added, ['2', '3'])
})

test('five hundred notices fit in one command, and one more needs another', async t => {
  for (const [count, sizes] of [
    [500, [500]],
    [501, [500, 1]],
  ] as const) {
    const { receivers, queries } = openReceivers(t)
    const announcements = Array.from({ length: count }, (_, n) => {
      const connectionId = newId(n)
      receivers.promiseNotice('a', USER, connectionId)
      return receivers.announce({ userId: USER, connectionId, keyId: KEY })
    })
    await Promise.all(announcements)
    assert.deepEqual(
      queries.map(([node, targets]) => [node, targets.length]),
      sizes.map(size => ['a', size]),
    )
    mock.timers.reset()
  }
})

test('a notice that is not answered does not keep the process alive', async () => {
  const countTimers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = countTimers()
  const clock = createTestClock()
  const sent = Promise.withResolvers<void>()
  const receivers = createReceivers({
    clock,
    presence: { peers: () => ['a'] },
    registry: { hasTarget: () => false },
    relay: { receivedUntil: clock.now() },
    sendCommand() {
      sent.resolve()
      return new Promise(() => {})
    },
  })
  receivers.promiseNotice('a', USER, KEY)
  void receivers.announce(CONNECTION)
  await sent.promise
  assert.equal(countTimers(), before)
})
