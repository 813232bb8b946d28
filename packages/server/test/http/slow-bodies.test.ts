import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { formOf } from '../../src/http/app.ts'
import type { PageBindings } from '../../src/http/http-ports.ts'
import type { Route } from '../../src/http/route.ts'
import { createInbox } from '../../src/mail/inbox.ts'
import { createPages } from '../../src/web/pages.ts'
import { basicAuthorization, openServer } from '../support/http.ts'
import { MAIL_HOOK_SECRET, openHttpPorts } from '../support/http-ports.ts'
import { onceInTime } from '../support/patience.ts'
import { caller } from '../support/services.ts'

const EXCHANGE = { api_key: `svc_${'a'.repeat(32)}` }
const JSON_TYPE = { 'Content-Type': 'application/json' }
const FORM_TYPE = { 'Content-Type': 'application/x-www-form-urlencoded' }
const ID = '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11'
const PARAMS: Record<string, string> = { provider: 'resend', app_id: 'hub' }
const MAX_CONCURRENT_CALLS = 2

type Server = Awaited<ReturnType<typeof openServer>>

/** Paths whose routes read no body at all. */
const WITHOUT_BODY = [
  '/oauth/userinfo',
  '/v1/me/restore',
  '/v1/admin/users/{user_id}/clear-limits',
  '/v1/admin/mails/{mail_id}/send-again',
  '/v1/admin/webhooks/{webhook_id}/test',
  '/v1/admin/deliveries/{delivery_id}/send-again',
]

test('a slow body does not count as a concurrent call, on any API route with a body', async t => {
  const server = await openServer('sqlite', t, {
    maxConcurrentCalls: MAX_CONCURRENT_CALLS,
    failureLimits: [],
  })
  const { user, tokens } = await server.signIn('ada@example.com')
  // Callers without the right to use a route are refused before their body is read.
  await server.users.setRole(user.id, 'admin')
  const appHeaders = basicAuthorization('shop', await server.registerApp('shop'))
  const routesWithBody = server.app.routes.filter(route => route.body || route.raw)
  const postRoutes = server.app.routes.filter(({ method }) => method === 'POST')
  assert.deepEqual(
    postRoutes.filter(route => !routesWithBody.includes(route)).map(({ path }) => path),
    WITHOUT_BODY,
    'every other POST takes a body',
  )
  for (const route of routesWithBody) {
    const type = route.form?.only ? FORM_TYPE : JSON_TYPE
    const credentials = credentialsFor(route, tokens.accessToken, appHeaders, server.clock.now())
    const headers = { ...type, ...credentials }
    await assertIncompleteBodiesBlockNobody(t, server, route.method, pathOf(route), headers)
  }
})

test('a slow form does not count as a concurrent call, on any page with a form', async t => {
  const pages = await openPages(t)
  const server = await openServer('sqlite', t, {
    maxConcurrentCalls: MAX_CONCURRENT_CALLS,
    failureLimits: [],
    pages,
  })
  const formPaths = pages.routes.filter(({ method }) => method === 'POST').map(({ path }) => path)
  assert.ok(formPaths.includes('/sign-in') && formPaths.length > 10, 'the pages were found')
  for (const path of formPaths) {
    const headers = { ...FORM_TYPE, 'Sec-Fetch-Site': 'same-origin' }
    await assertIncompleteBodiesBlockNobody(t, server, 'POST', path.replaceAll(/:\w+/g, ID), headers)
  }
})

test('with too many slow bodies the oldest is closed and a new one accepted', async t => {
  const intake = { bodies: 3, bodiesPerNetwork: 3, bytes: 1e6 }
  const server = await openServer('sqlite', t, { intake, trustedProxies: ['127.0.0.0/8'] })
  const senders = []
  for (let n = 1; n <= 4; n++) senders.push(await startBody(t, server, `192.0.2.${n}`))
  const [first, ...others] = senders
  await untilClosed(first!)
  assert.deepEqual(
    others.map(({ destroyed }) => destroyed),
    [false, false, false],
  )
  assert.equal((await server.post('/auth/agent-token', EXCHANGE)).status, 401)
})

