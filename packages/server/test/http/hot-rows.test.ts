import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { until } from '../support/patience.ts'

const SMALL_POOL = 5
/** Pipelined requests per connection. */
const PIPELINE_LENGTH = 10
const NO_LIMIT = [{ window: 'minute' as const, limit: 1_000_000 }]

type Server = Awaited<ReturnType<typeof openServer>>

describe('contention for one row leaves database connections to others', {
  skip: postgresMissing(),
}, () => {
  test('exchanges are served while 2,000 sends over the limit are pipelined', async t => {
    const server = await open(t, [{ window: 'minute', limit: 3 }])
    const key = await keyOf(server)
    for (let sent = 0; sent < 3; sent++) await send(server)
    const pendingStatusCounts = pipeline(server, 2000, '/auth/send-magic-link', { email: 'hot@example.com' })
    assert.deepEqual(await exchangesDuring(server, key, pendingStatusCounts), new Set([200]))
    assert.equal((await pendingStatusCounts).get(429), 2000)
  })

  test('exchanges are served while 200 sends within the limit are pipelined to one address', async t => {
    const server = await open(t, NO_LIMIT)
    const key = await keyOf(server)
    const pendingStatusCounts = pipeline(server, 200, '/auth/send-magic-link', { email: 'hot@example.com' })
    assert.deepEqual(await exchangesDuring(server, key, pendingStatusCounts), new Set([200]))
    assert.equal((await pendingStatusCounts).get(200), 200)
  })

  test('exchanges are served while one link is verified 500 times at once, and it signs in once', async t => {
    const server = await open(t, NO_LIMIT)
    const key = await keyOf(server)
    const { token } = await server.sendTo('hot@example.com')
    const pendingStatusCounts = pipeline(server, 500, '/auth/verify-magic-link', {
      token,
      email: 'hot@example.com',
    })
    assert.deepEqual(await exchangesDuring(server, key, pendingStatusCounts), new Set([200]))
    const statusCounts = await pendingStatusCounts
    assert.equal(statusCounts.get(200), 1)
    assert.equal(statusCounts.get(503), undefined)
  })

  test('exchanges are served while one session is refreshed 200 times at once', async t => {
    const server = await open(t, NO_LIMIT)
    const key = await keyOf(server)
    const { tokens } = await server.signIn('hot@example.com')
    const pendingStatusCounts = pipeline(server, 200, '/auth/refresh', { refresh_token: tokens.refreshToken })
    assert.deepEqual(await exchangesDuring(server, key, pendingStatusCounts), new Set([200]))
    assert.equal((await pendingStatusCounts).get(200), 1)
  })

  test('a row locked by another process blocks at most one connection', async t => {
    const server = await open(t, NO_LIMIT)
    const key = await keyOf(server)
    await send(server)
    const otherStorage = await server.opened.reopen()
    const lockRelease = Promise.withResolvers<void>()
    const lockHolder = otherStorage.transaction(async tx => {
      await tx.magicLinks.lockSendBuckets(['address:hot@example.com'])
      await lockRelease.promise
    })
    const sends = Array.from({ length: 50 }, () => send(server))
    try {
      for (let call = 0; call < 50; call++) assert.equal(await exchange(server, key), 200)
      // The hub's sweep and heartbeat use connections for a moment, too.
      await until('at most two connections are in use', () => {
        const { connections, idle } = server.opened.storage.engine.load!()
        return connections - idle <= 2
      })
    } finally {
      lockRelease.resolve()
      await lockHolder
    }
    // On a busy machine the waiting sends may exceed the lock timeout and be answered 503, but a later send succeeds.
    await Promise.all(sends)
    assert.equal(await send(server), 200)
  })
})

function open(t: Parameters<typeof openServer>[1], limits: typeof NO_LIMIT) {
  return openServer('postgres', t, {
    limits,
    poolSize: SMALL_POOL,
    failureLimits: NO_LIMIT,
    exchangeLimits: NO_LIMIT,
    trustedProxies: ['127.0.0.1/32'],
  })
}

async function keyOf(server: Server): Promise<string> {
  const { tokens } = await server.signIn('neighbour@example.com')
  return (await server.createKey(tokens.accessToken)).key
}

async function send(server: Server): Promise<number> {
  return (await server.post('/auth/send-magic-link', { email: 'hot@example.com' })).status
}

async function exchange(server: Server, key: string): Promise<number> {
  return (await server.post('/auth/agent-token', { api_key: key })).status
}

/** Exchanges a key sequentially until the pipelined requests are answered, at least twenty times. */
async function exchangesDuring(
  server: Server,
  key: string,
  pipelined: Promise<unknown>,
): Promise<Set<number>> {
  let isOver = false
  void pipelined.then(() => {
    isOver = true
  })
  const statuses = new Set<number>()
  for (let call = 0; call < 20 || !isOver; call++) statuses.add(await exchange(server, key))
  return statuses
}

/** Writes all requests at once on many connections, and counts the statuses of the responses. */
async function pipeline(
  { port }: Server,
  count: number,
  path: string,
  body: object,
): Promise<Map<number, number>> {
  const json = JSON.stringify(body)
  const request = `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.1\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  const statuses = await Promise.all(
    Array.from({ length: count / PIPELINE_LENGTH }, () =>
      answersOf(connect(port, '127.0.0.1'), request.repeat(PIPELINE_LENGTH)),
    ),
  )
  const counts = new Map<number, number>()
  for (const status of statuses.flat()) counts.set(status, (counts.get(status) ?? 0) + 1)
  return counts
}

function answersOf(socket: Socket, requests: string): Promise<number[]> {
  return new Promise((resolve, reject) => {
    let received = ''
    const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(match => Number(match[1]))
    socket.on('error', reject)
    socket.on('close', () => resolve(statuses()))
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      if (statuses().length === PIPELINE_LENGTH) socket.destroy()
    })
    socket.write(requests)
  })
}
