import assert from 'node:assert/strict'
import { describe, mock, type TestContext, test } from 'node:test'
import { MAX_MOVE_PART_LENGTH, type MoveMessage } from '../../src/events.ts'
import {
  type ConnectionMoves,
  createConnectionMoves,
  type MoveRequest,
} from '../../src/hub/connection-moves.ts'

const TIMEOUT_MS = 2000
const REQUEST: MoveRequest = { connectionId: 'c', userId: 'u', keyId: 'k', secretHash: null, lastSeq: 0 }

type Release = (request: MoveRequest, isAwaited: () => boolean) => Promise<object | null> | null

interface TestNodes {
  (id: string): ConnectionMoves
  /** Announces that the node has left, and removes it from the peers of the others. */
  leave(id: string): void
}

/** Nodes that receive all messages immediately, in one order. */
function openNodes(t: TestContext, releases: Record<string, Release>): TestNodes {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setTimeout'] })
  const nodes = new Map<string, ConnectionMoves>()
  const departedIds = new Set<string>()
  const ids = Object.keys(releases)
  for (const nodeId of ids) {
    const relay = {
      currentPeers: () => ids.filter(id => id !== nodeId && !departedIds.has(id)),
      responsivePeers: () => ids.filter(id => id !== nodeId && !departedIds.has(id)),
      publish(to: readonly string[], message: unknown) {
        queueMicrotask(() => {
          for (const id of to) nodes.get(id)!.receive(message as MoveMessage)
        })
        return true
      },
    }
    const release = releases[nodeId]!
    nodes.set(nodeId, createConnectionMoves({ relay, nodeId, timeoutMs: TIMEOUT_MS, release, adopt() {} }))
  }
  return Object.assign((id: string) => nodes.get(id)!, {
    leave(id: string) {
      nodes.get(id)!.announce('left')
      departedIds.add(id)
    },
  })
}

/**
 * A node that releases nothing until `arrive` is called. Records, before and after its wait, whether the requester
 * still waits for the connection.
 */
function waitingNode() {
  const arrival = Promise.withResolvers<void>()
  const awaitedFlags: boolean[] = []
  const release: Release = async (_request, isAwaited) => {
    awaitedFlags.push(isAwaited())
    await arrival.promise
    awaitedFlags.push(isAwaited())
    return null
  }
  return { release, awaited: awaitedFlags, arrive: arrival.resolve }
}

const releaseNothing: Release = () => null

