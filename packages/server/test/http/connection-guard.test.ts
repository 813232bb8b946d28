import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { NOISY_AFTER } from '../../src/http/refusal-counts.ts'
import { openServer, type ServerOverrides } from '../support/http.ts'
import { onceInTime } from '../support/patience.ts'

const GET_REQUEST = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'
const NOISY_NETWORK = '127.0.0.2'
const QUIET_NETWORK = '127.0.0.3'
const EVENT_BYTES = Buffer.from('data: x\n\n')
/** Enough failures to exceed the limit of one period, wherever the periods begin. */
const FAILURES = 2 * NOISY_AFTER

test('while many connections arrive, those of a network that was refused again and again are closed unanswered', async t => {
  const server = await open(t, { noisyRefusedAbove: 0 })
  await makeNoisy(server.port)
  assert.equal(await requestFrom(server.port, NOISY_NETWORK), '')
  assert.match(await requestFrom(server.port, QUIET_NETWORK), /^HTTP\/1\.1 200/)
})

test('connections of a network that aborts its requests or sends none are closed too', async t => {
  const server = await open(t, { noisyRefusedAbove: 0 })
  for (let n = 0; n < FAILURES; n++)
    await resetConnection(server, await openSocket(server.port, NOISY_NETWORK))
  assert.equal(await requestFrom(server.port, NOISY_NETWORK), '')
  assert.match(await requestFrom(server.port, QUIET_NETWORK), /^HTTP\/1\.1 200/)
})

test('while few connections arrive, also a network that was refused again and again is answered', async t => {
  const server = await open(t, { noisyRefusedAbove: Number.MAX_SAFE_INTEGER })
  await makeNoisy(server.port)
  assert.match(await requestFrom(server.port, NOISY_NETWORK), /^HTTP\/1\.1 200/)
})

test('connections of a trusted proxy are never refused', async t => {
  const server = await open(t, { noisyRefusedAbove: 0 }, { trustedProxies: [`${NOISY_NETWORK}/32`] })
  await makeNoisy(server.port)
  assert.match(await requestFrom(server.port, NOISY_NETWORK), /^HTTP\/1\.1 200/)
})

test('connections of a proxy in a private network that KEYWAY_TRUSTED_PROXIES does not list are never refused', async t => {
  const server = await open(t, { noisyRefusedAbove: 0 })
  await makeNoisy(server.port, 'X-Forwarded-For: 203.0.113.1\r\n')
  assert.match(await requestFrom(server.port, NOISY_NETWORK), /^HTTP\/1\.1 200/)
})

test('a stream that its reader closes does not count against the network', async t => {
  const pages = {
    fetch: () => new Response(new ReadableStream({ start: stream => stream.enqueue(EVENT_BYTES) })),
  }
  const server = await open(t, { noisyRefusedAbove: 0 }, { pages })
  for (let n = 0; n < FAILURES; n++) {
    const socket = await openSocket(server.port, NOISY_NETWORK)
    socket.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n')
    await onceInTime(socket, 'data')
    await resetConnection(server, socket)
  }
  assert.match(await requestFrom(server.port, NOISY_NETWORK), /^HTTP\/1\.1 200/)
})

test('a network whose connections were answered may open as many more as it likes', async t => {
  const server = await open(t, { noisyRefusedAbove: 0 })
  for (let n = 0; n < FAILURES; n++)
    assert.match(await requestFrom(server.port, QUIET_NETWORK), /^HTTP\/1\.1 200/)
})

type Server = Awaited<ReturnType<typeof open>>

async function open(t: TestContext, limits: { noisyRefusedAbove: number }, overrides: ServerOverrides = {}) {
  const server = await openServer('sqlite', t, { ...overrides, socketLimits: limits })
  const accepted: Socket[] = []
  server.server.on('connection', socket => accepted.push(socket))
  return { ...server, accepted }
}

/** Sends requests over one connection, which are all refused, until its network counts as noisy. */
async function makeNoisy(port: number, headers = ''): Promise<void> {
  const socket = await openSocket(port, NOISY_NETWORK)
  let received = ''
  socket.on('data', data => {
    received += data
  })
  const refusedRequest = `GET /v1/me HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
  for (let n = 1; n <= FAILURES; n++) {
    socket.write(refusedRequest)
    while (received.split('HTTP/1.1 401').length <= n) await onceInTime(socket, 'data')
  }
  socket.destroy()
}

/** Sends a request from this address; returns the beginning of the answer, '' if the connection closes without one. */
async function requestFrom(port: number, from: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  let received = ''
  socket.on('error', () => {})
  socket.on('data', data => {
    received += data
    socket.destroy()
  })
  socket.write(GET_REQUEST)
  await onceInTime(socket, 'close')
  return received
}

async function openSocket(port: number, from: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  socket.on('error', () => {})
  await onceInTime(socket, 'connect')
  return socket
}

/** Resets a connection, and waits until the service has noticed its end. */
async function resetConnection(server: Server, socket: Socket): Promise<void> {
  const serverSocket = await lastAccepted(server)
  const closed = new Promise<void>(resolve => serverSocket.once('close', () => resolve()))
  socket.resetAndDestroy()
  await closed
}

/** The server's side of the connection that was opened last. */
async function lastAccepted({ server, accepted }: Server): Promise<Socket> {
  if (accepted.length === 0) await onceInTime(server, 'connection')
  return accepted.pop()!
}
