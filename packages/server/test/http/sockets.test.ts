import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Client, makeKey, tokenOf } from '../hub/fixture.ts'
import { basicAuthorization, openServer } from '../support/http.ts'
import { onceInTime, until } from '../support/patience.ts'

const LIVEZ_REQUEST = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'
const LOGOUT_HEAD = 'POST /auth/logout HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'

const SMUGGLING_REQUESTS: Record<string, string> = {
  'length and chunks': `${LOGOUT_HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${LIVEZ_REQUEST}`,
  'an unknown transfer coding': `${LOGOUT_HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${LIVEZ_REQUEST}`,
  'a space before the colon': `${LOGOUT_HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${LIVEZ_REQUEST}`,
  'two lengths': `${LOGOUT_HEAD}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}${LIVEZ_REQUEST}`,
  'a signed length': `${LOGOUT_HEAD}Content-Length: +5\r\n\r\n{}   ${LIVEZ_REQUEST}`,
  'bare line feeds': `GET /livez HTTP/1.1\nHost: x\n\n${LIVEZ_REQUEST}`,
  'a bare carriage return': `GET /livez HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n${LIVEZ_REQUEST}`,
  'a folded header': `GET /livez HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n${LIVEZ_REQUEST}`,
  'a NUL in a header': `GET /livez HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n${LIVEZ_REQUEST}`,
  'two Hosts': `GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n`,
  'no Host': `GET /livez HTTP/1.1\r\n\r\n${LIVEZ_REQUEST}`,
  'a chunk size that lies': `${LOGOUT_HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n${LIVEZ_REQUEST}`,
}

for (const [name, bytes] of Object.entries(SMUGGLING_REQUESTS)) {
  test(`${name}: refused, and the request hidden behind it is never answered`, async t => {
    const server = await openServer('sqlite', t)
    const answer = await server.raw(bytes)
    assert.doesNotMatch(answer, /"alive"/)
    assert.doesNotMatch(answer, /^HTTP\/1\.1 5/)
    assert.match(answer, /^HTTP\/1\.1 4\d\d /)
  })
}

test('twenty pipelined requests are answered in order', async t => {
  const server = await openServer('sqlite', t)
  const paths = Array.from(
    { length: 20 },
    (_, index) => `/errors/${index % 2 ? 'not_found' : 'rate_limited'}`,
  )
  const requests = paths.map((path, index) => {
    const closeHeader = index === paths.length - 1 ? 'Connection: close\r\n' : ''
    return `GET ${path} HTTP/1.1\r\nHost: x\r\n${closeHeader}\r\n`
  })
  const codes = [...(await server.raw(requests.join(''))).matchAll(/"code":"(\w+)"/g)].map(match => match[1])
  assert.deepEqual(
    codes,
    paths.map(path => path.slice('/errors/'.length)),
  )
})

test('a body that arrived in several parts while its request waited is read whole', async t => {
  const server = await openServer('sqlite', t)
  const body = JSON.stringify({ refresh_token: 'x', unknown: 'y'.repeat(15_000) })
  const request = (header = '') =>
    `POST /auth/logout HTTP/1.1\r\nHost: x\r\n${header}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const answers = await server.raw(request().repeat(19) + request('Connection: close\r\n'))
  const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  assert.deepEqual(statuses, Array(20).fill(statuses[0]))
  assert.doesNotMatch(answers, /invalid_json/)
})

test('CONNECT is refused with a response, and a request after it is not handled', async t => {
  const server = await openServer('sqlite', t)
  for (const target of ['example.com:443', '127.0.0.1:22', 'x:1']) {
    const answer = await server.raw(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n${LIVEZ_REQUEST}`)
    assert.match(answer, /^HTTP\/1\.1 405 Method Not Allowed\r\n/)
    assert.match(answer, /\r\nAllow: GET, HEAD, .*\r\n(.*\r\n)*Connection: close\r\n\r\n/)
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))
    assert.deepEqual([problem.status, problem.code], [405, 'method_not_allowed'])
    assert.equal((await server.get(new URL(problem.type).pathname)).status, 200)
  }
  const resetClient = connect(server.port, '127.0.0.1')
  resetClient.write('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n')
  resetClient.resetAndDestroy()
  assert.equal((await server.get('/livez')).status, 200)
})

