import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Absence, Event, Events, RelayCommand, RelayMessage } from '../../src/events.ts'
import { createRelay, RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { NO_RECEIVERS, type Outcome } from '../../src/hub/numbered-sends.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { createTestClock } from '../support/clock.ts'

const ANNOUNCE_TIMEOUT_MS = 300
const [HERE, A, B, C] = [1, 2, 3, 4].map(newId) as [string, string, string, string]

type WithoutSender<Message> = Message extends RelayMessage ? Omit<Message, 'from'> : never

/** The relay of a node with the peers A and B; everything that it does is recorded. Timers wait for `passTime`. */
function openRelay(t: TestContext, outcome: Outcome | Promise<Outcome> = NO_RECEIVERS) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const published: { event: Extract<Event, { type: 'hub.relay' }>; to: readonly string[] | undefined }[] = []
  const events = {
    async publish(event, to) {
      if (event.type === 'hub.relay') published.push({ event, to })
    },
  } as Events
  const state = { peers: [A, B], currentPeers: [A, B], absence: {} as Absence }
  /** What the relay passed on to the rest of the node, as texts. */
  const calls: string[] = []
  const clock = createTestClock()
  const relay = createRelay({
    clock,
    events,
    presence: {
      peers: () => state.peers,
      currentPeers: () => state.currentPeers,
      markAlive: (id, version) => void calls.push(`alive ${nameOf(id)} ${version}`),
      markLeft: id => void calls.push(`left ${nameOf(id)}`),
    },
    log: createLog('silent'),
    nodeId: HERE,
    execute(command, from, origin) {
      calls.push(`${command.op} of ${nameOf(from)}, ${origin.replace(from, nameOf(from))}`)
      return outcome
    },
    receiveNotice: (from, { op }) => void calls.push(`notice ${op} of ${nameOf(from)}`),
    receiveMove: ({ kind, from }) => void calls.push(`${kind} of ${nameOf(from)}`),
    absenceOf: () => state.absence,
    receiveAbsence: (from, { to }, { absent, lacks }) =>
      void calls.push(`absence of ${nameOf(from)} for ${to}: ${absent} ${lacks}`),
  })
  const receive = (from: string, message: WithoutSender<RelayMessage>, to = [HERE]) =>
    relay.receive({ type: 'hub.relay', to, message: { ...message, from } as RelayMessage })
  const settle = () => new Promise(setImmediate)
  /** Calls `request`, and returns an object whose `outcome` is null until that resolves. */
  const request = (to: readonly string[], userId = 'owner') => {
    const tracked = { outcome: null as Outcome | null }
    void relay.request(to, deliver(userId)).then(settled => {
      tracked.outcome = settled
    })
    return tracked
  }
  return {
    relay,
    clock,
    state,
    published,
    receive,
    request,
    settle,
    /** The calls since the last one. */
    calls: () => calls.splice(0),
    /** The messages that were published since the last call. */
    async sent() {
      await settle()
      return published.splice(0).map(({ event }) => event.message)
    },
    async passTime(ms: number) {
      clock.advance(ms)
      t.mock.timers.tick(ms)
      await settle()
    },
  }
}

const deliver = (userId = 'owner'): Extract<RelayCommand, { op: 'deliver' }> => ({
  op: 'deliver',
  userId,
  to: 'all',
  frame: 'x',
})

function nameOf(id: string): string {
  return ['this node', 'A', 'B', 'C'][[HERE, A, B, C].indexOf(id)] ?? id
}

