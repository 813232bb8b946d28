import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  createFairQueue,
  type FairQueue,
  MAX_QUEUED,
  MAX_QUEUED_PER_FLOW,
} from '../../src/http/fair-queue.ts'
import { NOISY_AFTER } from '../../src/http/refusal-counts.ts'
import { openServer } from '../support/http.ts'
import { caller } from '../support/services.ts'

/** Far above MAX_STARTED_ON_ARRIVAL, so that most requests of a flood wait in the queue. */
const FLOOD = 200

/**
 * Adds `count` requests of a flow, each of which records its flow in `started` when it starts, and in `refused` when it
 * is refused. Returns the number of those that were not refused at once.
 */
function add(
  queue: FairQueue,
  started: string[],
  id: string,
  count = 1,
  network = id,
  refused: string[] = [],
): number {
  let refusedCount = 0
  let isAdding = true
  const refuse = () => {
    refused.push(id)
    if (isAdding) refusedCount++
  }
  for (let n = 0; n < count; n++)
    queue.start(
      () => ({ id, network, onDisconnect: () => {} }),
      () => void started.push(id),
      refuse,
    )
  isAdding = false
  return count - refusedCount
}

/** For requests that this test expects to be accepted. */
function unexpectedRefusal(): never {
  throw new Error('a request was refused')
}

/** A queue with a clock that only `work` advances: real time would count pauses of a busy machine as work. */
function createTimedQueue() {
  let now = 0
  return {
    queue: createFairQueue(
      () => false,
      () => now,
    ),
    work(ms: number) {
      now += ms
    },
  }
}

async function untilStarted(started: readonly string[], count: number): Promise<void> {
  while (started.length < count) await nextTurn()
}

test('a request starts immediately while no other waits', () => {
  const startedIds: string[] = []
  add(
    createFairQueue(() => false),
    startedIds,
    'a',
  )
  assert.deepEqual(startedIds, ['a'])
})

test('requests of a busy flow do not delay other flows', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  add(queue, startedIds, 'flood', FLOOD)
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'other')
  await untilStarted(startedIds, FLOOD + 1)
  const position = startedIds.indexOf('other') - startedCountBefore
  assert.ok(position <= 1, `started ${position} requests later`)
})

test('requests of one flow start in order of arrival', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: number[] = []
  for (let n = 0; n < FLOOD; n++)
    queue.start(
      () => ({ id: 'a', network: 'a', onDisconnect: () => {} }),
      () => void startedIds.push(n),
      unexpectedRefusal,
    )
  while (startedIds.length < FLOOD) await nextTurn()
  assert.deepEqual(
    startedIds,
    Array.from({ length: FLOOD }, (_, n) => n),
  )
})

test('a thousand networks with many refusals yield to other networks', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  const networks = Array.from({ length: 1000 }, (_, n) => `noisy-${n}`)
  for (const network of networks) for (let n = 0; n < NOISY_AFTER; n++) queue.countRefusal(network)
  for (const network of networks) add(queue, startedIds, network)
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'quiet-1')
  add(queue, startedIds, 'quiet-2')
  await untilStarted(startedIds, networks.length + 2)
  const position = startedIds.indexOf('quiet-2') - startedCountBefore
  assert.ok(position <= 3, `started ${position} requests later`)
})

test('a noisy network still gets a share of the turns', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  for (let n = 0; n < NOISY_AFTER; n++) queue.countRefusal('noisy')
  const quietIds = Array.from({ length: FLOOD }, (_, n) => `quiet-${n}`)
  for (const id of quietIds) add(queue, startedIds, id)
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'noisy')
  await untilStarted(startedIds, FLOOD + 1)
  const position = startedIds.indexOf('noisy') - startedCountBefore
  assert.ok(position <= 4, `started ${position} requests later`)
})

test('a flow with too many waiting requests is refused, other flows are not', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  const acceptedCount = add(queue, startedIds, 'flood', 10 * MAX_QUEUED_PER_FLOW)
  assert.equal(acceptedCount - startedIds.length, MAX_QUEUED_PER_FLOW)
  assert.equal(add(queue, startedIds, 'other'), 1)
  await untilStarted(startedIds, acceptedCount + 1)
})

