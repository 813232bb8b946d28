import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  createFairQueue,
  type FairQueue,
  MAX_WAITING,
  MAX_WAITING_OF_A_FLOW,
  NOISY_AFTER,
} from '../../src/http/fair-queue.ts'
import { openServer } from '../support/http.ts'

/** Far more than starts on arrival. */
const FLOOD = 200

/** Adds `count` requests of a flow, each noting its flow when it is started. */
function add(queue: FairQueue, started: string[], id: string, count = 1, network = id): number {
  let accepted = 0
  for (let n = 0; n < count; n++) {
    if (
      queue.start(
        () => ({ id, network }),
        () => void started.push(id),
      )
    )
      accepted++
  }
  return accepted
}

async function untilStarted(started: readonly string[], count: number): Promise<void> {
  while (started.length < count) await nextTurn()
}

test('a request starts at once while nothing waits', () => {
  const started: string[] = []
  add(createFairQueue(), started, 'a')
  assert.deepEqual(started, ['a'])
})

test('a flow of many requests waits behind itself, not in front of another', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  add(queue, started, 'flood', FLOOD)
  const before = started.length
  add(queue, started, 'other')
  await untilStarted(started, FLOOD + 1)
  const position = started.indexOf('other') - before
  assert.ok(position <= 1, `started ${position} requests later`)
})

test('requests of one flow start in the order in which they came', async () => {
  const queue = createFairQueue()
  const started: number[] = []
  for (let n = 0; n < FLOOD; n++)
    queue.start(
      () => ({ id: 'a', network: 'a' }),
      () => void started.push(n),
    )
  while (started.length < FLOOD) await nextTurn()
  assert.deepEqual(
    started,
    Array.from({ length: FLOOD }, (_, n) => n),
  )
})

test('a thousand networks that are refused again and again yield to those that are not', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  const networks = Array.from({ length: 1000 }, (_, n) => `noisy-${n}`)
  for (const network of networks) for (let n = 0; n < NOISY_AFTER; n++) queue.refused(network)
  for (const network of networks) add(queue, started, network)
  const before = started.length
  add(queue, started, 'quiet-1')
  add(queue, started, 'quiet-2')
  await untilStarted(started, networks.length + 2)
  const position = started.indexOf('quiet-2') - before
  assert.ok(position <= 3, `started ${position} requests later`)
})

test('a noisy network is slowed down and never shut out', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  for (let n = 0; n < NOISY_AFTER; n++) queue.refused('noisy')
  const quiet = Array.from({ length: FLOOD }, (_, n) => `quiet-${n}`)
  for (const id of quiet) add(queue, started, id)
  const before = started.length
  add(queue, started, 'noisy')
  await untilStarted(started, FLOOD + 1)
  const position = started.indexOf('noisy') - before
  assert.ok(position <= 4, `started ${position} requests later`)
})

test('a flow with too many waiting requests is refused, and no other', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  const accepted = add(queue, started, 'flood', 10 * MAX_WAITING_OF_A_FLOW)
  assert.equal(accepted - started.length, MAX_WAITING_OF_A_FLOW)
  assert.equal(add(queue, started, 'other'), 1)
  await untilStarted(started, accepted + 1)
})

test('a network gains no turns by making up a credential for each request', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  for (let n = 0; n < FLOOD; n++) add(queue, started, `made-up-${n}`, 1, 'one')
  const before = started.length
  add(queue, started, 'other')
  await untilStarted(started, FLOOD + 1)
  const position = started.indexOf('other') - before
  assert.ok(position <= 1, `started ${position} requests later`)
})

test('within a network the requests of one credential wait behind themselves', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  add(queue, started, 'flood', FLOOD, 'one')
  const before = started.length
  add(queue, started, 'other', 1, 'one')
  await untilStarted(started, FLOOD + 1)
  const position = started.indexOf('other') - before
  assert.ok(position <= 1, `started ${position} requests later`)
})

test('the room of all is not exceeded by making up credentials, and others get in', async () => {
  const queue = createFairQueue()
  const started: string[] = []
  let accepted = 0
  for (let n = 0; n < 2 * MAX_WAITING; n++) accepted += add(queue, started, `made-up-${n}`, 1, 'one')
  assert.equal(accepted - started.length, MAX_WAITING)
  assert.equal(add(queue, started, 'other', 5), 5)
  await untilStarted(started, accepted + 5)
})

test('a connection that sends hundreds of requests without waiting for answers is closed', async t => {
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
