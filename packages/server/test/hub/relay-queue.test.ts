import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Event,
  type Events,
  MAX_MOVE_PART_LENGTH,
  type RelayCommand,
  type RelayEvent,
  type RelayMessage,
} from '../../src/events.ts'
import { createRelay, RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { NO_RECEIVERS } from '../../src/hub/numbered-sends.ts'
import { createRelayQueue } from '../../src/hub/relay-queue.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { createTestClock } from '../support/clock.ts'

const MIB = 1024 * 1024
/** The largest frame. */
const FRAME = 'x'.repeat(64 * 1024)

/** The relay of a node with one peer. Events that the relay sends are published only after `release()`. */
function openRelay() {
  const published: Event[] = []
  let release = () => {}
  const untilReleased = new Promise<void>(resolve => {
    release = resolve
  })
  const events = {
    async publish(event) {
      await untilReleased
      published.push(event)
    },
  } as Events
  const executedCommands: RelayCommand[] = []
  const [nodeId, peer] = [newId(1), newId(1)]
  const clock = createTestClock()
  const relay = createRelay({
    clock,
    events,
    presence: { peers: () => [peer], currentPeers: () => [peer], markAlive: () => {}, markLeft: () => {} },
    log: createLog('silent'),
    nodeId,
    execute(command) {
      executedCommands.push(command)
      return NO_RECEIVERS
    },
    receiveNotice: () => {},
    receiveMove: () => {},
    absenceOf: () => ({}),
    receiveAbsence: () => {},
  })
  const frames = () =>
    published.flatMap(event =>
      event.type === 'hub.relay' && event.message.kind === 'order' && event.message.order.op === 'deliver'
        ? [event.message.order]
        : [],
    )
  const send = (userId: string) =>
    void relay.request([peer], { op: 'deliver', userId, to: 'all', frame: FRAME })
  return {
    relay,
    clock,
    nodeId,
    peer,
    executed: executedCommands,
    published,
    frames,
    send,
    release,
    settled: () => new Promise(setImmediate),
  }
}

test('the queued bytes of one owner are bounded, and exceed a burst of one connection', async () => {
  const { frames, send, release, settled } = openRelay()
  for (let n = 0; n < 500; n++) send('owner')
  release()
  await settled()
  const bytes = frames().length * FRAME.length
  assert.ok(bytes <= 16 * MIB, `${bytes} bytes`)
  assert.ok(frames().length >= 200, `${frames().length} messages`)
})

test('the queued bytes of all owners are bounded', async () => {
  const { frames, send, release, settled } = openRelay()
  for (let owner = 0; owner < 100; owner++) for (let n = 0; n < 90; n++) send(`flood ${owner}`)
  release()
  await settled()
  assert.ok(frames().length * FRAME.length <= 48 * MIB, `${frames().length} messages`)
})

test('ten owners with full queues leave room for the largest frame of another owner', async () => {
  const { frames, send, release, settled } = openRelay()
  for (let owner = 0; owner < 10; owner++) for (let n = 0; n < 500; n++) send(`flood ${owner}`)
  send('newcomer')
  release()
  await settled()
  assert.equal(frames().filter(({ userId }) => userId === 'newcomer').length, 1)
})

test('connections of one owner that move leave room for messages of others', async () => {
  const { relay, peer, published, frames, send, release, settled } = openRelay()
  const text = 'x'.repeat(MAX_MOVE_PART_LENGTH)
  const movedPart = { kind: 'released', from: newId(1), question: 1, part: 0, parts: 1, text } as const
  for (let n = 0; n < 500; n++) relay.publish([peer], movedPart, { owner: 'mover' })
  for (let n = 0; n < 10; n++) send('another')
  release()
  await settled()
  assert.equal(frames().length, 10)
  const movedBytes = (published.length - 10) * text.length
  assert.ok(movedBytes <= 16 * MIB, `${movedBytes} bytes`)
})

test('responses have room when messages have filled the queue', () => {
  const { relay, nodeId, peer, send } = openRelay()
  for (let owner = 0; owner < 100; owner++) for (let n = 0; n < 90; n++) send(`flood ${owner}`)
  const deliver = (userId: string) => {
    const order = { op: 'deliver', userId, to: 'all', frame: '' } as const
    return relay.publish([peer], { kind: 'order', from: nodeId, question: 1, order })
  }
  for (let owner = 0; deliver(`small ${owner}`); owner++);
  const answer = { kind: 'answer', from: nodeId, question: 1, count: 0 } as const
  assert.deepEqual(
    [1, 2, 3].map(() => relay.publish([peer], answer)),
    [true, true, true],
  )
})

test('a command whose caller timed out is not published', async () => {
  const { relay, peer, published, release, settled } = openRelay()
  void relay.announce() // Its publication ends with `release()`.
  await relay.request([peer], { op: 'deliver', userId: 'owner', to: 'all', frame: 'late' })
  release()
  await settled()
  assert.equal(published.length, 1)
})

test('a command to a node that is not awaited is not published later than one whose caller timed out', async () => {
  const { relay, clock, peer, frames, release, settled } = openRelay()
  const send = (frame: string) => relay.request([peer], { op: 'deliver', userId: 'owner', to: 'all', frame })
  await send('unanswered') // From now on the peer is not awaited.
  await send('late')
  clock.advance(RELAY_TIMEOUT_MS)
  await send('current')
  release()
  await settled()
  // The first command was already being published when its caller timed out.
  assert.deepEqual(
    frames().map(({ frame }) => frame),
    ['unanswered', 'current'],
  )
})

test('a message that a slow database publishes after its sender stopped waiting reaches nobody', async t => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const { relay, nodeId, peer, executed } = openRelay()
  const receiveAt = (time: number, frame: string, sentAt: number) => {
    now = time
    relay.receive({
      type: 'hub.relay',
      to: [nodeId],
      message: {
        kind: 'order',
        from: peer,
        question: 1,
        sentAt,
        order: { op: 'deliver', userId: 'owner', to: 'all', frame },
      },
    })
  }
  // The peer started a minute earlier, so its monotonic clock is a minute ahead.
  receiveAt(3, 'first', 60_000)
  receiveAt(3 + RELAY_TIMEOUT_MS, 'in time', 60_000)
  receiveAt(4 + RELAY_TIMEOUT_MS, 'late', 60_000)
  assert.deepEqual(
    executed.map(command => command.op === 'deliver' && command.frame),
    ['first', 'in time'],
  )
})