test('a network gains no turns by inventing a credential for each request', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  for (let n = 0; n < FLOOD; n++) add(queue, startedIds, `made-up-${n}`, 1, 'one')
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'other')
  await untilStarted(startedIds, FLOOD + 1)
  const position = startedIds.indexOf('other') - startedCountBefore
  assert.ok(position <= 1, `started ${position} requests later`)
})

test('within a network, requests of one credential do not delay others', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  add(queue, startedIds, 'flood', FLOOD, 'one')
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'other', 1, 'one')
  await untilStarted(startedIds, FLOOD + 1)
  const position = startedIds.indexOf('other') - startedCountBefore
  assert.ok(position <= 1, `started ${position} requests later`)
})

test('a network whose requests take long gets no more time than others, also if it sends one after the other', async () => {
  for (const count of [FLOOD, 1]) {
    const { queue, work } = createTimedQueue()
    let [slow, quick, added] = [0, 0, 0]
    const flow = (network: string) => () => ({ id: '', network, onDisconnect: () => {} })
    const addSlow = () => {
      added++
      const workSlowly = () => {
        slow++
        work(2)
        if (count === 1 && quick < FLOOD) queueMicrotask(addSlow)
      }
      queue.start(flow('slow'), workSlowly, unexpectedRefusal)
    }
    const workQuickly = () => {
      quick++
      work(0.2)
    }
    const addQuick = () => queue.start(flow('quick'), workQuickly, unexpectedRefusal)
    for (let n = 0; n < 2 * FLOOD; n++) addQuick()
    for (let n = 0; n < count; n++) addSlow()
    while (quick < FLOOD) await nextTurn()
    // If flows took turns by requests, as many slow requests as quick ones would have run. As they take turns by time,
    // a tenth as many run, and a few more before the first one is charged for its time.
    assert.ok(slow <= FLOOD / 5, `${slow} slow ones beside ${quick} quick ones`)
    // Remaining requests would disturb the next tests.
    while (quick < 2 * FLOOD || slow < added) await nextTurn()
  }
})

test('long work never starts on arrival, and is queued like requests', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  const flow = { id: 'a', network: 'a', onDisconnect: () => {} }
  queue.startLong(flow, () => void startedIds.push('a'), unexpectedRefusal)
  assert.deepEqual(startedIds, [])
  await untilStarted(startedIds, 1)
})

test('requests that take long start on arrival only until a slice is used up', () => {
  const { queue, work } = createTimedQueue()
  let startedCount = 0
  for (let n = 0; n < 10; n++)
    queue.start(
      () => ({ id: 'a', network: 'a', onDisconnect: () => {} }),
      () => {
        startedCount++
        work(2)
      },
      unexpectedRefusal,
    )
  assert.equal(startedCount, 1)
})

test('invented credentials do not exceed the total queue limit, and other networks are still accepted', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  let acceptedCount = 0
  for (let n = 0; n < 2 * MAX_QUEUED; n++) acceptedCount += add(queue, startedIds, `made-up-${n}`, 1, 'one')
  assert.equal(acceptedCount - startedIds.length, MAX_QUEUED)
  assert.equal(add(queue, startedIds, 'other', 5), 5)
  await untilStarted(startedIds, acceptedCount)
})