describe('a request for a connection', () => {
  test('is withdrawn when another node handed the connection over', async t => {
    const nodeAwaitingArrival = waitingNode()
    const nodes = openNodes(t, {
      asking: releaseNothing,
      giving: async () => ({ seq: 1 }),
      waiting: nodeAwaitingArrival.release,
    })
    assert.deepEqual(await nodes('asking').request('gone', REQUEST, () => {}), { seq: 1 })
    await new Promise(setImmediate)
    nodeAwaitingArrival.arrive()
    await nodes('waiting').released()
    assert.deepEqual(nodeAwaitingArrival.awaited, [true, false])
  })

  test('is withdrawn when nobody answered in time', async t => {
    const nodeAwaitingArrival = waitingNode()
    const nodes = openNodes(t, { asking: releaseNothing, waiting: nodeAwaitingArrival.release })
    const pendingRequest = nodes('asking').request('waiting', REQUEST, () => {})
    await new Promise(setImmediate)
    mock.timers.tick(TIMEOUT_MS)
    assert.equal(await pendingRequest, null)
    await new Promise(setImmediate)
    nodeAwaitingArrival.arrive()
    await nodes('waiting').released()
    assert.deepEqual(nodeAwaitingArrival.awaited, [true, false])
  })

  test('is not answered once the asking node has left', async t => {
    const nodeAwaitingArrival = waitingNode()
    const nodes = openNodes(t, { asking: releaseNothing, waiting: nodeAwaitingArrival.release })
    void nodes('asking').request('waiting', REQUEST, () => {})
    await new Promise(setImmediate)
    nodes.leave('asking')
    await new Promise(setImmediate)
    nodeAwaitingArrival.arrive()
    await nodes('waiting').released()
    assert.deepEqual(nodeAwaitingArrival.awaited, [true, false])
  })

  test('gets a state that is longer than one part as it was sent', async t => {
    const state = { text: 'ü'.repeat(300_000) }
    const nodes = openNodes(t, { asking: releaseNothing, giving: async () => state })
    assert.deepEqual(await nodes('asking').request('giving', REQUEST, () => {}), state)
  })

  test('that comes back to its node after its timeout has no effect', async t => {
    const nodes = openNodes(t, { asking: releaseNothing, silent: () => new Promise(() => {}) })
    let orderedCount = 0
    const onOrdered = () => void orderedCount++
    const pendingRequest = nodes('asking').request('silent', REQUEST, onOrdered)
    await new Promise(setImmediate)
    assert.equal(orderedCount, 1)
    mock.timers.tick(TIMEOUT_MS)
    assert.equal(await pendingRequest, null)
    nodes('asking').receive({ kind: 'release', from: 'asking', question: 1, ...REQUEST })
    assert.equal(orderedCount, 1)
  })

  test('does not wait for a node that has left', async t => {
    const nodeAwaitingArrival = waitingNode()
    const nodes = openNodes(t, { asking: releaseNothing, waiting: nodeAwaitingArrival.release })
    const pendingRequest = nodes('asking').request('waiting', REQUEST, () => {})
    await new Promise(setImmediate)
    nodes.leave('waiting')
    assert.equal(await pendingRequest, null)
    nodeAwaitingArrival.arrive()
  })
})

test('connections are offered to no node that is leaving', async t => {
  const nodes = openNodes(t, { leaving: releaseNothing, staying: releaseNothing, here: releaseNothing })
  assert.deepEqual(nodes('here').targetNodes(), ['leaving', 'staying'])
  nodes('leaving').announce('leaving')
  await new Promise(setImmediate)
  assert.deepEqual(nodes('here').targetNodes(), ['staying'])
})

type WithoutSender<Message> = Message extends MoveMessage ? Omit<Message, 'from'> : never

/** The moves of node `here`, whose peers the test plays; `published` has what it sent. */
function openMoves(t: TestContext, peers = ['a', 'b']) {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setTimeout'] })
  const published: { to: readonly string[]; message: MoveMessage }[] = []
  const adopted: string[] = []
  const state = { peers, responsive: peers, hasRoom: true, released: null as Promise<object | null> | null }
  const moves = createConnectionMoves({
    relay: {
      currentPeers: () => state.peers,
      responsivePeers: () => state.responsive,
      publish(to, message) {
        if (!state.hasRoom) return false
        published.push({ to, message: message as MoveMessage })
        return true
      },
    },
    nodeId: 'here',
    timeoutMs: TIMEOUT_MS,
    release: () => state.released,
    adopt: (from, connections) =>
      void adopted.push(`${from}: ${connections.map(({ connectionId }) => connectionId)}`),
  })
  const request = (issuer: string, change: Partial<MoveRequest> = {}) => {
    const tracked = { state: 'pending' as unknown, orders: 0 }
    void moves
      .request(issuer, { ...REQUEST, ...change }, () => tracked.orders++)
      .then(state => {
        tracked.state = state
      })
    return tracked
  }
  const receive = (from: string, message: WithoutSender<MoveMessage>) =>
    moves.receive({ ...message, from } as MoveMessage)
  const part = (from: string, question: number, at: number, parts: number, text: string) =>
    receive(from, { kind: 'released', question, part: at, parts, text })
  return {
    moves,
    state,
    request,
    receive,
    part,
    /** Another node says that it does not have the connection. */
    deny: (from: string, question: number) => part(from, question, 0, 0, ''),
    adopted,
    settle: () => new Promise(setImmediate),
    /** Kind and recipients of what was published since the last call. */
    sent: () => published.splice(0).map(({ to, message }) => `${message.kind} to ${to}`),
    messages: () => published.splice(0).map(({ message }) => message),
  }
}

