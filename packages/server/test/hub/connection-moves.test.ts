import assert from 'node:assert/strict'
import { describe, mock, type TestContext, test } from 'node:test'
import type { MoveMessage } from '../../src/events.ts'
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

const hasNoConnection: Release = () => null

describe('a request for a connection', () => {
  test('is withdrawn when another node handed the connection over', async t => {
    const nodeAwaitingArrival = waitingNode()
    const node = openNodes(t, {
      asking: hasNoConnection,
      giving: async () => ({ seq: 1 }),
      waiting: nodeAwaitingArrival.release,
    })
    assert.deepEqual(await node('asking').request('gone', REQUEST, () => {}), { seq: 1 })
    await new Promise(setImmediate)
    nodeAwaitingArrival.arrive()
    await node('waiting').released()
    assert.deepEqual(nodeAwaitingArrival.awaited, [true, false])
  })

  test('is withdrawn when nobody answered in time', async t => {
    const nodeAwaitingArrival = waitingNode()
    const node = openNodes(t, { asking: hasNoConnection, waiting: nodeAwaitingArrival.release })
    const pendingRequest = node('asking').request('waiting', REQUEST, () => {})
    await new Promise(setImmediate)
    mock.timers.tick(TIMEOUT_MS)
    assert.equal(await pendingRequest, null)
    await new Promise(setImmediate)
    nodeAwaitingArrival.arrive()
    await node('waiting').released()
    assert.deepEqual(nodeAwaitingArrival.awaited, [true, false])
  })

  test('is not answered once the asking node has left', async t => {
    const nodeAwaitingArrival = waitingNode()
    const node = openNodes(t, { asking: hasNoConnection, waiting: nodeAwaitingArrival.release })
    void node('asking').request('waiting', REQUEST, () => {})
    await new Promise(setImmediate)
    node.leave('asking')
    await new Promise(setImmediate)
    nodeAwaitingArrival.arrive()
    await node('waiting').released()
    assert.deepEqual(nodeAwaitingArrival.awaited, [true, false])
  })

  test('gets a state that is longer than one part as it was sent', async t => {
    const state = { text: 'ü'.repeat(300_000) }
    const node = openNodes(t, { asking: hasNoConnection, giving: async () => state })
    assert.deepEqual(await node('asking').request('giving', REQUEST, () => {}), state)
  })

  test('that comes back to its node after its timeout has no effect', async t => {
    const node = openNodes(t, { asking: hasNoConnection, silent: () => new Promise(() => {}) })
    let orderedCount = 0
    const onOrdered = () => void orderedCount++
    const pendingRequest = node('asking').request('silent', REQUEST, onOrdered)
    await new Promise(setImmediate)
    assert.equal(orderedCount, 1)
    mock.timers.tick(TIMEOUT_MS)
    assert.equal(await pendingRequest, null)
    node('asking').receive({ kind: 'release', from: 'asking', question: 1, ...REQUEST })
    assert.equal(orderedCount, 1)
  })

  test('does not wait for a node that has left', async t => {
    const nodeAwaitingArrival = waitingNode()
    const node = openNodes(t, { asking: hasNoConnection, waiting: nodeAwaitingArrival.release })
    const pendingRequest = node('asking').request('waiting', REQUEST, () => {})
    await new Promise(setImmediate)
    node.leave('waiting')
    assert.equal(await pendingRequest, null)
    nodeAwaitingArrival.arrive()
  })
})

test('connections are offered to no node that is leaving', async t => {
  const node = openNodes(t, { leaving: hasNoConnection, staying: hasNoConnection, here: hasNoConnection })
  assert.deepEqual(node('here').targetNodes(), ['leaving', 'staying'])
  node('leaving').announce('leaving')
  await new Promise(setImmediate)
  assert.deepEqual(node('here').targetNodes(), ['staying'])
})