test('many networks together do not exceed the total queue limit: new ones take places of the longest queue', async () => {
  const queue = createFairQueue(() => false)
  const [startedIds, refusedIds]: string[][] = [[], []]
  const addFrom = (id: string, count: number) => add(queue, startedIds!, id, count, id, refusedIds)
  const networks = Array.from({ length: 100 }, (_, n) => `network ${n}`)
  // The first network alone fills the queue; each of the others tries to get as much.
  let addedCount = 0
  const queuedCount = () => addedCount - startedIds!.length - refusedIds!.length
  for (const network of networks) {
    for (let n = 0; n < 20; n++) add(queue, startedIds!, `${network}-${n}`, 1000, network, refusedIds)
    addedCount += 20_000
    assert.ok(queuedCount() <= MAX_QUEUED, `${queuedCount()} are queued`)
  }
  assert.equal(queuedCount(), MAX_QUEUED)
  const refusedCountBefore = refusedIds!.length
  assert.equal(addFrom('new', 1), 1)
  assert.equal(refusedIds!.length, refusedCountBefore + 1, 'one of another network is refused')
  assert.match(refusedIds!.at(-1)!, /^network /)
  addedCount++
  await untilStarted(startedIds!, addedCount - refusedIds!.length)
  const counts = networks.map(network => startedIds!.filter(id => id.startsWith(`${network}-`)).length)
  assert.ok(Math.min(...counts) >= 99 && Math.max(...counts) <= 101 + 16, `equal shares, not ${counts}`)
})

test('in a full queue of single requests a known network takes the place of a stranger, and no stranger that of another', async () => {
  const queue = createFairQueue(network => network.startsWith('known'))
  const startedIds: string[] = []
  const refusedIds: string[] = []
  const addFrom = (id: string) => add(queue, startedIds, id, 1, id, refusedIds)
  let n = 0
  while (n - startedIds.length < MAX_QUEUED) addFrom(`stranger ${n++}`)
  assert.equal(refusedIds.length, 0)
  assert.equal(addFrom('another stranger'), 0)
  assert.equal(addFrom('known'), 1)
  assert.deepEqual(refusedIds, ['another stranger', `stranger ${n - 1}`])
  await untilStarted(startedIds, n)
  assert.ok(startedIds.includes('known'))
})

test('a thousand networks that never signed in do not delay a network that did', async () => {
  const queue = createFairQueue(network => network === 'known')
  const startedIds: string[] = []
  for (let n = 0; n < 1000; n++) add(queue, startedIds, `stranger-${n}`)
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'known', 20)
  await untilStarted(startedIds, 1020)
  const countAhead = startedIds
    .slice(startedCountBefore, startedIds.lastIndexOf('known'))
    .filter(name => name !== 'known').length
  assert.ok(countAhead <= 10, `${countAhead} requests of strangers before the last of the known network`)
})

test('networks that never signed in are served while a known one always has requests', async () => {
  const queue = createFairQueue(network => network === 'known')
  const startedIds: string[] = []
  add(queue, startedIds, 'known', 1000)
  const startedCountBefore = startedIds.length
  for (let n = 0; n < 50; n++) add(queue, startedIds, `stranger-${n}`)
  await untilStarted(startedIds, 1050)
  const lastPosition = startedIds.findLastIndex(name => name !== 'known') - startedCountBefore
  assert.ok(lastPosition <= 4 * 51, `the last stranger waited for ${lastPosition} requests`)
})

test('a noisy network yields even if somebody signed in there', async () => {
  const queue = createFairQueue(() => true)
  const startedIds: string[] = []
  for (let n = 0; n < NOISY_AFTER; n++) queue.countRefusal('noisy')
  add(queue, startedIds, 'noisy', FLOOD)
  const startedCountBefore = startedIds.length
  add(queue, startedIds, 'other', FLOOD / 2)
  await untilStarted(startedIds, 1.5 * FLOOD)
  const countAhead = startedIds
    .slice(startedCountBefore, startedIds.lastIndexOf('other'))
    .filter(name => name === 'noisy').length
  assert.ok(countAhead <= FLOOD / 2 / 3 + 1, `${countAhead} requests of the noisy network came first`)
})