test('queued bytes are released once their event was published', async () => {
  const { frames, send, release, settled } = openRelay()
  release()
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 150; n++) send(`owner ${n % 10}`)
    await settled()
  }
  assert.equal(frames().length, 450)
})

test('five hundred commands of one owner await their answers at once, and others are not affected', async () => {
  const { relay, nodeId, peer, frames, release, settled } = openRelay()
  release()
  const send = (userId: string) =>
    void relay.request([peer], { op: 'deliver', userId, to: 'all', frame: 'x' })
  const countOf = (userId: string) => frames().filter(order => order.userId === userId).length
  for (let n = 0; n < 600; n++) send('owner')
  send('another')
  await settled()
  assert.deepEqual([countOf('owner'), countOf('another')], [500, 1])
  const answer = { kind: 'answer', from: peer, question: 1, count: 0 } as const
  relay.receive({ type: 'hub.relay', to: [nodeId], message: answer })
  for (let n = 0; n < 10; n++) send('owner')
  await settled()
  assert.equal(countOf('owner'), 501, 'one was answered')
})

/** A queue whose events are published, or fail to be, when the test says so, one at a time. */
function openQueue() {
  const published: { event: Event; to: readonly string[] | undefined }[] = []
  const warnings: unknown[] = []
  let pending: PromiseWithResolvers<void> | null = null
  const queue = createRelayQueue({
    events: {
      publish(event, to) {
        published.push({ event, to })
        pending = Promise.withResolvers()
        return pending.promise
      },
    },
    log: { warn: (fields: object) => void warnings.push(fields) } as never,
  })
  const event = (message: RelayMessage): RelayEvent => ({ type: 'hub.relay', to: ['a'], message })
  const settle = () => new Promise(setImmediate)
  return {
    queue,
    published,
    warnings,
    /** Adds an event that takes this many bytes of the queue, of an owner or of none. */
    add(bytes: number, owner: string | null = null) {
      const text = 'x'.repeat((bytes - 1024) / 2)
      const message = { kind: 'released', from: 'b', question: 1, part: 0, parts: 1, text } as const
      return queue.add(event(message), { owner })
    },
    addMessage: (message: RelayMessage) => queue.add(event(message)),
    async publishNext() {
      await settle()
      pending!.resolve()
      await settle()
    },
    async failNext(error: Error) {
      await settle()
      pending!.reject(error)
      await settle()
    },
  }
}