describe('a request to other nodes', () => {
  test('has the sum of the counts of all nodes, each of which answers once', async t => {
    const { request, receive, settle, calls } = openRelay(t)
    const tracked = request([A, B])
    receive(A, { kind: 'answer', question: 1, count: 2, held: 1 })
    receive(A, { kind: 'answer', question: 1, count: 50, held: 50 })
    receive(C, { kind: 'answer', question: 1, count: 50, held: 50 })
    await settle()
    assert.equal(tracked.outcome, null, 'B has not answered')
    receive(B, { kind: 'answer', question: 1, count: 3, lacks: true })
    await settle()
    assert.deepEqual(tracked.outcome, { delivered: 5, held: 1 })
    assert.deepEqual(
      calls().filter(call => call.startsWith('absence')),
      ['absence of A for all: undefined undefined', 'absence of B for all: undefined true'],
    )
  })

  test('whose command delivers nothing passes on no absence', async t => {
    const { relay, receive, calls } = openRelay(t)
    const pending = relay.request([A], { op: 'disconnect', userId: 'owner', target: 'x' })
    receive(A, { kind: 'answer', question: 1, count: 1, absent: true })
    assert.equal((await pending).delivered, 1)
    assert.deepEqual(calls(), ['alive A undefined'])
  })

  test('resolves with what arrived in time, and ignores what comes later', async t => {
    const { request, receive, passTime } = openRelay(t)
    const tracked = request([A, B])
    receive(A, { kind: 'answer', question: 1, count: 1 })
    await passTime(RELAY_TIMEOUT_MS - 1)
    assert.equal(tracked.outcome, null)
    await passTime(1)
    receive(B, { kind: 'answer', question: 1, count: 1 })
    assert.deepEqual(tracked.outcome, { delivered: 1, held: 0 })
  })

  test('no longer waits for a node that has left, and still does for the others', async t => {
    const { request, receive, settle, calls } = openRelay(t)
    const [both, one] = [request([A, B]), request([A])]
    receive(A, { kind: 'left' })
    await settle()
    assert.deepEqual([both.outcome, one.outcome], [null, NO_RECEIVERS])
    receive(B, { kind: 'answer', question: 1, count: 4 })
    await settle()
    assert.deepEqual(both.outcome, { delivered: 4, held: 0 })
    assert.ok(calls().includes('left A'))
  })

  test('awaits no node that left an earlier one unanswered, until that sends something or has been away', async t => {
    const { relay, request, receive, settle, passTime, state } = openRelay(t)
    const isAwaited = async (node: string) => {
      const tracked = request([node])
      await settle()
      return tracked.outcome === null
    }
    request([A])
    await passTime(RELAY_TIMEOUT_MS)
    assert.deepEqual(relay.responsivePeers(), [B])
    assert.equal(await isAwaited(A), false)
    assert.equal(await isAwaited(B), true)
    await passTime(RELAY_TIMEOUT_MS)
    assert.deepEqual(relay.responsivePeers(), [], 'another timeout changes nothing for A')
    receive(B, { kind: 'notice', notice: { op: 'unwatch', userId: 'owner' } })
    assert.deepEqual(relay.responsivePeers(), [B])
    assert.equal(await isAwaited(B), true)
    state.peers = [B]
    await passTime(RELAY_TIMEOUT_MS)
    state.peers = [A, B]
    assert.deepEqual(relay.responsivePeers(), [A], 'A is alive again')
  })

  test('does not mark a node as silent that is not alive any more', async t => {
    const { relay, request, passTime, state } = openRelay(t)
    request([A])
    state.peers = [B]
    await passTime(RELAY_TIMEOUT_MS)
    state.peers = [A, B]
    assert.deepEqual(relay.responsivePeers(), [A, B])
  })

  test('is not made while ten thousand others are pending', async t => {
    const { relay, request, sent, settle, receive } = openRelay(t)
    for (let owner = 0; owner < 20; owner++) for (let n = 0; n < 500; n++) request([A], `${owner}`)
    const refused = request([A], 'another')
    const pendingPing = relay.request([A], { op: 'ping' })
    assert.equal((await sent()).length, 10_000)
    assert.deepEqual([refused.outcome, await pendingPing], [NO_RECEIVERS, NO_RECEIVERS])
    receive(A, { kind: 'answer', question: 7, count: 0 })
    const accepted = request([A], 'another')
    await settle()
    assert.equal(accepted.outcome, null)
  })

  test('resolves when this node stops', async t => {
    const { relay, request, receive, settle } = openRelay(t)
    const pending = [request([A, B]), request([B])]
    receive(A, { kind: 'answer', question: 1, count: 1 })
    relay.stop()
    await settle()
    assert.deepEqual(
      pending.map(({ outcome }) => outcome?.delivered),
      [1, 0],
    )
  })

  test('goes over the channels of the nodes that have one, and over that of all nodes to others', async t => {
    const { relay, state, published, settle, request } = openRelay(t)
    state.currentPeers = [A]
    request([A, B])
    request([B])
    relay.publish([HERE, A], { kind: 'leaving', from: HERE })
    await settle()
    assert.deepEqual(
      published.map(({ event, to }) => [event.to.map(nameOf), to?.map(nameOf)]),
      [
        [['A'], ['A']],
        [['B'], undefined],
        [['B'], undefined],
        [['this node', 'A'], undefined],
      ],
    )
  })

  test('says when it was accepted, in whole milliseconds of the monotonic clock', async t => {
    t.mock.method(performance, 'now', () => 1234.6)
    const { request, sent } = openRelay(t)
    request([A])
    assert.deepEqual(await sent(), [
      { kind: 'order', from: HERE, question: 1, sentAt: 1235, order: deliver() },
    ])
  })
})

