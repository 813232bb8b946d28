import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SECOND } from '../../src/clock.ts'
import { AgentConnection, type HubSocket } from '../../src/hub/agent-connection.ts'
import { DRAIN_AGENTS_MS } from '../../src/hub/drain.ts'
import { encodeMessage } from '../../src/hub/frame.ts'
import { KeptMessage, MAX_NODE_BYTES, MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import {
  DELIVERIES_PER_SECOND,
  DELIVERY_MIB_PER_SECOND,
  FRAME_ALLOWANCE,
  HANDSHAKE_ALLOWANCE,
  HandshakeLimits,
  MAX_PENDING_HANDSHAKES,
  newBucket,
  OwnerLimits,
  refill,
  takeFrame,
} from '../../src/hub/rate-limits.ts'
import { RESUME_SECONDS } from '../../src/hub/resume-token.ts'
import { COMPARE_MS, MAX_WATCHERS } from '../../src/hub/watches.ts'

const NOW = 1_000_000

function times(count: number, call: () => unknown): unknown[] {
  return Array.from({ length: count }, call)
}

test('the limits are what is documented', () => {
  assert.deepEqual(
    [
      FRAME_ALLOWANCE,
      DELIVERIES_PER_SECOND,
      DELIVERY_MIB_PER_SECOND,
      HANDSHAKE_ALLOWANCE,
      MAX_PENDING_HANDSHAKES,
      DRAIN_AGENTS_MS,
      COMPARE_MS,
      MAX_WATCHERS,
      RESUME_SECONDS,
    ],
    [
      { burst: 200, perSecond: 100 },
      5000,
      16,
      { burst: 1000, perSecond: 10 },
      5000,
      5 * SECOND,
      5 * SECOND,
      50,
      120,
    ],
  )
})

describe('a bucket', () => {
  test('begins full, refills with time and never above its burst', () => {
    const allowance = { burst: 10, perSecond: 4 }
    const bucket = newBucket(allowance, NOW)
    assert.equal(bucket.level, 10)
    bucket.level = -3
    assert.equal(refill(bucket, allowance, NOW + SECOND), 1)
    assert.equal(refill(bucket, allowance, NOW + SECOND), 1)
    assert.equal(refill(bucket, allowance, NOW + 2 * SECOND), 5)
    assert.equal(refill(bucket, allowance, NOW + 60 * SECOND), 10)
  })

  test('passes a burst, then refuses, and closes after as much again', () => {
    const frames = newBucket(FRAME_ALLOWANCE, NOW)
    const results = times(401, () => takeFrame(frames, NOW))
    assert.deepEqual(results, [...Array(200).fill('pass'), ...Array(200).fill('refuse'), 'close'])
    assert.equal(takeFrame(frames, NOW + 2 * SECOND), 'refuse')
    assert.equal(takeFrame(frames, NOW + 5 * SECOND), 'pass')
  })
})

describe('an owner', () => {
  test('may send frames and connect in proportion to the maximum number of connections, from a hundred on', () => {
    for (const [maxConnections, connections] of [
      [1, 100],
      [100, 100],
      [300, 300],
    ] as const) {
      const limits = new OwnerLimits(maxConnections)
      const burst = 10 * connections
      assert.equal(limits.takeFrame('ann', burst - 1, NOW), 'pass')
      assert.equal(limits.takeFrame('ann', 1, NOW), 'pass')
      assert.equal(limits.takeFrame('ann', burst, NOW), 'refuse')
      assert.equal(limits.takeFrame('ann', 1, NOW), 'close')
      assert.equal(limits.takeFrame('bob', 1, NOW), 'pass')
      // In one second the allowance is refilled by twice the number of connections.
      const fullLimits = new OwnerLimits(maxConnections)
      fullLimits.takeFrame('ann', burst, NOW)
      assert.equal(fullLimits.takeFrame('ann', 2 * connections, NOW + SECOND), 'pass')
      assert.equal(fullLimits.takeFrame('ann', 1, NOW + SECOND), 'refuse')

      const connectResults = times(5 * connections + 1, () => fullLimits.takeConnect('ann', NOW))
      assert.deepEqual(connectResults, [...Array(5 * connections).fill(true), false])
      assert.deepEqual(
        times(connections / 10 + 1, () => fullLimits.takeConnect('ann', NOW + SECOND)),
        [...Array(connections / 10).fill(true), false],
      )
    }
  })

  test('is charged twenty connects for a flood', () => {
    const limits = new OwnerLimits(100)
    limits.chargeFlood('ann', NOW)
    assert.equal(times(500, () => limits.takeConnect('ann', NOW)).filter(Boolean).length, 480)
  })

  test('may send until its deliveries or its bytes are used up, and again when they are back', () => {
    const limitsReachedByCount = new OwnerLimits(100, 2500)
    assert.equal(limitsReachedByCount.mayDeliver('ann', NOW), true)
    limitsReachedByCount.chargeDeliveries('ann', 4999, 1, NOW)
    assert.equal(limitsReachedByCount.mayDeliver('ann', NOW), true)
    limitsReachedByCount.chargeDeliveries('ann', 1, 1, NOW)
    assert.equal(limitsReachedByCount.mayDeliver('ann', NOW), false)
    assert.equal(limitsReachedByCount.mayDeliver('bob', NOW), true)
    assert.equal(limitsReachedByCount.mayDeliver('ann', NOW + 1), true)

    const limitsReachedByBytes = new OwnerLimits(100, 1_000_000, 8)
    limitsReachedByBytes.chargeDeliveries('ann', 16, 1024 * 1024 - 1, NOW)
    assert.equal(limitsReachedByBytes.mayDeliver('ann', NOW), true)
    limitsReachedByBytes.chargeDeliveries('ann', 1, 16 + 8 * 1024 * 1024, NOW)
    assert.equal(limitsReachedByBytes.mayDeliver('ann', NOW), false)
    assert.equal(limitsReachedByBytes.mayDeliver('ann', NOW + SECOND), false)
    assert.equal(limitsReachedByBytes.mayDeliver('ann', NOW + SECOND + 1), true)
  })

  test('is not evicted among thousands while one of its buckets is not full', () => {
    const limits = new OwnerLimits(100)
    for (const [index, spend] of [
      () => limits.takeFrame('frames', 1000, NOW),
      () => times(500, () => limits.takeConnect('connects', NOW)),
      () => limits.chargeDeliveries('deliveries', 10_000, 0, NOW),
      () => limits.chargeDeliveries('bytes', 1, 32 * 1024 * 1024, NOW),
    ].entries()) {
      assert.ok(index >= 0)
      spend()
    }
    for (let other = 0; other < 5000; other++) limits.takeFrame(`other ${other}`, 1, NOW)
    assert.equal(limits.takeFrame('frames', 1, NOW), 'refuse')
    assert.equal(limits.takeConnect('connects', NOW), false)
    assert.equal(limits.mayDeliver('deliveries', NOW), false)
    assert.equal(limits.mayDeliver('bytes', NOW), false)
  })
})

describe('a network', () => {
  test('may fail a thousand handshakes at once and ten a second, and successful ones do not count', () => {
    const limits = new HandshakeLimits()
    assert.equal(limits.pending, 0)
    assert.equal(times(1001, () => limits.take('net', NOW)).filter(Boolean).length, 1000)
    assert.equal(limits.take('other', NOW), true)
    limits.refund('net')
    limits.refund('unknown')
    assert.deepEqual([limits.take('net', NOW), limits.take('net', NOW)], [true, false])
    assert.equal(times(11, () => limits.take('net', NOW + SECOND)).filter(Boolean).length, 10)
  })

  test('is kept among ten thousand, and the least recently used is evicted', () => {
    const limits = new HandshakeLimits()
    const exhaust = (network: string) => times(1000, () => limits.take(network, NOW))
    exhaust('first')
    exhaust('second')
    for (let other = 0; other < 9_998; other++) limits.take(`other ${other}`, NOW)
    assert.equal(limits.take('first', NOW), false, 'and so used again')
    limits.take('one more', NOW)
    assert.equal(limits.take('first', NOW), false)
    assert.equal(limits.take('second', NOW), true, 'evicted')
  })
})

test('a connection with more than a MiB of unsent bytes is closed with 4429 instead of written to', () => {
  for (const isSlow of [false, true]) {
    const calls: unknown[] = []
    const socket = {
      readyState: 1,
      bufferedAmount: 1024 * 1024 + Number(isSlow),
      writeFrame: () => calls.push('write'),
      ping: () => calls.push('ping'),
      pong: () => calls.push('pong'),
      close: (code: number) => calls.push(code),
    }
    const host = { deregister() {}, hold() {}, logClose() {} }
    const log = new MessageLog('user', new MessageBudget())
    const claims = { agentId: 'user', keyId: 'key', scopes: null, expiresAt: NOW }
    const caller = { address: '', client: null }
    const connection = new AgentConnection(
      'id',
      socket as unknown as HubSocket,
      claims,
      caller,
      NOW,
      host,
      log,
    )
    connection.ping()
    connection.pong(Buffer.alloc(0))
    assert.equal(connection.write('{}'), !isSlow)
    assert.deepEqual(calls, isSlow ? [4429] : ['ping', 'pong', 'write'])
  }
})

test('a socket that is replaced by a resumed connection keeps at most 64 KiB that were not read', () => {
  const socketCalls = [64 * 1024, 64 * 1024 + 1].map(bufferedAmount => {
    const calls: string[] = []
    const socket = {
      bufferedAmount,
      close: () => calls.push('close'),
      terminate: () => calls.push('terminate'),
    }
    const host = { deregister() {}, hold() {}, logClose() {} }
    const log = new MessageLog('user', new MessageBudget())
    const claims = { agentId: 'user', keyId: 'key', scopes: null, expiresAt: NOW }
    const caller = { address: '', client: null }
    new AgentConnection('id', socket as unknown as HubSocket, claims, caller, NOW, host, log).handOver()
    return calls
  })
  assert.deepEqual(socketCalls, [['close'], ['terminate']])
})

test('kept messages take at most 64 MiB in total and half of the free memory for one user, and release it when they are dropped', () => {
  const budget = new MessageBudget()
  const frame = encodeMessage({ id: 'x', from: 'api', from_key_id: null, data: 'x'.repeat(60_000) })!
  const fillLogs = (userId: string) => {
    const logs = times(200, () => new MessageLog(userId, budget)) as MessageLog[]
    for (const log of logs) for (let n = 0; n < 20; n++) log.add(new KeptMessage(frame, `node:${n}`))
    return logs
  }
  const firstLogs = fillLogs('first')
  assert.ok(budget.total <= MAX_NODE_BYTES / 2)
  const otherLogs = times(9, () => null).flatMap((_, at) => fillLogs(`user ${at}`))
  assert.ok(budget.total <= MAX_NODE_BYTES)
  const newcomerLog = new MessageLog('newcomer', budget)
  newcomerLog.add(new KeptMessage(frame, 'node:1'))
  assert.equal(newcomerLog.floor, 0)
  for (const log of [...firstLogs, ...otherLogs, newcomerLog]) log.clear()
  assert.equal(budget.total, 0)
})
