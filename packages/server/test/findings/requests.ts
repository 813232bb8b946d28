import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { withClient } from '../support/postgres.ts'
import {
  BOTH_ENGINES,
  type CleanUps,
  expectEqual,
  expectTrue,
  openSockets as open,
  pipeline,
  probe,
  start,
  supportedSettings,
  type Target,
} from './checkout.ts'

const SLOW_BODIES = 1200

probe(
  '1',
  '160 hostile queries of handshakes cost little of the event loop',
  BOTH_ENGINES,
  async (engine, t) => {
    const server = await start(engine, t)
    const cpuBefore = server.cpuMs()
    const query = 'eyJ'.repeat(5000)
    const request = `GET /hub?${query} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
    const sockets = open(server, 160, t)
    for (const socket of sockets) socket.resume().end(request)
    await Promise.all(sockets.map(socket => once(socket, 'close')))
    const cpuMs = server.cpuMs() - cpuBefore
    expectTrue(cpuMs < 2000, `${cpuMs} ms of CPU time`)
  },
)

for (const [what, path, type] of [
  ['forms', '/sign-in', 'application/x-www-form-urlencoded'],
  ['reports of mail providers', '/hooks/mail/postmark', 'application/json'],
] as const)
  probe('2', `calls are answered beside ${SLOW_BODIES} slow ${what}`, BOTH_ENGINES, async (engine, t) => {
    const server = await start(engine, t, { KEYWAY_MAIL_HOOK_SECRET: 'a-secret-of-a-mail-provider-12345' })
    await openSlowBodies(server, path, type, t)
    for (let n = 0; n < 20; n++)
      expectEqual(401, (await exchange(server)).status, 'an exchange of an unknown key')
  })

probe('4', 'sends over the limit leave database connections to others', ['postgres'], async (engine, t) => {
  const { server, key } = await openWithKey(engine, t)
  await useUpSends(server)
  let isOver = false
  const flood = pipelineSends(server, 4000, t).finally(() => {
    isOver = true
  })
  const counts = new Map<number, number>()
  while (!isOver)
    for (const { status } of await Promise.all(Array.from({ length: 10 }, () => exchange(server, key))))
      counts.set(status, (counts.get(status) ?? 0) + 1)
  await flood
  expectTrue(!counts.has(503), `exchanges meanwhile: ${JSON.stringify([...counts])}`)
})

probe('4', 'refused sends write nothing to the database', ['postgres'], async (engine, t) => {
  const { server } = await openWithKey(engine, t)
  await useUpSends(server)
  const rowsBefore = await countRowsWritten(server)
  await pipelineSends(server, 500, t)
  const rows = (await countRowsWritten(server)) - rowsBefore
  expectTrue(rows < 100, `${rows} rows written by 500 refusals`)
})

probe('8', 'metrics are not public behind a proxy that adds no header', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t, {
    KEYWAY_PUBLIC_URL: 'https://keyway.example.com',
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_MAIL_URL: 'smtp://127.0.0.1:9',
    KEYWAY_SUPPORT_EMAIL: 'help@example.com',
  })
  expectEqual(404, (await server.call('GET', '/metrics')).status, '/metrics')
})

probe('11', 'aborted posts of forms write few log lines', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t)
  const linesBefore = logLineCount(server)
  for (let round = 0; round < 4; round++) {
    const sockets = await openSlowBodies(server, '/sign-in', 'application/x-www-form-urlencoded', t, 50)
    for (const socket of sockets) socket.destroy()
    await wait(200)
  }
  await server.call('GET', '/livez')
  expectTrue(
    logLineCount(server) - linesBefore < 100,
    `${logLineCount(server) - linesBefore} lines for 200 requests`,
  )
})

probe('11', 'calls beside slow forms write few log lines', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t)
  await openSlowBodies(server, '/sign-in', 'application/x-www-form-urlencoded', t)
  const linesBefore = logLineCount(server)
  for (let n = 0; n < 200; n++) await exchange(server)
  expectTrue(
    logLineCount(server) - linesBefore < 100,
    `${logLineCount(server) - linesBefore} lines for 200 calls`,
  )
})

probe(
  '12',
  'one forged X-Forwarded-For does not change /readyz permanently',
  BOTH_ENGINES,
  async (engine, t) => {
    const server = await start(engine, t, { KEYWAY_TRUSTED_PROXIES: '192.0.2.1/32' })
    await server.call('GET', '/livez', { headers: { 'X-Forwarded-For': '203.0.113.7' } })
    const report = JSON.stringify((await server.call('GET', '/readyz')).body)
    expectTrue(!/forwarding header/.test(report), `/readyz: ${/a forwarding header.*?;/.exec(report)}`)
  },
)

probe('12', 'pongs count as frames', BOTH_ENGINES, async (engine, t) => {
  expectEqual(4429, await closeCodeAfterWrites(engine, t, socket => socket.pong(), 5000), '5,000 pongs')
})

probe('16', '600 pings at once close with 4429', BOTH_ENGINES, async (engine, t) => {
  expectEqual(4429, await closeCodeAfterWrites(engine, t, socket => socket.ping(), 600), '600 pings')
})

probe('16', 'owners without a connection have a limit of deliveries', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t, supportedSettings({ KEYWAY_HUB_DELIVERY_MIB: '1' }))
  const token = await server.signIn('ada@example.com')
  const path = '/v1/agents/0198c9f2-0000-7000-8000-000000000000/messages'
  const statuses = await pipeline(server, 2000, path, { data: 'x'.repeat(15_000) }, t, token)
  expectTrue(statuses.has('429'), `30 MB of messages at once: only ${[...statuses]}`)
})

probe('12', 'an address with an encoded word is refused', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t)
  const email = '=?utf-8?q?a=40evil.test?=@victim.test'
  expectEqual(400, (await server.post('/auth/send-magic-link', { email })).status, 'a send')
})

async function closeCodeAfterWrites(
  engine: (typeof BOTH_ENGINES)[number],
  t: CleanUps,
  write: (socket: Awaited<ReturnType<Target['agentOf']>>['socket']) => void,
  count: number,
): Promise<number | string> {
  const server = await start(engine, t)
  const { socket, closed } = await server.agentOf('ada@example.com')
  socket.on('error', () => {})
  for (let n = 0; n < count; n++) write(socket)
  return Promise.race([closed, wait(5000, 'still open', { ref: false })])
}

/** Opens requests from different networks whose bodies never arrive. */
async function openSlowBodies(server: Target, path: string, type: string, t: CleanUps, count = SLOW_BODIES) {
  const sockets = open(server, count, t)
  sockets.forEach((socket, n) => {
    socket.resume()
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost:${server.port}\r\nOrigin: ${server.url}\r\nX-Forwarded-For: 10.${n % 200}.${n >> 8}.1\r\nContent-Type: ${type}\r\nContent-Length: 9000\r\n\r\nemail=`,
    )
  })
  await Promise.all(sockets.map(socket => (socket.connecting ? once(socket, 'connect') : null)))
  await wait(1000)
  return sockets
}

