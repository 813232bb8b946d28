import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RelayCommand } from '../../src/events.ts'
import type { LocationStore } from '../../src/hub/location-store.ts'
import { createLocations } from '../../src/hub/locations.ts'
import { createReceivers } from '../../src/hub/receivers.ts'
import { newId } from '../../src/ids.ts'
import { createTestClock } from '../support/clock.ts'

type Enter = Extract<RelayCommand, { op: 'enter' }>

const BATCH_SIZE = 500
const FORGET_NODE_MS = 60_000
const [KEY, ID] = [newId(1), newId(2)]

/** The locations of node `here`, whose peers, store and commands to other nodes the test controls. */
function openUserLocations() {
  const clock = createTestClock()
  const state = {
    peers: ['a', 'b'],
    current: ['a', 'b'],
    /** The other nodes that are recorded for every user. */
    recorded: [] as string[],
    /** The users with connections here; null if all have some. */
    here: null as string[] | null,
    answer: async (_node: string, _command: Enter) => 1,
    store: {} as Partial<LocationStore>,
  }
  const writes: [operation: string, userIds: readonly string[]][] = []
  const commands: [node: string, userIds: readonly string[], targets: readonly string[] | undefined][] = []
  const warnings: unknown[] = []
  const sendCommand = async (node: string, command: Enter) => {
    commands.push([node, command.userIds, command.targets])
    return state.answer(node, command)
  }
  const presence = { peers: () => state.peers, currentPeers: () => state.current }
  const relay = {
    get receivedUntil() {
      return clock.now()
    },
  }
  const receivers = createReceivers({
    clock,
    presence,
    registry: { hasTarget: () => false },
    relay,
    sendCommand,
  })
  const locations = createLocations({
    clock,
    log: { warn: (fields: object) => void warnings.push(fields) } as never,
    nodeId: 'here',
    store: {
      async enter(nodeId, userIds) {
        assert.equal(nodeId, 'here')
        writes.push(['enter', userIds])
        await state.store.enter?.(nodeId, userIds)
        return new Map(userIds.map(userId => [userId, ['here', ...state.recorded]]))
      },
      async leave(nodeId, userIds) {
        assert.equal(nodeId, 'here')
        writes.push(['leave', userIds])
        await state.store.leave?.(nodeId, userIds)
      },
      nodesOf: async () => state.recorded,
    },
    presence,
    receivers,
    hasUser: userId => state.here?.includes(userId) ?? true,
    sendCommand,
  })
  const settle = async () => {
    for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
  }
  return {
    locations,
    receivers,
    clock,
    state,
    warnings,
    settle,
    enter: (userId: string) => locations.enter({ userId, connectionId: ID, keyId: KEY }),
    async tickAfter(ms: number) {
      clock.advance(ms)
      locations.tick()
      await settle()
    },
    /** The writes since the last call, and so with commands. */
    writes: () => writes.splice(0),
    commands: () => commands.splice(0),
  }
}

async function isSettled(promise: Promise<unknown> | undefined): Promise<boolean> {
  const later = new Promise(resolve => setImmediate(() => setImmediate(resolve, 'later')))
  return (await Promise.race([promise, later])) !== 'later'
}