const deliveryOf = (userId: string, length: number): RelayMessage => {
  const order = { op: 'deliver', userId, to: 'all', frame: 'x'.repeat(length) } as const
  return { kind: 'order', from: 'b', question: 1, order }
}

test('an owner may use half of the free queue, to the byte, and has it back once its events were published', async () => {
  const { add, publishNext } = openQueue()
  assert.equal(add(48 * MIB + 2, 'ann'), false)
  assert.equal(add(48 * MIB, 'ann'), true)
  assert.equal(add(1024, 'ann'), false)
  assert.equal(add(24 * MIB + 2, 'bob'), false)
  assert.equal(add(24 * MIB, 'bob'), true)
  await publishNext()
  assert.equal(add(36 * MIB + 2, 'ann'), false)
  assert.equal(add(36 * MIB, 'ann'), true)
})

test('what counts for no owner may use the whole queue and 16 MiB more, to the byte', async () => {
  const { add, publishNext } = openQueue()
  assert.equal(add(112 * MIB + 2), false)
  assert.equal(add(112 * MIB), true)
  assert.equal(add(1024), false)
  await publishNext()
  assert.equal(add(1024), true)
})

test('an event counts with what it carries: a frame or text with two bytes a character, a change with 1024', async () => {
  const change = { left: 'c', reason: 'closed' }
  const notice = (changes: number): RelayMessage => {
    const version = { after: 1, version: 2, part: 0, parts: 1 }
    const carried = { changes: Array.from({ length: changes }, () => change), ...version }
    return { kind: 'notice', from: 'b', notice: { op: 'presence', userId: 'ann', ...carried } }
  }
  const free = 4 * 1024
  for (const [message, fits] of [
    [notice(3), true],
    [notice(4), false],
    [{ kind: 'notice', from: 'b', notice: { op: 'unwatch', userId: 'ann' } }, true],
    [deliveryOf('ann', 3 * 512), true],
    [deliveryOf('ann', 3 * 512 + 1), false],
  ] as const) {
    const { add, addMessage } = openQueue()
    add(96 * MIB - 2 * free) // Leaves twice the bytes of the largest event that one owner may add.
    assert.equal(addMessage(message), fits, JSON.stringify(message).slice(0, 80))
  }
  const { add, addMessage } = openQueue()
  add(96 * MIB)
  assert.equal(addMessage({ kind: 'notice', from: 'b', notice: { op: 'unwatch', userId: 'ann' } }), false)
  const disconnect = { op: 'disconnect', userId: 'ann', target: 'x' } as const
  assert.equal(addMessage({ kind: 'order', from: 'b', question: 1, order: disconnect }), true)
})

test('events are published one at a time, also after one that failed, each on the channels that it is for', async () => {
  const { queue, published, publishNext, failNext } = openQueue()
  const event = { type: 'hub.relay', to: ['a', 'b'], message: { kind: 'left', from: 'c' } } as const
  queue.add(event, { onOwnChannels: true })
  queue.add(event, { isCurrent: () => false })
  queue.add(event)
  let isFlushed = false
  void queue.flush().then(() => {
    isFlushed = true
  })
  await failNext(new Error('the database is down'))
  assert.equal(isFlushed, false)
  await publishNext()
  assert.equal(isFlushed, true)
  assert.deepEqual(
    published.map(({ to }) => to),
    [['a', 'b'], undefined],
  )
})

test('failures to publish are logged with their error, once a minute', async t => {
  let now = 5000
  t.mock.method(performance, 'now', () => now)
  const { add, warnings, failNext } = openQueue()
  const errors = ['first', 'same minute', 'a minute later'].map(text => new Error(text))
  for (const [index, at] of [5000, 64_999, 65_000].entries()) {
    now = at
    add(1024)
    await failNext(errors[index]!)
  }
  assert.deepEqual(warnings, [{ err: errors[0] }, { err: errors[2] }])
})