test('the time slice of a turn of the event loop includes work that continues in microtasks', async () => {
  const { queue, work } = createTimedQueue()
  let loopTurn = 0
  let finishedCount = 0
  const countByLoopTurn: number[] = []
  const workLater = async () => {
    for (let hop = 0; hop < 5; hop++) await null
    work(1)
    countByLoopTurn[loopTurn] = (countByLoopTurn[loopTurn] ?? 0) + 1
    finishedCount++
  }
  for (let n = 0; n < FLOOD; n++)
    queue.start(
      () => ({ id: 'a', network: 'a', onDisconnect: () => {} }),
      () => void workLater(),
      unexpectedRefusal,
    )
  while (finishedCount < FLOOD) {
    await nextTurn()
    loopTurn++
  }
  // Sixteen requests start on arrival: they finish in the first turn too, but its time slice does not limit them.
  countByLoopTurn[0] = (countByLoopTurn[0] ?? 16) - 16
  assert.equal(Math.max(...countByLoopTurn), 1, 'milliseconds of work in one turn')
})

test('queued requests have half of the time while other work fills the turns of the event loop', async () => {
  const { queue, work } = createTimedQueue()
  let finishedCount = 0
  for (let n = 0; n < FLOOD; n++) {
    queue.start(
      () => ({ id: 'a', network: 'a', onDisconnect: () => {} }),
      () => {
        work(0.1)
        finishedCount++
      },
      unexpectedRefusal,
    )
  }
  let turnCount = 0
  while (finishedCount < FLOOD) {
    await nextTurn()
    work(5)
    turnCount++
  }
  // Sixteen requests start on arrival, so 184 of 0.1 ms wait. With 1 ms of each turn, as they get without other work,
  // they would need some eighteen turns; here they get about as much of each turn as the other work takes.
  assert.ok(turnCount <= 5, `${turnCount} turns`)
})

test('a waiting request is removed when its client disconnects, which frees its place in the flow', async () => {
  const queue = createFairQueue(() => false)
  const startedIds: string[] = []
  add(queue, startedIds, 'a', FLOOD)
  const startedCountBefore = startedIds.length
  let disconnect = () => {}
  const flow = {
    id: 'a',
    network: 'a',
    onDisconnect: (removeWaiting: () => void) => {
      disconnect = removeWaiting
    },
  }
  const admit = () => {
    let isAdmitted = true
    queue.start(
      () => flow,
      () => void startedIds.push('gone'),
      () => {
        isAdmitted = false
      },
    )
    return isAdmitted
  }
  while (admit());
  assert.equal(admit(), false)
  disconnect()
  disconnect()
  assert.equal(admit(), true, 'one place is free')
  assert.equal(admit(), false, 'and no more than one')
  await untilStarted(startedIds, startedCountBefore + MAX_QUEUED_PER_FLOW)
  await nextTurn()
  assert.equal(startedIds.length, startedCountBefore + MAX_QUEUED_PER_FLOW)
})

/** Sends `count` requests, one after the other, and returns them as the server received them. */
async function receiveRequests(server: Awaited<ReturnType<typeof openServer>>, count: number, headers = {}) {
  const requests: IncomingMessage[] = []
  for (let n = 0; n < count; n++) {
    const [[incoming]] = (await Promise.all([
      once(server.server, 'request'),
      server.get('/livez', { headers: { Authorization: `Bearer ${n}`, ...headers } }),
    ])) as [[IncomingMessage], unknown]
    requests.push(incoming)
  }
  return requests
}

test('a request whose connection closed while it waited is not started', async t => {
  const server = await openServer('sqlite', t)
  const [incoming] = await receiveRequests(server, 1)
  const startedIds: number[] = []
  const connections = Array.from({ length: FLOOD }, () => new EventEmitter())
  for (const [n, connection] of connections.entries())
    server.app.admit(incoming!, connection, () => void startedIds.push(n), unexpectedRefusal)
  connections[FLOOD - 2]!.emit('close')
  while (!startedIds.includes(FLOOD - 1)) await nextTurn()
  assert.equal(startedIds.includes(FLOOD - 2), false)
})