describe('a request for a connection, among several nodes,', () => {
  test('goes to the issuer of its token first, then to the others, then to those that started meanwhile', async t => {
    const { request, deny, sent, settle, state } = openMoves(t)
    const tracked = request('b')
    assert.deepEqual(sent(), ['release to here,b'])
    deny('b', 1)
    await settle()
    assert.deepEqual(sent(), ['release to here,a'])
    state.peers = ['a', 'b', 'c', 'd']
    deny('a', 2)
    await settle()
    assert.deepEqual(sent(), ['release to here,c,d'])
    state.peers = ['a', 'b', 'c', 'd', 'e']
    deny('c', 3)
    await settle()
    assert.equal(tracked.state, 'pending')
    deny('d', 3)
    await settle()
    assert.deepEqual([tracked.state, sent()], [null, []], 'after three rounds')
  })

  test('goes to all at once if the issuer is not alive, and to nobody if no node is', async t => {
    const { request, sent, settle, state } = openMoves(t)
    request('gone')
    assert.deepEqual(sent(), ['release to here,a,b'])
    state.peers = []
    const alone = request('b')
    await settle()
    assert.deepEqual([alone.state, sent()], [null, []])
  })

  test('takes a state only from a node that was asked, whole and in order', async t => {
    const { request, part, deny, sent, settle } = openMoves(t)
    const tracked = request('gone')
    sent()
    const text = '{"seq":1}'
    part('stranger', 1, 0, 1, text)
    part('a', 99, 0, 1, text)
    part('a', 1, 1, 2, text.slice(4))
    part('a', 1, 0, 2, text.slice(0, 4))
    part('b', 1, 1, 2, text.slice(4))
    part('a', 1, 0, 2, text.slice(0, 4))
    await settle()
    assert.equal(tracked.state, 'pending')
    part('a', 1, 1, 2, text.slice(4))
    await settle()
    assert.deepEqual([tracked.state, sent()], [{ seq: 1 }, ['withdrawn to b']])
    deny('b', 1)
    part('b', 1, 0, 1, text)
    await settle()
    assert.deepEqual(sent(), [])
  })

  test('is over without a state if that is not JSON', async t => {
    const { request, part, settle } = openMoves(t)
    const tracked = request('a')
    part('a', 1, 0, 1, '{"seq":')
    await settle()
    assert.equal(tracked.state, null)
  })

  test('is not made while its owner has a thousand others, or the queue is full', async t => {
    const { request, deny, sent, settle, state } = openMoves(t, ['a'])
    request('a')
    deny('a', 1) // It ends, and does not count any longer.
    for (let n = 0; n < 1000; n++) request('a')
    assert.equal(sent().length, 1001)
    const refused = request('a')
    request('a', { userId: 'another' })
    await settle()
    assert.deepEqual([refused.state, sent()], [null, ['release to here,a']])
    deny('a', 2)
    for (let n = 0; n < 2; n++) request('a')
    assert.equal(sent().length, 1, 'one place is free')
    state.hasRoom = false
    const unsent = request('a', { userId: 'another' })
    await settle()
    assert.equal(unsent.state, null)
  })

  test('is not made while ten thousand others are pending, and all end when this node stops', async t => {
    const { moves, request, sent, settle } = openMoves(t, ['a'])
    const pending = Array.from({ length: 10_000 }, (_, n) => request('a', { userId: `${n % 20}` }))
    const refused = request('a', { userId: 'another' })
    await settle()
    assert.deepEqual([sent().length, refused.state], [10_000, null])
    moves.stop()
    await settle()
    assert.ok(pending.every(({ state }) => state === null))
    assert.deepEqual(new Set(sent()), new Set(['withdrawn to a']))
  })

  test('learns its position among the events once, from this node’s own request', async t => {
    const { request, receive } = openMoves(t)
    const [first, second] = [request('a'), request('a')]
    receive('a', { kind: 'release', question: 2, ...REQUEST })
    receive('here', { kind: 'release', question: 2, ...REQUEST })
    assert.deepEqual([first.orders, second.orders], [0, 1])
  })

  test('waits for the other nodes when one of two has left', async t => {
    const { request, receive, part, settle } = openMoves(t)
    const tracked = request('gone')
    receive('a', { kind: 'left' })
    await settle()
    assert.equal(tracked.state, 'pending')
    part('b', 1, 0, 1, '{}')
    await settle()
    assert.deepEqual(tracked.state, {})
  })
})