test('a connection with a slow body is closed', async t => {
  const timeouts = { headersMs: 2000, requestMs: 2000, checkMs: 50 }
  const server = await openServer('sqlite', t, { timeouts })
  const answer = await server.raw(`${LOGOUT_HEAD}Content-Length: 100\r\n\r\n{`)
  assert.ok(answer === '' || /^HTTP\/1\.1 408 /.test(answer), answer)
  assert.equal((await server.get('/livez')).status, 200)
})

test('slow headers are refused with 408', async t => {
  const timeouts = { headersMs: 200, requestMs: 20_000, checkMs: 50 }
  const server = await openServer('sqlite', t, { timeouts })
  const answer = await server.raw('GET /livez HTTP/1.1\r\nHost: x\r\nA: ')
  assert.match(answer, /^HTTP\/1\.1 408 /)
  assert.match(answer, /application\/problem\+json/)
})

test('17 KB of headers are refused with 431 and a problem document', async t => {
  const server = await openServer('sqlite', t)
  const answer = await server.raw(`GET /livez HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(17_000)}\r\n\r\n`)
  assert.match(answer, /^HTTP\/1\.1 431 /)
  assert.match(answer, /"request_id"/)
})

test('a missing Host and an unknown expectation are answered with a problem document or the normal response', async t => {
  const server = await openServer('sqlite', t)
  const answerWithoutHost = await server.raw('GET /livez HTTP/1.1\r\n\r\n')
  assert.match(answerWithoutHost, /^HTTP\/1\.1 400 /)
  assert.match(answerWithoutHost, /application\/problem\+json/)
  const answerToExpect = await server.raw(
    'GET /livez HTTP/1.1\r\nHost: x\r\nExpect: the-best\r\nConnection: close\r\n\r\n',
  )
  assert.match(answerToExpect, /^HTTP\/1\.1 200 /)
  for (const answer of [answerWithoutHost, answerToExpect]) {
    assert.match(answer, /^X-Request-Id: /im)
    assert.match(answer, /^Cache-Control: no-store/im)
  }
})

test('a request with 300 headers and an 8 KB cookie is answered', async t => {
  const server = await openServer('sqlite', t)
  const manyHeaders = Array.from({ length: 300 }, (_, index) => `A${index}: b\r\n`).join('')
  assert.match(
    await server.raw(`GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${manyHeaders}\r\n`),
    /^HTTP\/1\.1 (200|431)/,
  )
  const cookie = `Cookie: a=${'b'.repeat(8000)}\r\n`
  assert.match(
    await server.raw(`GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${cookie}\r\n`),
    /^HTTP\/1\.1 200/,
  )
})

test('malformed targets and Hosts are answered with a status below 500', async t => {
  const server = await openServer('sqlite', t)
  const targets = [
    '/%',
    '/%ZZ',
    '/v1/api-keys/%00',
    '/../../etc/passwd',
    '//evil.test/',
    '/v1/..%2f..',
    '*',
    'http://evil.test/livez',
    '/\\evil',
    `/${'a'.repeat(9000)}`,
    '/%ff%fe',
    '/?%',
  ]
  for (const target of targets) {
    const answer = await server.raw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 [234]/, target)
  }
  for (const host of ['', 'a b', 'user@evil.test', 'x:99999', '[::1', '%']) {
    const answer = await server.raw(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 [24]/, host)
  }
})