test('with too many slow bodies the network with the most loses one, and a network with one keeps it', async t => {
  const trustedProxies = ['127.0.0.0/8']
  for (const intake of [
    { bodies: 4, bodiesPerNetwork: 3, bytes: 1e6 },
    { bodies: 100, bodiesPerNetwork: 100, bytes: 5000 },
  ]) {
    const server = await openServer('sqlite', t, { intake, trustedProxies })
    const honestSocket = await startBody(t, server, '198.51.100.1')
    const greedySockets = []
    for (let n = 0; n < 6; n++) greedySockets.push(await startBody(t, server, `192.0.2.${1 + (n % 2)}`))
    await untilClosed(greedySockets[0]!)
    assert.equal(honestSocket.destroyed, false)
  }
})

test('with too many slow bodies of one network only bodies of that network are closed', async t => {
  const intake = { bodies: 100, bodiesPerNetwork: 2, bytes: 1e6 }
  const server = await openServer('sqlite', t, { intake, trustedProxies: ['127.0.0.0/8'] })
  const otherSocket = await startBody(t, server, '198.51.100.1')
  const ownSockets = []
  for (let n = 0; n < 3; n++) ownSockets.push(await startBody(t, server, '192.0.2.1'))
  await untilClosed(ownSockets[0]!)
  assert.deepEqual(
    [otherSocket, ownSockets[1]!, ownSockets[2]!].map(({ destroyed }) => destroyed),
    [false, false, false],
  )
})

test('the memory of incomplete bodies is limited', async t => {
  const intake = { bodies: 100, bodiesPerNetwork: 100, bytes: 40_000 }
  const server = await openServer('sqlite', t, { intake })
  const bodyPart = `{"api_key": "${'x'.repeat(12_000)}`
  const senders = []
  for (let n = 0; n < 4; n++) senders.push(await startBody(t, server, '192.0.2.1', bodyPart))
  await untilClosed(senders[0]!)
  assert.equal(senders[3]!.destroyed, false)
})

