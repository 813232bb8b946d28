import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { toScopes } from '../../src/api-keys/api-key.ts'
import type { LiveConnection, PresenceChange } from '../../src/events.ts'
import { AgentConnection, type HubSocket } from '../../src/hub/agent-connection.ts'
import { MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import type { PresenceRow } from '../../src/hub/presence-store.ts'
import { OwnerLimits } from '../../src/hub/rate-limits.ts'
import { COMPARE_MS, createWatches, LINGER_MS } from '../../src/hub/watches.ts'
import { createTestClock } from '../support/clock.ts'
import { caller } from '../support/services.ts'
import { textOf } from './support/raw-frames.ts'

const KIB = 1024
const SYNC_TIMEOUT_MS = 1000
const RETRY_MS = 20

/**
 * The watches of node `here`, which answers its own queries at once, as a hub does. The test plays the other nodes.
 * Timers wait for `passTimers`.
 */
function openWatches(t: TestContext, { deliveries = 1000 } = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const clock = createTestClock()
  const ownerLimits = new OwnerLimits(100, deliveries)
  const notices: string[] = []
  const warnings: unknown[] = []
  const state = {
    others: [] as string[],
    current: [] as string[],
    known: [] as string[],
    /** The connections of this node. */
    here: [] as string[],
    rows: [] as PresenceRow[] | Error,
    reads: [] as (readonly string[])[],
  }
  const watches = createWatches({
    clock,
    log: { warn: (fields: object) => void warnings.push(fields) } as never,
    nodeId: 'here',
    presence: {
      otherNodes: () => state.others,
      currentPeers: () => state.current,
      async recordedOn(nodes) {
        state.reads.push(nodes)
        if (state.rows instanceof Error) throw state.rows
        return state.rows
      },
    },
    locations: { knownNodes: () => state.known },
    ownerLimits,
    notify(node, notice) {
      notices.push(`${notice.op} ${node}${notice.op === 'watch' ? ` ${notice.have}` : ''}`)
      if (node !== 'here' || notice.op !== 'watch') return
      if (notice.have === null) report('here', state.here)
      else change('here', notice.have, [], notice.have)
    },
  })
  const open = (id: string, scopes = ['agents:read']) => {
    state.here.push(id)
    const sent: string[] = []
    const socket = {
      readyState: 1,
      bufferedAmount: 0,
      stream: { cork: () => sent.push('cork'), uncork: () => sent.push('uncork') },
      writeFrame: (frame: Buffer) => sent.push(summary(JSON.parse(textOf(frame)))),
      close: (code: number, reason: string) => sent.push(`${code} ${reason}`),
    }
    const claims = { agentId: 'ann', keyId: 'key', scopes: toScopes(scopes), expiresAt: 0 }
    const host = { deregister: watches.remove, hold() {}, logClose() {} }
    const log = new MessageLog('ann', new MessageBudget())
    const hubSocket = socket as unknown as HubSocket
    const connection = new AgentConnection(id, hubSocket, claims, caller(), 0, host, log)
    connection.state = 'open'
    return { connection, socket, frames: () => sent.splice(0).filter(text => !text.endsWith('cork')), sent }
  }
  /** A node reports all of its connections. */
  const report = (node: string, ids: string[], version = 1) =>
    watches.receive(node, {
      ...{ op: 'presence', userId: 'ann', after: null, version, part: 0, parts: 1 },
      changes: ids.map(id => ({ joined: live(id) })),
    })
  const change = (node: string, after: number, changes: PresenceChange[], version = after + 1) =>
    watches.receive(node, {
      ...{ op: 'presence', userId: 'ann', after, version, part: 0, parts: 1 },
      changes,
    })
  return {
    watches,
    clock,
    ownerLimits,
    state,
    warnings,
    open,
    report,
    change,
    notices: () => notices.splice(0),
    passTimers: (ms = RETRY_MS) => t.mock.timers.tick(ms),
    async tickAfter(ms: number) {
      clock.advance(ms)
      watches.tick()
      await new Promise(setImmediate)
    },
  }
}

function live(connectionId: string): LiveConnection {
  return { connectionId, keyId: 'key', keyName: null, address: '::1', client: null, connectedAt: 1 }
}

function rowOn(nodeId: string, id: string): PresenceRow {
  return { ...live(id), nodeId, userId: 'ann' }
}

type Summarized = {
  type: string
  connections?: { connection_id: string }[]
  connection?: { connection_id: string }
  connection_id?: string
  reason?: string
  code?: string
  id?: string
}

function summary({ type, connections, connection, connection_id, reason, code, id }: Summarized): string {
  if (connections) return `list ${connections.map(each => each.connection_id).join()}`
  if (connection) return `joined ${connection.connection_id}`
  return [type, connection_id ?? code, reason ?? id].filter(Boolean).join(' ')
}

describe('a new watch', () => {
  test('queries this node and those that may have connections, and waits for the lists of all', t => {
    const { watches, open, report, state, notices } = openWatches(t)
    state.others = state.current = state.known = ['a', 'b']
    const { connection, frames } = open('w')
    watches.watch(connection)
    assert.deepEqual(notices(), ['watch here null', 'watch a null', 'watch b null'])
    report('a', ['1'])
    assert.deepEqual(frames(), [])
    report('b', ['2'])
    assert.deepEqual(frames(), ['list w,1,2'])
  })

  test('reads the connections of nodes that are silent for a second from the database, of these nodes only', async t => {
    const { watches, open, report, change, state, tickAfter } = openWatches(t)
    state.others = state.current = state.known = ['a', 'b']
    state.rows = [rowOn('a', 'not read'), rowOn('b', '2')]
    const { connection, frames } = open('w')
    watches.watch(connection)
    report('a', ['1'])
    await tickAfter(SYNC_TIMEOUT_MS - 1)
    assert.deepEqual([frames(), state.reads], [[], []])
    await tickAfter(1)
    assert.deepEqual([frames(), state.reads], [['list w,1,2'], [['b']]])
    change('b', 1, [{ joined: live('3') }])
    assert.deepEqual(frames(), [], 'the version of what was read is unknown')
    await tickAfter(SYNC_TIMEOUT_MS)
    assert.equal(state.reads.length, 1, 'the list is complete')
  })

  test('whose database fails is logged, and reads again with the next tick', async t => {
    const { watches, open, state, warnings, tickAfter } = openWatches(t)
    state.others = state.current = state.known = ['a']
    const failure = new Error('the database is down')
    state.rows = failure
    const { connection, frames } = open('w')
    watches.watch(connection)
    await tickAfter(SYNC_TIMEOUT_MS)
    assert.deepEqual([frames(), warnings], [[], [{ err: failure }]])
    state.rows = [rowOn('a', '1')]
    await tickAfter(0)
    assert.deepEqual([frames(), state.reads.length], [['list w,1'], 2])
  })

  test('reads the connections of nodes that send no notices at once', async t => {
    const { watches, open, state, notices } = openWatches(t)
    state.others = ['old']
    state.rows = [rowOn('old', '1'), rowOn('another', '2')]
    const { connection, frames } = open('w')
    watches.watch(connection)
    await new Promise(setImmediate)
    assert.deepEqual([frames(), state.reads], [['list w,1'], [['old']]])
    assert.deepEqual(notices(), ['watch here null'])
  })
})

describe('a watched user', () => {
  test('is queried again every five seconds on every node, with the version that is known', async t => {
    const { watches, open, report, state, notices, tickAfter } = openWatches(t)
    state.others = state.current = state.known = ['a']
    watches.watch(open('w').connection)
    report('a', [], 7)
    notices()
    await tickAfter(COMPARE_MS - 1)
    assert.deepEqual(notices(), [])
    await tickAfter(1)
    assert.deepEqual(notices(), ['watch here 1', 'watch a 7'])
    await tickAfter(COMPARE_MS - 1)
    assert.deepEqual(notices(), [])
    watches.compareAll()
    assert.deepEqual(notices(), ['watch here 1', 'watch a 7'])
  })

  test('is read from the database for a node that left two queries unanswered, until it answers', async t => {
    const { watches, open, report, state, tickAfter } = openWatches(t)
    state.others = state.current = state.known = ['a']
    const { connection, frames } = open('w')
    watches.watch(connection)
    report('a', ['1', '2'])
    assert.deepEqual(frames(), ['list w,1,2'])
    state.rows = [rowOn('a', '1')]
    await tickAfter(COMPARE_MS)
    assert.deepEqual([state.reads, frames()], [[], []], 'one query')
    await tickAfter(COMPARE_MS)
    assert.deepEqual([state.reads, frames()], [[['a']], ['left 2 lost']])
    report('a', ['1', '2'], 2)
    await tickAfter(COMPARE_MS)
    assert.deepEqual([state.reads.length, frames()], [1, ['joined 2']])
  })

  test('keeps what a node reported while its connections were being read', async t => {
    const { watches, open, report, state, tickAfter } = openWatches(t)
    state.others = state.current = state.known = ['a']
    const { connection, frames } = open('w')
    watches.watch(connection)
    state.rows = []
    const reading = tickAfter(SYNC_TIMEOUT_MS)
    report('a', ['1'])
    await reading
    assert.deepEqual(frames(), ['list w,1'])
  })

  test('loses the connections of a node that is dead, or has none any more', t => {
    const { watches, open, report, state, notices } = openWatches(t)
    state.others = state.current = state.known = ['a', 'b']
    const { connection, frames } = open('w')
    watches.watch(connection)
    report('a', ['1'])
    report('b', ['2'])
    frames()
    watches.receiveAbsence('b', 'ann')
    watches.receiveAbsence('a', 'eve')
    assert.deepEqual(frames(), ['left 2 lost'])
    notices()
    state.others = state.current = state.known = ['b', 'c']
    watches.updateNodes()
    assert.deepEqual([frames(), notices()], [['left 1 node_lost'], ['watch b null', 'watch c null']])
    watches.updateNodes()
    assert.deepEqual([frames(), notices()], [[], []], 'queried already')
  })

  test('is queried on a node whose notice was missed, and the changes are not applied', t => {
    const { watches, open, report, change, state, notices } = openWatches(t)
    state.others = state.current = state.known = ['a']
    const { connection, frames } = open('w')
    watches.watch(connection)
    report('a', ['1'], 1)
    notices()
    frames()
    change('a', 2, [{ joined: live('2') }])
    assert.deepEqual([frames(), notices()], [[], ['watch a 1']])
    change('a', 1, [{ joined: live('2') }, { left: '1', reason: 'closed' }])
    assert.deepEqual([frames(), notices()], [['joined 2', 'left 1 closed'], []])
  })

  test('whom nobody watches any more is watched for five seconds, so that the next watcher is served at once', async t => {
    const { watches, open, report, state, notices, tickAfter } = openWatches(t)
    state.others = state.current = state.known = ['a']
    const [first, second] = [open('1'), open('2')]
    for (const { connection } of [first, second]) watches.watch(connection)
    report('a', [])
    first.frames()
    watches.unwatch(first.connection)
    await tickAfter(LINGER_MS - 1)
    watches.unwatch(second.connection)
    watches.unwatch(second.connection)
    await tickAfter(LINGER_MS - 1)
    notices()
    second.frames()
    watches.watch(second.connection)
    assert.deepEqual([second.frames(), notices()], [['list 1,2'], ['watch here 1']])
    watches.remove(second.connection)
    await tickAfter(LINGER_MS - 1)
    notices()
    await tickAfter(1)
    assert.deepEqual(notices(), ['unwatch here', 'unwatch a'])
    report('a', ['3'])
    assert.deepEqual(notices(), ['unwatch a'], 'it is told again if it did not notice')
    assert.deepEqual([first.frames(), second.frames()], [[], []])
  })
})

describe('a watcher', () => {
  const openWatcher = (t: TestContext, unsentBytes = 0) => {
    const watching = openWatches(t)
    const watcher = watching.open('w')
    watcher.socket.bufferedAmount = unsentBytes
    watching.watches.watch(watcher.connection)
    return { ...watching, ...watcher }
  }

  test('gets its list once less than 256 KiB are unsent, and then the changes that came meanwhile', t => {
    const { change, socket, frames, passTimers } = openWatcher(t, 256 * KIB)
    passTimers()
    change('here', 1, [{ joined: live('2') }])
    change('here', 2, [{ left: '2', reason: 'closed' }])
    passTimers()
    assert.deepEqual(frames(), [])
    socket.bufferedAmount = 256 * KIB - 1
    passTimers(RETRY_MS - 1)
    assert.deepEqual(frames(), [])
    passTimers(1)
    assert.deepEqual(frames(), ['list w', 'joined 2', 'left 2 closed'])
    change('here', 3, [{ joined: live('3') }])
    passTimers()
    assert.deepEqual(frames(), ['joined 3'])
  })

  test('that reads so slowly that more than a thousand changes wait for its list is closed with 4429', t => {
    const { change, frames, connection } = openWatcher(t, 256 * KIB)
    const joined = Array.from({ length: 1000 }, (_, n) => ({ joined: live(`${n}`) }))
    change('here', 1, joined)
    assert.deepEqual([connection.state, frames()], ['open', []])
    change('here', 2, [{ left: '7', reason: 'closed' }])
    assert.deepEqual([connection.state, frames()], ['closed', ['4429 slow_consumer']])
  })

  test('gets no change from before its list, which has it already', t => {
    const { watches, open, report, change, state } = openWatches(t)
    state.others = state.current = state.known = ['a', 'b']
    const { connection, frames } = open('w')
    watches.watch(connection)
    report('a', ['1'])
    change('a', 1, [{ joined: live('2') }])
    assert.deepEqual(frames(), [])
    report('b', [])
    assert.deepEqual(frames(), ['list w,1,2'])
  })

  test('that watches again before its list is sent gets it once', t => {
    const { watches, connection, socket, frames, passTimers } = openWatcher(t, 256 * KIB)
    watches.watch(connection)
    socket.bufferedAmount = 0
    passTimers()
    passTimers()
    assert.deepEqual(frames(), ['list w'])
  })

  test('that stops before its list is sent gets none', t => {
    const { watches, connection, socket, frames, passTimers } = openWatcher(t, 256 * KIB)
    watches.unwatch(connection)
    socket.bufferedAmount = 0
    passTimers()
    assert.deepEqual(frames(), [])
  })

  test('gets the changes of one notice in one write', t => {
    const { change, sent } = openWatcher(t)
    sent.length = 0
    change('here', 1, [{ joined: live('1') }, { joined: live('2') }])
    assert.deepEqual(sent, ['cork', 'joined 1', 'joined 2', 'uncork'])
  })

  test('whose token lost the scope is told so once, with the id of its watch, at the next change or comparison', async t => {
    const { watches, change, open, tickAfter } = openWatches(t)
    const [first, second] = [open('1'), open('2')]
    watches.watch(first.connection, 'one')
    watches.watch(second.connection)
    for (const { frames } of [first, second]) frames()
    first.connection.scopes = toScopes(['agent:connect'])
    change('here', 1, [{ joined: live('3') }])
    change('here', 2, [{ joined: live('4') }])
    assert.deepEqual(
      [first.frames(), second.frames()],
      [['error insufficient_scope one'], ['joined 3', 'joined 4']],
    )
    second.connection.scopes = toScopes(['agent:connect'])
    await tickAfter(COMPARE_MS)
    assert.deepEqual(second.frames(), ['error insufficient_scope'])
  })

  test('costs its owner one delivery for each frame of a list, and each change one for every watcher', t => {
    const { watches, change, open, ownerLimits, clock } = openWatches(t, { deliveries: 4 })
    const left = () => {
      let count = 0
      while (ownerLimits.mayDeliver('ann', clock.now())) {
        ownerLimits.chargeDeliveries('ann', 1, 0, clock.now())
        count++
      }
      clock.advance(2000)
      return count
    }
    const watchers = [open('1'), open('2')]
    for (const { connection } of watchers) watches.watch(connection)
    assert.equal(left(), 8 - 2)
    change('here', 1, [{ joined: live('3') }, { joined: live('4') }])
    assert.equal(left(), 8 - 4)
  })

  test('costs its owner the bytes of what it gets', t => {
    const { watches, open, change, ownerLimits, clock } = openWatches(t)
    const charged: [count: number, bytes: number][] = []
    t.mock.method(
      ownerLimits,
      'chargeDeliveries',
      (userId: string, count: number, bytes: number, now: number) => {
        assert.deepEqual([userId, now], ['ann', clock.now()])
        if (count > 0) charged.push([count, bytes])
      },
    )
    watches.watch(open('w').connection)
    change('here', 1, [{ left: 'w', reason: 'closed' }])
    const list =
      '{"type":"presence","connections":[{"connection_id":"w","key_id":"key","key_name":null,"connected_at":"1970-01-01T00:00:00.001Z","address":"::1","client":null}]}'
    const left = '{"type":"left","connection_id":"w","reason":"closed"}'
    assert.deepEqual(charged, [
      [1, list.length],
      [1, left.length],
    ])
  })
})