test('TRACE, CONNECT, unknown methods and method overrides have no effect', async t => {
  const server = await openServer('sqlite', t)
  for (const method of ['TRACE', 'PROPFIND', 'PURGE']) {
    assert.match(
      await server.raw(`${method} /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
      /^HTTP\/1\.1 4\d\d/,
    )
  }
  assert.doesNotMatch(await server.raw('CONNECT evil.test:80 HTTP/1.1\r\nHost: x\r\n\r\n'), /^HTTP\/1\.1 2/)
  const overrideAnswer = await server.call('GET', '/v1/sessions', {
    headers: { 'X-HTTP-Method-Override': 'DELETE' },
  })
  assert.equal(overrideAnswer.status, 401)
})

test('a client that disconnects during its body does not affect others', async t => {
  const server = await openServer('sqlite', t)
  const socket = connect(server.port, '127.0.0.1')
  await onceInTime(socket, 'connect')
  socket.write(`${LOGOUT_HEAD}Content-Length: 100\r\n\r\n{`)
  socket.resetAndDestroy()
  await onceInTime(socket, 'close')
  assert.equal((await server.get('/livez')).status, 200)
})

test('with too many connections the longest idle one is closed, and busy ones stay open', async t => {
  const server = await openServer('sqlite', t, { socketLimits: { sockets: 3 } })
  const silentSocket = await openSocket(t, server.port)
  const streamingSocket = await openSocket(t, server.port)
  const headers = Object.entries(basicAuthorization('shop', await server.registerApp('shop')))
  streamingSocket.write(
    `GET /v1/revocations HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n${headers.map(pair => pair.join(': ')).join('\r\n')}\r\n\r\n`,
  )
  await onceInTime(streamingSocket, 'data')
  for (let n = 0; n < 10; n++) {
    const socket = await openSocket(t, server.port)
    socket.write(LIVEZ_REQUEST)
    assert.match(String((await onceInTime(socket, 'data'))[0]), /^HTTP\/1\.1 200/)
  }
  await untilClosed(silentSocket)
  assert.equal(streamingSocket.destroyed, false)
})

test('connections that were upgraded after another request do not count, and are not subtracted twice', async t => {
  const server = await openServer('sqlite', t, { socketLimits: { sockets: 3 } })
  const upgradeRequest = 'GET /hub HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const slowRequest = 'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n'
  for (let n = 0; n < 5; n++)
    assert.match(await server.raw(slowRequest + upgradeRequest), /^HTTP\/1\.1 (200|426)/)
  const acceptedSockets = []
  for (let n = 0; n < 6; n++) {
    const nextConnection = once(server.server, 'connection')
    await openSocket(t, server.port)
    acceptedSockets.push((await nextConnection)[0] as Socket)
  }
  assert.deepEqual(
    acceptedSockets.map(({ destroyed }) => destroyed),
    [true, true, true, false, false, false],
  )
})

test('a live connection retains nothing of the request that opened it', async t => {
  const server = await openServer('sqlite', t)
  let request: WeakRef<IncomingMessage> | null = null
  server.server.on('upgrade', incoming => {
    request = new WeakRef(incoming)
  })
  const { user } = await server.signIn('ada@example.com')
  const token = await tokenOf(server, await makeKey(server, user.id))
  const client = new Client(`ws://127.0.0.1:${server.port}/hub`, token)
  await client.next('ready')
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  await until('the request to be collected', () => {
    collect()
    return request?.deref() === undefined
  })
  await client.flush()
})

type Server = Awaited<ReturnType<typeof openServer>>

/** More than the kernel buffers for a client that does not read. */
const pages = { fetch: () => new Response('x'.repeat(30_000_000)) }

/** The server's socket of a client that sends a request and never reads. */
async function askWithoutReading(t: TestContext, { server, port }: Server): Promise<Socket> {
  const pendingConnection = once(server, 'connection')
  const socket = await openSocket(t, port)
  socket.pause()
  const pendingRequest = once(server, 'request')
  socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n')
  await pendingRequest
  return (await pendingConnection)[0]
}

test('a connection with an unread response is closed in time', async t => {
  const limits = { timeouts: { checkMs: 50 }, socketLimits: { unreadMs: 200 } }
  await untilClosed(await askWithoutReading(t, await openServer('sqlite', t, { ...limits, pages })))
})

test('a connection that is inactive during a response is closed', async t => {
  const silentPages = { fetch: () => new Response(new ReadableStream({ start() {} })) }
  const server = await openServer('sqlite', t, { timeouts: { inactivityMs: 200 }, pages: silentPages })
  const socket = await openSocket(t, server.port)
  socket.write('GET /silent HTTP/1.1\r\nHost: x\r\n\r\n')
  socket.resume()
  await untilClosed(socket)
})

test('with too many unread bytes the connection with the most is closed', async t => {
  const limits = { timeouts: { checkMs: 50 }, socketLimits: { unreadBytes: 70_000_000 } }
  const sizes = [30_000_000, 40_000_000, 30_000_000]
  const pages = { fetch: () => new Response('x'.repeat(sizes.shift()!)) }
  const server = await openServer('sqlite', t, { ...limits, pages })
  const [first, largest, last] = [
    await askWithoutReading(t, server),
    await askWithoutReading(t, server),
    await askWithoutReading(t, server),
  ]
  await untilClosed(largest!)
  assert.deepEqual([first!.destroyed, last!.destroyed], [false, false])
})

async function openSocket(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  t.after(() => void socket.destroy())
  await onceInTime(socket, 'connect')
  return socket
}

async function untilClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await onceInTime(socket, 'close')
}