describe('the first connection of a user', () => {
  test('is recorded, and ready when the nodes that are recorded too have answered', async () => {
    const { locations, enter, state, settle, writes, commands } = openUserLocations()
    state.recorded = ['a']
    const answer = Promise.withResolvers<number>()
    state.answer = () => answer.promise
    const entered = enter('ann')
    assert.equal(locations.has('ann'), true)
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['a', 'b'], 'not recorded: it may be anywhere')
    assert.deepEqual(locations.knownNodes('ann'), ['a', 'b'])
    await settle()
    assert.deepEqual([writes(), commands()], [[['enter', ['ann']]], [['a', ['ann'], undefined]]])
    assert.equal(await isSettled(entered), false)
    const second = enter('ann')
    assert.equal(await isSettled(second), false, 'of the same user')
    answer.resolve(1)
    await Promise.all([entered, second])
    assert.equal(enter('ann'), undefined, 'all know')
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['a'])
    assert.deepEqual(locations.knownNodes('ann'), ['a'])
  })

  test('also waits for nodes that rely on the absence of its key', async () => {
    const { enter, receivers, state, settle, commands } = openUserLocations()
    state.recorded = ['a']
    const answers = { users: Promise.withResolvers<number>(), targets: Promise.withResolvers<number>() }
    state.answer = (_node, { targets }) => (targets ? answers.targets : answers.users).promise
    receivers.promiseNotice('b', 'ann', KEY)
    const entered = enter('ann')
    await settle()
    assert.deepEqual(commands(), [
      ['a', ['ann'], undefined],
      ['b', ['ann'], [KEY]],
    ])
    answers.users.resolve(1)
    assert.equal(await isSettled(entered), false)
    answers.targets.resolve(1)
    await entered
    receivers.promiseNotice('a', 'ann', KEY)
    await enter('ann')
    assert.deepEqual(commands(), [['a', ['ann'], [KEY]]], 'of a later connection')
  })

  test('does not wait for a node that is not alive, which is notified when it is', async () => {
    const { enter, state, commands, tickAfter } = openUserLocations()
    state.recorded = ['gone']
    await enter('ann')
    assert.deepEqual(commands(), [])
    state.peers = state.current = ['a', 'gone']
    await tickAfter(0)
    assert.deepEqual(commands(), [['gone', ['ann'], undefined]])
    await tickAfter(0)
    assert.deepEqual(commands(), [], 'it has answered')
  })

  test('of 501 users at once is recorded by two writes, and announced by a command for each write', async () => {
    const { locations, enter, state, writes, commands } = openUserLocations()
    state.recorded = ['a']
    const users = Array.from({ length: BATCH_SIZE + 1 }, (_, n) => `${n}`)
    await Promise.all(users.map(enter))
    const batches = [users.slice(0, BATCH_SIZE), users.slice(BATCH_SIZE)]
    assert.deepEqual(
      writes(),
      batches.map(batch => ['enter', batch]),
    )
    assert.deepEqual(
      commands(),
      batches.map(batch => ['a', batch, undefined]),
    )
    assert.ok(users.every(locations.has))
  })

  test('is announced to all nodes while it cannot be recorded, and recorded with the next tick', async () => {
    const { locations, enter, state, writes, commands, warnings, tickAfter } = openUserLocations()
    const failure = new Error('the disk is full')
    state.store.enter = () => Promise.reject(failure)
    await enter('ann')
    assert.deepEqual(warnings, [{ err: failure }])
    assert.deepEqual(commands(), [
      ['a', ['ann'], undefined],
      ['b', ['ann'], undefined],
    ])
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['a', 'b'])
    state.store = {}
    writes()
    await tickAfter(0)
    assert.deepEqual(writes(), [['enter', ['ann']]])
    assert.deepEqual(locations.nodesOf('ann', 'all'), [])
  })
})

describe('a message of a user', () => {
  test('goes to the peers that have connections, and to nodes of the previous version, wherever the user is', async () => {
    const { locations, enter, state } = openUserLocations()
    state.peers = ['a', 'b', 'old']
    state.recorded = ['a', 'gone']
    await enter('ann')
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['a', 'old'])
    assert.deepEqual(locations.knownNodes('ann'), ['a'])
    assert.deepEqual(await locations.nodesOf('bob', 'all'), ['a', 'old'], 'a user without connections here')
    assert.deepEqual(locations.knownNodes('bob'), ['a', 'b'])
  })

  test('follows what the nodes report, and what they lack', async () => {
    const { locations, receivers, enter } = openUserLocations()
    await enter('ann')
    locations.receiveConnections('b', ['ann', 'unknown'], [])
    assert.deepEqual(locations.nodesOf('ann', KEY), ['b'])
    receivers.receiveAbsence('b', 'ann', KEY)
    assert.deepEqual([locations.nodesOf('ann', KEY), locations.nodesOf('ann', ID)], [[], ['b']])
    locations.receiveConnections('b', ['ann'], [KEY])
    assert.deepEqual(locations.nodesOf('ann', KEY), ['b'])
    locations.receiveAbsence('b', 'ann')
    locations.receiveAbsence('b', 'unknown')
    assert.deepEqual(locations.nodesOf('ann', KEY), [])
    assert.equal(locations.has('unknown'), false)
  })

  test('no longer goes to a node that was dead for more than a minute, also when that is alive again', async () => {
    const { locations, enter, state, tickAfter } = openUserLocations()
    state.recorded = ['a', 'b']
    await enter('ann')
    await tickAfter(0)
    state.peers = state.current = ['b']
    await tickAfter(FORGET_NODE_MS)
    state.peers = state.current = ['a', 'b']
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['a', 'b'], 'a minute')
    state.peers = state.current = ['b']
    await tickAfter(1)
    state.peers = state.current = ['a', 'b']
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['b'])
  })

  test('goes on to a node that was named by a record and reports itself before a minute has passed', async () => {
    const { locations, enter, state, tickAfter } = openUserLocations()
    state.recorded = ['late']
    await enter('ann')
    await tickAfter(FORGET_NODE_MS)
    locations.receiveConnections('late', ['ann'], [])
    await tickAfter(FORGET_NODE_MS)
    state.peers = state.current = ['late']
    assert.deepEqual(locations.nodesOf('ann', 'all'), ['late'])
  })
})