test('everything before a request has arrived with its answer, also if an earlier one is answered later', async t => {
  const { relay, clock, request, receive } = openRelay(t)
  assert.equal(relay.receivedUntil, Number.NEGATIVE_INFINITY)
  request([A])
  clock.advance(100)
  const askedAt = clock.now()
  request([A])
  clock.advance(100)
  receive(A, { kind: 'answer', question: 2, count: 0 })
  assert.equal(relay.receivedUntil, askedAt)
  receive(A, { kind: 'answer', question: 1, count: 0 })
  assert.equal(relay.receivedUntil, askedAt)
})

describe('a node that catches up', () => {
  const pingsOf = (messages: RelayMessage[]) =>
    messages.map(message => {
      assert.deepEqual(message.kind === 'order' && message.order, { op: 'ping', relayVersion: 1 })
      return message.kind
    })

  test('asks all peers, once for all calls while an earlier request is pending', async t => {
    const { relay, receive, sent } = openRelay(t)
    let caughtUp = 0
    const note = () => void caughtUp++
    void relay.catchUp().then(note)
    assert.deepEqual(pingsOf(await sent()), ['order'])
    for (let n = 0; n < 3; n++) void relay.catchUp().then(note)
    assert.deepEqual(pingsOf(await sent()), [])
    for (const node of [A, B]) receive(node, { kind: 'answer', question: 1, count: 0 })
    assert.deepEqual(pingsOf(await sent()), ['order'])
    assert.equal(caughtUp, 1)
    for (const node of [A, B]) receive(node, { kind: 'answer', question: 2, count: 0 })
    assert.deepEqual(pingsOf(await sent()), [])
    assert.equal(caughtUp, 4)
    void relay.catchUp()
    assert.deepEqual(pingsOf(await sent()), ['order'], 'a later call asks again')
  })

  test('waits for a second at most, and only 300 ms when it starts', async t => {
    for (const [ms, begin] of [
      [RELAY_TIMEOUT_MS, 'catchUp'],
      [ANNOUNCE_TIMEOUT_MS, 'announce'],
    ] as const) {
      const { relay, passTime } = openRelay(t)
      let isDone = false
      void relay[begin]().then(() => {
        isDone = true
      })
      await passTime(0)
      await passTime(ms - 1)
      assert.equal(isDone, false, begin)
      await passTime(1)
      assert.equal(isDone, true, begin)
      t.mock.timers.reset()
    }
  })
})