const exchange = (server: Target, key = `svc_${'0'.repeat(32)}`) =>
  server.post('/auth/agent-token', { api_key: key })

async function openWithKey(engine: (typeof BOTH_ENGINES)[number], t: CleanUps) {
  const server = await start(engine, t, {
    KEYWAY_MAGIC_LINK_LIMITS: '3/minute',
    KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
  })
  const { key } = await server.createKey(await server.signIn('neighbour@example.com'))
  return { server, key }
}

async function useUpSends(server: Target): Promise<void> {
  for (let n = 0; n < 3; n++) await server.post('/auth/send-magic-link', { email: 'hot@example.com' })
}

async function pipelineSends(server: Target, count: number, t: CleanUps): Promise<void> {
  await pipeline(server, count, '/auth/send-magic-link', { email: 'hot@example.com' }, t)
}

/** Returns the number of rows that were inserted, changed or deleted in this database. */
function countRowsWritten({ settings }: Target): Promise<number> {
  return withClient(settings.KEYWAY_DATABASE_URL!, async client => {
    await wait(1500) // PostgreSQL's sessions report their statistics once a second
    const { rows } = await client.query(
      'select sum(n_tup_ins + n_tup_upd + n_tup_del)::int as written from pg_stat_user_tables',
    )
    return rows[0].written
  })
}

const logLineCount = (server: Target) => server.output().split('\n').length
