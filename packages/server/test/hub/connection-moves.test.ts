import assert from 'node:assert/strict'
import { describe, mock, type TestContext, test } from 'node:test'
import type { MoveMessage } from '../../src/events.ts'
import {
  type ConnectionMoves,
  createConnectionMoves,
  type MoveRequest,
} from '../../src/hub/connection-moves.ts'

const TIMEOUT_MS = 2000
const WANTED: MoveRequest = { connectionId: 'c', userId: 'u', keyId: 'k', secretHash: null, lastSeq: 0 }

type Release = (request: MoveRequest, isAwaited: () => boolean) => Promise<object | null> | null

/** Nodes that read all messages at once, in one order. */
function openNodes(t: TestContext, releases: Record<string, Release>): (id: string) => ConnectionMoves {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setTimeout'] })
  const nodes = new Map<string, ConnectionMoves>()
  const ids = Object.keys(releases)
  for (const nodeId of ids) {
    const relay = {
      peers: () => ids.filter(id => id !== nodeId),
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
  return id => nodes.get(id)!
}

describe('a request for a connection', () => {
  test('is withdrawn when another node gave the connection up, so that none gives it up for nobody', async t => {
    const arrival = Promise.withResolvers<void>()
    const answered: boolean[] = []
    const node = openNodes(t, {
      asking: () => null,
      giving: async () => ({ seq: 1 }),
      waiting: async (_request, isAwaited) => {
        answered.push(isAwaited())
        await arrival.promise
        answered.push(isAwaited())
        return null
      },
    })
    assert.deepEqual(await node('asking').request('gone', WANTED, () => {}), { seq: 1 })
    await new Promise(setImmediate)
    arrival.resolve()
    await node('waiting').released()
    assert.deepEqual(answered, [true, false])
  })

  test('is withdrawn when nobody answered in time', async t => {
    const arrival = Promise.withResolvers<void>()
    let isStillAwaited = true
    const node = openNodes(t, {
      asking: () => null,
      waiting: async (_request, isAwaited) => {
        await arrival.promise
        isStillAwaited = isAwaited()
        return null
      },
    })
    const asked = node('asking').request('waiting', WANTED, () => {})
    await new Promise(setImmediate)
    mock.timers.tick(TIMEOUT_MS)
    assert.equal(await asked, null)
    await new Promise(setImmediate)
    arrival.resolve()
    await node('waiting').released()
    assert.equal(isStillAwaited, false)
  })

  test('is answered to no node that has left', async t => {
    const arrival = Promise.withResolvers<void>()
    let isStillAwaited = true
    const node = openNodes(t, {
      asking: () => null,
      waiting: async (_request, isAwaited) => {
        await arrival.promise
        isStillAwaited = isAwaited()
        return null
      },
    })
    void node('asking').request('waiting', WANTED, () => {})
    await new Promise(setImmediate)
    node('asking').announce('left')
    await new Promise(setImmediate)
    arrival.resolve()
    await node('waiting').released()
    assert.equal(isStillAwaited, false)
  })
})