describe('a user without connections here', () => {
  test('is no longer recorded after ten seconds, and again after a return', async () => {
    const { locations, enter, state, writes, tickAfter } = openUserLocations()
    await enter('ann')
    writes()
    state.here = []
    await tickAfter(0)
    await tickAfter(9_999)
    assert.deepEqual([locations.has('ann'), writes()], [true, []])
    await tickAfter(1)
    assert.deepEqual([locations.has('ann'), writes()], [false, [['leave', ['ann']]]])
    await tickAfter(0)
    assert.deepEqual(writes(), [])
    state.here = null
    await enter('ann')
    assert.deepEqual(writes(), [['enter', ['ann']]])
  })

  test('stays recorded if a connection comes meanwhile, and the ten seconds begin anew', async () => {
    const { locations, enter, state, tickAfter } = openUserLocations()
    await enter('ann')
    state.here = []
    await tickAfter(0)
    await tickAfter(9_999)
    void enter('ann') // A connection that ends before the next tick.
    await tickAfter(1)
    await tickAfter(9_999)
    assert.equal(locations.has('ann'), true)
    await tickAfter(1)
    assert.equal(locations.has('ann'), false)
  })

  test('stays recorded as long as other nodes are being notified', async () => {
    const { locations, enter, state, tickAfter } = openUserLocations()
    state.recorded = ['a']
    const answer = Promise.withResolvers<number>()
    state.answer = () => answer.promise
    void enter('ann')
    state.here = []
    await tickAfter(0)
    await tickAfter(10_000)
    assert.equal(locations.has('ann'), true)
    answer.resolve(1)
    await tickAfter(0)
    await tickAfter(0)
    assert.equal(locations.has('ann'), false)
  })

  test('whose record could not be removed or added is tried again, as the user then stands', async () => {
    const { enter, state, writes, tickAfter } = openUserLocations()
    await Promise.all([enter('ann'), enter('bob')])
    state.here = []
    await tickAfter(0)
    state.store.leave = () => Promise.reject(new Error('the disk is full'))
    writes()
    await tickAfter(10_000)
    assert.deepEqual(writes(), [['leave', ['ann', 'bob']]])
    state.store = {}
    state.here = ['bob']
    void enter('bob')
    await tickAfter(0)
    assert.deepEqual(writes(), [
      ['leave', ['ann', 'bob']],
      ['enter', ['bob']],
    ])
  })
})

describe('a node that did not confirm where a user is', () => {
  test('is notified again with every tick while it is alive, in batches', async () => {
    const { enter, state, commands, tickAfter } = openUserLocations()
    state.recorded = ['a']
    state.answer = async () => 0
    const users = Array.from({ length: BATCH_SIZE + 1 }, (_, n) => `${n}`)
    await Promise.all(users.map(enter))
    commands()
    state.answer = async () => 1
    await tickAfter(0)
    assert.deepEqual(commands(), [['a', users.slice(0, BATCH_SIZE), undefined]])
    await tickAfter(0)
    assert.deepEqual(commands(), [['a', users.slice(BATCH_SIZE), undefined]])
    await tickAfter(0)
    assert.deepEqual(commands(), [])
  })

  test('is forgotten after a minute', async () => {
    const { enter, state, commands, tickAfter } = openUserLocations()
    for (const [ms, isForgotten] of [
      [FORGET_NODE_MS, false],
      [FORGET_NODE_MS + 1, true],
    ] as const) {
      state.recorded = [`gone ${ms}`]
      await enter(`ann ${ms}`)
      await tickAfter(ms)
      state.peers = state.current = [`gone ${ms}`]
      await tickAfter(0)
      assert.equal(commands().length, isForgotten ? 0 : 1)
      state.peers = state.current = []
    }
  })
})

test('users are recorded again after other nodes may have pruned them, and nothing is after a stop', async () => {
  const { locations, enter, settle, writes } = openUserLocations()
  await Promise.all([enter('ann'), enter('bob')])
  writes()
  locations.enterAgain()
  await settle()
  assert.deepEqual(writes(), [['enter', ['ann', 'bob']]])
  locations.stop()
  void enter('eve')
  locations.enterAgain()
  await settle()
  assert.deepEqual(writes(), [])
})