test('a probe is accepted while the flow of its network is full', async t => {
  const server = await openServer('sqlite', t)
  const [arrived] = await receiveRequests(server, 1)
  const requestTo = (url: string) =>
    Object.assign(Object.create(arrived!), { url, headers: {} }) as IncomingMessage
  const [probe, other] = [requestTo('/livez'), requestTo('/v1/me')]
  const closedConnection = new EventEmitter()
  closedConnection.setMaxListeners(0)
  let [isFull, hasStarted] = [false, false]
  const fill = () => {
    isFull = true
  }
  while (!isFull) server.app.admit(other, closedConnection, () => {}, fill)
  const begin = () => {
    hasStarted = true
  }
  server.app.admit(probe, closedConnection, begin, unexpectedRefusal)
  while (!hasStarted) await nextTurn()
})

test('refused upgrades count as refusals, so that their network yields to others', async t => {
  const server = await openServer('sqlite', t, { trustedProxies: ['127.0.0.0/8'] })
  const noisyHeaders = { 'X-Forwarded-For': '203.0.113.1' }
  const upgradeRequest =
    'GET /hub HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Forwarded-For: 203.0.113.1\r\n\r\n'
  for (let n = 0; n < NOISY_AFTER; n++) assert.match(await server.raw(upgradeRequest), /^HTTP\/1\.1 401 /)
  const [flood] = await receiveRequests(server, 1, noisyHeaders)
  const [quiet] = await receiveRequests(server, 1, { 'X-Forwarded-For': '198.51.100.1' })
  const startedIds: string[] = []
  const admit = (incoming: IncomingMessage, name: string) => {
    const request = Object.assign(Object.create(incoming), { url: '/v1/me' }) as IncomingMessage
    server.app.admit(request, new EventEmitter(), () => void startedIds.push(name), unexpectedRefusal)
  }
  for (let n = 0; n < FLOOD; n++) admit(flood!, 'noisy')
  const startedCountBefore = startedIds.length
  for (let n = 0; n < FLOOD / 2; n++) admit(quiet!, 'quiet')
  while (startedIds.length < 1.5 * FLOOD) await nextTurn()
  const countAhead = startedIds
    .slice(startedCountBefore, startedIds.lastIndexOf('quiet'))
    .filter(name => name === 'noisy').length
  assert.ok(
    countAhead <= FLOOD / 2 / 3 + 1,
    `${countAhead} requests of the noisy network before the last of the quiet one`,
  )
})

test('a sign-in, a refresh, an exchange and a call with a key make their network known, refusals do not', async t => {
  const server = await openServer('sqlite', t, { trustedProxies: ['127.0.0.0/8'] })
  const headersFrom = (address: string) => ({ headers: { 'X-Forwarded-For': address } })
  const { tokens } = await server.signIn('ann@example.com')
  const { key } = await server.createKey(tokens.accessToken)
  const refreshAnswer = await server.post(
    '/auth/refresh',
    { refresh_token: tokens.refreshToken },
    headersFrom('203.0.113.1'),
  )
  const answers = [
    refreshAnswer,
    await server.post('/auth/agent-token', { api_key: key }, headersFrom('203.0.113.2')),
    await server.get('/v1/me', { token: key, ...headersFrom('203.0.113.3') }),
    await server.post('/auth/agent-token', { api_key: `svc_${'0'.repeat(32)}` }, headersFrom('203.0.113.4')),
    await server.post('/auth/refresh', { refresh_token: tokens.refreshToken }, headersFrom('203.0.113.5')),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 401, 401],
  )
  const knownNetworks = [1, 2, 3, 4, 5].filter(n => server.knownNetworks.isKnown(`203.0.113.${n}`))
  assert.deepEqual(knownNetworks, [1, 2, 3])
  assert.ok(server.knownNetworks.isKnown(caller().network), 'signed in')
})

test('a connection with hundreds of pipelined requests is closed', async t => {
  const server = await openServer('sqlite', t)
  const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1' })
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write('GET /v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(500))
  let answers = 0
  await new Promise<void>(resolve => {
    socket.on('data', chunk => {
      answers += String(chunk).split('HTTP/1.1 ').length - 1
    })
    socket.on('close', () => resolve())
  })
  assert.ok(answers < 500, `${answers} answers`)
})
