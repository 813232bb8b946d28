import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AgentFrame } from '@keyway/sdk/protocol'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { AgentConnection, type HubSocket } from '../../src/hub/agent-connection.ts'
import { createFrames } from '../../src/hub/frames.ts'
import { MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { FRAME_ALLOWANCE, OwnerLimits } from '../../src/hub/rate-limits.ts'
import { createTestClock } from '../support/clock.ts'
import { caller } from '../support/services.ts'
import { textOf } from './support/raw-frames.ts'

/** What an owner with at most 100 connections may send at once, in frames and in connects. */
const OWNER_FRAMES = 1000
const OWNER_CONNECTS = 500

/** The frames of one owner's agents; what they cause is recorded as texts. */
function openFrames() {
  const clock = createTestClock()
  const ownerLimits = new OwnerLimits(100)
  const calls: string[] = []
  const catchUp = Promise.withResolvers<void>()
  const state = { isDraining: false }
  const frames = createFrames({
    clock,
    ownerLimits,
    renewals: { renew: async (_, token) => void calls.push(`renew ${token}`) },
    messages: {
      sendFrom: async (_, { id }) => void calls.push(`send ${id}`),
      refuse: (_, { code, id, seq }) => void calls.push(`refuse ${code} ${id} ${seq}`),
    },
    watches: {
      watch: (_, id) => void calls.push(`watch ${id}`),
      unwatch: () => void calls.push('unwatch'),
    },
    relay: { catchUp: () => catchUp.promise },
    isDraining: () => state.isDraining,
  })
  const open = (scopes: string[] | null = null) => {
    const sent: string[] = []
    const stream = { removeAllListeners() {}, resume() {}, end: () => sent.push('end') }
    const socket = {
      readyState: 1,
      bufferedAmount: 0,
      stream,
      writeFrame(frame: Buffer) {
        const { type, code, id } = JSON.parse(textOf(frame))
        sent.push([type, code, id].filter(Boolean).join(' '))
      },
      pong: (data: Buffer) => sent.push(`protocol pong ${data}`),
      close: (code: number, reason: string) => sent.push(`${code} ${reason}`),
    }
    const claims = { agentId: 'ann', keyId: 'key', scopes: scopes && toScopes(scopes), expiresAt: 0 }
    const host = { deregister() {}, hold() {}, logClose() {} }
    const log = new MessageLog('ann', new MessageBudget())
    const hubSocket = socket as unknown as HubSocket
    const connection = new AgentConnection('c', hubSocket, claims, caller(), clock.now(), host, log)
    connection.state = 'open'
    const receive = (frame: AgentFrame | object) =>
      frames.receive(connection, Buffer.from(JSON.stringify(frame)), false)
    return { connection, receive, sent: () => sent.splice(0) }
  }
  return {
    frames,
    clock,
    ownerLimits,
    open,
    state,
    catchUp,
    calls: () => calls.splice(0),
    /** The frames that the owner may still send now. */
    ownersFrames() {
      let count = 0
      while (ownerLimits.takeFrame('ann', 1, clock.now()) === 'pass') count++
      return count
    },
  }
}

describe('the cost of a frame for its owner', () => {
  test('is one, one more for each 8 KiB, and ten more for a renewal', () => {
    for (const [frame, cost] of [
      [{ type: 'ping' }, 1],
      [{ type: 'unwatch' }, 1],
      [{ type: 'token', token: 'x' }, 11],
      [{ type: 'ping', more: 'x'.repeat(8192 - '{"type":"ping","more":""}'.length - 1) }, 1],
      [{ type: 'ping', more: 'x'.repeat(8192 - '{"type":"ping","more":""}'.length) }, 2],
      [{ type: 'ping', more: 'x'.repeat(60_000) }, 8],
    ] as const) {
      const { open, ownersFrames } = openFrames()
      open().receive(frame)
      assert.equal(ownersFrames(), OWNER_FRAMES - cost, JSON.stringify(frame).slice(0, 30))
    }
  })

  test('is one for a ping or pong of the protocol', () => {
    const { frames, open, ownersFrames } = openFrames()
    const { connection, sent } = open()
    frames.receivePing(connection, Buffer.from('a'))
    frames.receivePong(connection)
    assert.deepEqual([sent(), ownersFrames()], [['protocol pong a'], OWNER_FRAMES - 2])
  })

  test('is twenty connects, too, if the connection is closed for it', () => {
    const { open, ownerLimits, clock } = openFrames()
    const { receive, sent } = open()
    for (let n = 0; n < 2 * FRAME_ALLOWANCE.burst; n++) receive({ type: 'ping' })
    assert.ok(sent().every(text => text === 'pong' || text === 'error rate_limited'))
    receive({ type: 'ping' })
    assert.deepEqual(sent(), ['4429 rate_limited', 'end'])
    let connects = 0
    while (ownerLimits.takeConnect('ann', clock.now())) connects++
    assert.equal(connects, OWNER_CONNECTS - 20)
  })
})

describe('a frame above the limit of its connection', () => {
  test('is refused with its id, and has no effect; a protocol ping is not answered', () => {
    const { frames, open, calls } = openFrames()
    const { connection, receive, sent } = open()
    for (let n = 0; n < FRAME_ALLOWANCE.burst; n++) receive({ type: 'unwatch' })
    calls()
    receive({ type: 'send', id: 'a', to: 'all', data: 1 })
    receive({ type: 'send', id: 'b', to: 'all' })
    receive({ type: 'token', token: 'x' })
    frames.receivePing(connection, Buffer.from('a'))
    assert.deepEqual(
      [sent(), calls()],
      [['error rate_limited a', 'error rate_limited b', 'error rate_limited'], []],
    )
  })

  test('or of its owner is refused too', () => {
    const { open, ownersFrames } = openFrames()
    const { receive, sent } = open()
    ownersFrames()
    receive({ type: 'ping' })
    assert.deepEqual(sent(), ['error rate_limited'])
  })

  test('is refused as no frame at all if it is none', () => {
    const { open } = openFrames()
    const { receive, sent } = open()
    for (let n = 0; n < FRAME_ALLOWANCE.burst; n++) receive({ type: 'unwatch' })
    receive([])
    assert.deepEqual(sent(), ['4400 bad_message'])
  })
})

describe('a frame', () => {
  test('before `ready` is refused, except a ping', async () => {
    const { open, calls } = openFrames()
    const { connection, receive, sent } = open()
    connection.state = 'pending'
    receive({ type: 'ping' })
    receive({ type: 'send', id: 'a', to: 'all', data: 1 })
    receive({ type: 'token', token: 'x' })
    receive({ type: 'unwatch' })
    assert.deepEqual(
      [sent(), calls()],
      [['pong', 'error invalid_frame a', 'error invalid_frame', 'error invalid_frame'], []],
    )
  })

  test('needs the scope of its kind, except an answer to a request of the API', () => {
    const send = (to: string, more: object = {}) => ({ type: 'send', id: to, to, data: 1, ...more })
    const frames = [
      send('all', { seq: 3 }),
      send('all', { reply_to: 'r' }),
      send('api.node'),
      send('api.node', { reply_to: 'r' }),
      { type: 'watch', id: 'w' },
      { type: 'unwatch' },
      { type: 'token', token: 't' },
    ]
    const callsWith = (scopes: string[]) => {
      const { open, calls } = openFrames()
      const { receive } = open(scopes)
      for (const frame of frames) receive(frame)
      return calls()
    }
    const refused = 'refuse insufficient_scope'
    const always = ['unwatch', 'renew t']
    assert.deepEqual(callsWith(['agent:connect']), [
      ...[`${refused} all 3`, `${refused} all undefined`, `${refused} api.node undefined`, 'send api.node'],
      ...[`${refused} w undefined`, ...always],
    ])
    assert.deepEqual(callsWith(['agents:send', 'agents:read']), [
      ...['send all', 'send all', 'send api.node', 'send api.node', 'watch w', ...always],
    ])
  })

  test('that is invalid is refused with its id and number', () => {
    const { open, calls } = openFrames()
    open().receive({ type: 'send', id: 'a', to: 'all', seq: 2 })
    assert.deepEqual(calls(), ['refuse invalid_frame a 2'])
  })

  test('of a draining node is answered with `pong` once everything before it has arrived', async () => {
    const { open, state, catchUp } = openFrames()
    const { receive, sent } = open()
    state.isDraining = true
    receive({ type: 'ping' })
    await Promise.resolve()
    assert.deepEqual(sent(), [])
    catchUp.resolve()
    await new Promise(setImmediate)
    assert.deepEqual(sent(), ['pong'])
  })

  test('shows that the agent is alive', () => {
    const { frames, open, clock } = openFrames()
    const { connection, receive } = open()
    for (const arrive of [
      () => receive({ type: 'ping' }),
      () => receive([]),
      () => frames.receivePing(connection, Buffer.alloc(0)),
      () => frames.receivePong(connection),
    ]) {
      clock.advance(10)
      arrive()
      assert.equal(connection.lastReceivedAt, clock.now())
    }
  })
})