test('a closed body no longer counts, and a body in a thousand chunks of one byte is read', async t => {
  const intake = { bodies: 1, bodiesPerNetwork: 1, bytes: 1e6 }
  const server = await openServer('sqlite', t, { intake })
  for (let n = 0; n < 5; n++) {
    const abandonedSocket = await startBody(t, server, '192.0.2.1')
    abandonedSocket.resetAndDestroy()
  }
  const body = JSON.stringify(EXCHANGE).padEnd(1000)
  const chunks = [...body].map(character => `1\r\n${character}\r\n`)
  const socket = connect(server.port, '127.0.0.1')
  t.after(() => void socket.destroy())
  const head = `POST /auth/agent-token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
  await new Promise(resolve => socket.write(head, resolve))
  for (const chunk of chunks.slice(0, 20)) await new Promise(resolve => socket.write(chunk, resolve))
  const answer = once(socket, 'data')
  socket.write(`${chunks.slice(20).join('')}0\r\nX-Trailer: y\r\n\r\n`)
  assert.match(String((await answer)[0]), /^HTTP\/1\.1 401 .*invalid_api_key/s)
})

test('a mail report with invalid headers is refused before its body is read', async t => {
  const server = await openServer('sqlite', t)
  for (const [provider, headers] of [
    ['postmark', ''],
    ['postmark', `Authorization: Basic ${Buffer.from('keyway:wrong').toString('base64')}\r\n`],
    ['resend', ''],
    ['resend', `svix-id: a\r\nsvix-timestamp: 1\r\nsvix-signature: v1,x\r\n`],
  ]) {
    const answer = await server.raw(
      `POST /hooks/mail/${provider} HTTP/1.1\r\nHost: x\r\n${headers}Content-Type: application/json\r\nContent-Length: 200000\r\n\r\n{`,
    )
    assert.match(answer, /^HTTP\/1\.1 401 /, `${provider} ${headers}`)
  }
})

test('a report of a mail provider has at most 256 KiB', async t => {
  const server = await openServer('sqlite', t)
  const headers = basicAuthorization('keyway', MAIL_HOOK_SECRET)
  const postReport = (bytes: number) => server.post('/hooks/mail/postmark', '{}'.padEnd(bytes), { headers })
  assert.equal((await postReport(256 * 1024)).status, 204)
  assert.equal((await postReport(256 * 1024 + 1)).status, 413)
})

/** Sends twenty incomplete bodies. Asserts that another call is handled while the server still awaits these. */
async function assertIncompleteBodiesBlockNobody(
  t: TestContext,
  server: Server,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<void> {
  const lines = Object.entries({ Host: 'x', ...headers, 'Content-Length': '50' })
  const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n{`
  const slowSockets = Array.from({ length: 20 }, () =>
    connect(server.port, '127.0.0.1').on('error', () => {}),
  )
  t.after(() => slowSockets.forEach(socket => void socket.destroy()))
  const refusals: string[] = []
  for (const socket of slowSockets) socket.on('data', data => refusals.push(data.toString()))
  await Promise.all(slowSockets.map(socket => new Promise(resolve => socket.write(head, resolve))))
  const answer = await server.post('/auth/agent-token', EXCHANGE)
  assert.equal(answer.status, 401, `${method} ${path}`)
  assert.deepEqual(refusals, [], `${method} ${path} waits for its body`)
  for (const socket of slowSockets) socket.destroy()
}

async function startBody(t: TestContext, server: Server, from: string, part = '{'): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1').on('error', () => {})
  t.after(() => void socket.destroy())
  socket.write(
    `POST /auth/agent-token HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${from}\r\nContent-Type: application/json\r\nContent-Length: 15000\r\n\r\n${part}`,
  )
  // Two calls over other connections: when the second is answered, the server has accepted this connection and read the
  // bytes above.
  await server.get('/livez')
  await server.get('/livez')
  return socket
}

async function untilClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await onceInTime(socket, 'close')
}

function pathOf({ path }: Route): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => PARAMS[name] ?? ID)
}

function credentialsFor(
  { access, raw, idempotencyKey }: Route,
  accessToken: string,
  appHeaders: Record<string, string>,
  now: number,
): Record<string, string> {
  const idempotency: Record<string, string> = idempotencyKey ? { 'Idempotency-Key': 'a'.repeat(20) } : {}
  const timestamp = String(Math.floor(now / 1000))
  if (raw) return { 'svix-id': 'a', 'svix-timestamp': timestamp, 'svix-signature': 'v1,x' }
  if (access === 'public') return idempotency
  return { ...idempotency, ...(access === 'app' ? appHeaders : { Authorization: `Bearer ${accessToken}` }) }
}

async function openPages(t: TestContext) {
  const services = await openHttpPorts('sqlite', t, {})
  const { hub, store, lifetimes, publicUrl } = services
  return createPages({
    ...services,
    agents: hub,
    api: {
      document: () => ({ tags: [], paths: {} }),
      mayTry: () => false,
      call: async () => ({ status: 403 }),
    },
    exportOf: () => new ReadableStream(),
    examination: { quick: async () => [], whole: async () => [] },
    failures: { refusal: (_caller, error) => error, assertMayGuess: () => {} },
    inbox: createInbox(services),
    lifetimes,
    maxActiveKeys: 100,
    productName: 'Keyway',
    brand: services.config.brand,
    publicUrl,
    securityEvents: store.securityEvents,
    stopping: new AbortController().signal,
    supportEmail: 'support@example.com',
    callerOf: () => caller(),
    formOf: (_request, env) => formOf(env as PageBindings),
    requestIdOf: () => '0190a5b8-7c3e-7abc-8def-0123456789ab',
    isLocal: () => true,
  } satisfies Parameters<typeof createPages>[0])
}