describe('a node that others ask for a connection', () => {
  const question = { kind: 'release', question: 5, ...REQUEST } as const

  test('answers that it does not have it, or with its state in parts', async t => {
    const { receive, messages, settle, state } = openMoves(t)
    receive('a', question)
    await settle()
    const answer = { kind: 'released', from: 'here', question: 5 }
    assert.deepEqual(messages(), [{ ...answer, part: 0, parts: 0, text: '' }])
    const text = JSON.stringify({ text: 'x'.repeat(MAX_MOVE_PART_LENGTH) })
    state.released = Promise.resolve(JSON.parse(text))
    receive('a', question)
    await settle()
    const [first, second] = [text.slice(0, MAX_MOVE_PART_LENGTH), text.slice(MAX_MOVE_PART_LENGTH)]
    assert.deepEqual(messages(), [
      { ...answer, part: 0, parts: 2, text: first },
      { ...answer, part: 1, parts: 2, text: second },
    ])
    state.released = Promise.resolve({ text: 'x'.repeat(MAX_MOVE_PART_LENGTH - '{"text":""}'.length) })
    receive('a', question)
    await settle()
    assert.equal(messages().length, 1)
  })

  test('is done with all answers once they are queued', async t => {
    const { moves, receive, messages, settle, state } = openMoves(t)
    await moves.released()
    const arrival = Promise.withResolvers<object>()
    state.released = arrival.promise
    receive('a', question)
    let isDone = false
    const done = moves.released().then(() => {
      isDone = true
    })
    await settle()
    assert.equal(isDone, false)
    arrival.resolve({})
    await done
    assert.equal(messages().length, 1)
  })
})

test('offers name at most fifty connections each, and are passed on with the node that made them', t => {
  const { moves, receive, adopted, messages, sent } = openMoves(t)
  const connections = Array.from({ length: 101 }, (_, n) => ({
    connectionId: `${n}`,
    userId: 'u',
    keyId: 'k',
  }))
  moves.offer('a', connections)
  const offers = messages().map(message => (message.kind === 'adopt' ? message.connections : []))
  assert.deepEqual(
    offers.map(({ length }) => length),
    [50, 50, 1],
  )
  assert.deepEqual(offers.flat(), connections)
  moves.offer('a', connections.slice(0, 50))
  moves.offer('b', [])
  assert.deepEqual(sent(), ['adopt to a'])
  receive('b', { kind: 'adopt', connections: connections.slice(0, 2) })
  receive('here', { kind: 'adopt', connections })
  assert.deepEqual(adopted, ['b: 0,1'])
})

test('a node announces its end to the peers that understand it, if there are any', t => {
  const { moves, state, sent } = openMoves(t)
  moves.announce('leaving')
  moves.announce('left')
  state.peers = []
  moves.announce('left')
  assert.deepEqual(sent(), ['leaving to a,b', 'left to a,b'])
})

test('connections are offered to responsive nodes only', t => {
  const { moves, state, receive } = openMoves(t)
  assert.deepEqual(moves.targetNodes(), ['a', 'b'])
  state.responsive = ['b']
  assert.deepEqual(moves.targetNodes(), ['b'])
  receive('b', { kind: 'leaving' })
  receive('a', { kind: 'leaving' })
  state.responsive = ['a', 'b']
  assert.deepEqual(moves.targetNodes(), [])
})