describe('a message of another node', () => {
  test('shows that the node is alive, and its version if it has one, and is handled by its kind', t => {
    const { receive, calls } = openRelay(t)
    const notice = { op: 'unwatch', userId: 'owner' } as const
    const order = (command: RelayCommand) => ({ kind: 'order', question: 7, order: command }) as const
    const received: [WithoutSender<RelayMessage>, string[]][] = [
      [order({ op: 'ping', relayVersion: 1 }), ['alive A 1', 'ping of A, A?7']],
      [order({ op: 'ping' }), ['alive A undefined', 'ping of A, A?7']],
      [order(deliver()), ['alive A undefined', 'deliver of A, A?7']],
      [order({ ...deliver(), number: 9 }), ['alive A undefined', 'deliver of A, A:9']],
      [{ kind: 'answer', question: 1, count: 1 }, ['alive A undefined']],
      [{ kind: 'notice', notice }, ['alive A 1', 'notice unwatch of A']],
      [{ kind: 'leaving' }, ['alive A 1', 'leaving of A']],
      [{ kind: 'left' }, ['alive A 1', 'left A', 'left of A']],
    ]
    for (const [message, expected] of received) {
      receive(A, message)
      assert.deepEqual(calls(), expected, message.kind)
    }
  })

  test('that names another node, or is this node’s own, is ignored, except its request for a connection', t => {
    const { receive, calls } = openRelay(t)
    receive(A, { kind: 'order', question: 1, order: deliver() }, [B])
    receive(HERE, { kind: 'order', question: 1, order: deliver() })
    receive(HERE, { kind: 'left' })
    assert.deepEqual(calls(), [])
    const identity = { connectionId: 'c', userId: 'owner', keyId: 'k' }
    receive(HERE, { kind: 'release', question: 1, ...identity, secretHash: null, lastSeq: 0 })
    assert.deepEqual(calls(), ['release of this node'])
  })

  test('is answered with how many connections it reached, also if that is known later, and with an absence', async t => {
    const later = Promise.withResolvers<Outcome>()
    for (const outcome of [{ delivered: 2, held: 1 }, later.promise]) {
      const { receive, sent, state } = openRelay(t, outcome)
      state.absence = { lacks: true }
      receive(A, { kind: 'order', question: 5, order: deliver() })
      receive(A, { kind: 'order', question: 6, order: { op: 'ping' } })
      if ('then' in outcome) {
        assert.deepEqual(await sent(), [])
        later.resolve({ delivered: 2, held: 1 })
      }
      const answer = { kind: 'answer', from: HERE, count: 2, held: 1 }
      assert.deepEqual(await sent(), [
        { ...answer, question: 5, lacks: true },
        { ...answer, question: 6 },
      ])
      t.mock.timers.reset()
    }
  })

  test('that is too late is answered, and not delivered; other commands are executed at any time', async t => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const { receive, sent, calls } = openRelay(t, { delivered: 1, held: 0 })
    const receiveAt = (time: number, command: RelayCommand, sentAt?: number) => {
      now = time
      receive(A, { kind: 'order', question: 1, ...(sentAt !== undefined && { sentAt }), order: command })
    }
    receiveAt(0, deliver()) // Of a node of the previous version.
    receiveAt(0, { op: 'ping' }, 0)
    receiveAt(RELAY_TIMEOUT_MS, deliver(), 0)
    receiveAt(RELAY_TIMEOUT_MS + 1, deliver(), 0)
    receiveAt(RELAY_TIMEOUT_MS + 1, { op: 'ping' }, 0)
    assert.deepEqual(
      calls().filter(call => call.includes(' of A')),
      ['deliver', 'ping', 'deliver', 'ping'].map(op => `${op} of A, A?1`),
    )
    assert.deepEqual(
      (await sent()).map(message => message.kind === 'answer' && message.count),
      [1, 1, 1, 0, 1],
    )
  })
})
