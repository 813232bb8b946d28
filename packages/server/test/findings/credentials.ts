import { setTimeout as wait } from 'node:timers/promises'
import {
  BOTH_ENGINES,
  bodyWithStatus,
  expectEqual,
  expectTrue,
  output,
  probe,
  start,
  type Target,
} from './checkout.ts'

const WRONG_CODE = '00000000'

probe('5', 'rotations with overlap do not pass the limit of active keys', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t, { KEYWAY_MAX_ACTIVE_KEYS: '3' })
  const token = await server.signIn('ada@example.com')
  const keys = [await server.createKey(token), await server.createKey(token), await server.createKey(token)]
  for (let { id } of [...keys])
    for (let n = 0; n < 3; n++) {
      const rotation = await server.call('POST', `/v1/api-keys/${id}/rotate`, {
        token,
        body: { overlap_seconds: 3600 },
      })
      if (rotation.status !== 201) break
      keys.push(rotation.body)
      id = rotation.body.id
    }
  const statuses = await Promise.all(keys.map(({ key }) => exchange(server, key)))
  const exchangingCount = statuses.filter(status => status === 200).length
  expectTrue(exchangingCount <= 4, `at most 4 keys exchange, and ${exchangingCount} do`)
})

probe('5', 'the creation of keys that are revoked at once is limited', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t)
  const token = await server.signIn('ada@example.com')
  for (let n = 0; n < 101; n++) {
    const { status, body } = await server.call('POST', '/v1/api-keys', { token, body: {} })
    if (status === 429) return
    await server.call('DELETE', `/v1/api-keys/${body.id}`, { token })
  }
  expectEqual(429, 201, '101 keys')
})

probe('5', 'successful exchanges of a key are limited', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t)
  const { key } = await server.createKey(await server.signIn('ada@example.com'))
  const statuses = new Set<number>()
  for (let n = 0; n < 80; n++)
    for (const status of await Promise.all(Array.from({ length: 10 }, () => exchange(server, key))))
      statuses.add(status)
  expectEqual([200, 429], [...statuses], '800 exchanges')
})

probe(
  '9',
  'over the failure limit of a network not even the right code is checked',
  BOTH_ENGINES,
  async (engine, t) => {
    const server = await start(engine, t, { KEYWAY_FAILURE_LIMITS: '2/minute' })
    const mailedCode = await requestCode(server, 'ada@example.com')
    for (let n = 0; n < 3; n++) await typeCode(server, mailedCode, WRONG_CODE, '203.0.113.1')
    expectEqual(429, await typeCode(server, mailedCode, mailedCode.code, '203.0.113.1'), 'the right code')
  },
)

probe(
  '9',
  'wrong codes from many networks to many addresses are limited',
  BOTH_ENGINES,
  async (engine, t) => {
    const server = await start(engine, t)
    const checkedFlags = []
    for (let n = 0; n < 40; n++) {
      const mailedCode = await requestCode(server, `guest${n}@example.com`, `10.${n}.0.1`)
      checkedFlags.push((await typeCode(server, mailedCode, WRONG_CODE, `10.${n}.0.1`)) !== 429)
    }
    const count = checkedFlags.filter(Boolean).length
    expectTrue(count <= 22, `at most 22 of 40 wrong codes are checked, and ${count} are`)
  },
)

probe('9', 'failures are counted above an IPv6 /64', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t, { KEYWAY_FAILURE_LIMITS: '1/minute' })
  const statuses = []
  for (let n = 0; n < 20; n++)
    statuses.push(await exchange(server, `svc_${'0'.repeat(32)}`, `2001:db8:1:${n}::1`))
  expectEqual(429, statuses.at(-1), 'a failure of the twentieth /64 of a /48')
})

probe('9', 'all +tags of a mailbox share its limit of mails', BOTH_ENGINES, async (engine, t) => {
  const server = await start(engine, t, { KEYWAY_MAGIC_LINK_LIMITS: '1/minute' })
  await server.post('/auth/send-magic-link', { email: 'ada+1@example.com' })
  const { status } = await server.post('/auth/send-magic-link', { email: 'ada+2@example.com' })
  expectEqual(429, status, 'a second +tag')
})

probe(
  '12',
  'an open revocation stream ends with the secret that opened it',
  BOTH_ENGINES,
  async (engine, t) => {
    const server = await start(engine, t)
    await output(server.settings, 'apps', 'add', 'shop', '--name', 'Shop')
    const createSecret = async () => (await output(server.settings, 'apps', 'secret', 'shop')).trim()
    const headers = { ...basicHeaders(await createSecret()), Accept: 'text/event-stream' }
    const abort = new AbortController()
    t.after(() => abort.abort())
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/revocations`, {
      headers,
      signal: abort.signal,
    })
    const streamEnd = (async () => {
      for await (const _ of answer.body!) void _
      return 'ended'
    })()
    for (let n = 0; n < 2; n++) await createSecret()
    expectEqual(
      'ended',
      await Promise.race([streamEnd, wait(15_000, 'open', { ref: false })]),
      'the stream after 15 s',
    )
  },
)

async function exchange(server: Target, key: string, network = '203.0.113.1'): Promise<number> {
  const headers = { 'X-Forwarded-For': network }
  return (await server.post('/auth/agent-token', { api_key: key }, headers)).status
}

async function requestCode(server: Target, email: string, network = '203.0.113.1') {
  const headers = { 'X-Forwarded-For': network }
  const { login_id } = await bodyWithStatus(200, server.post('/auth/send-magic-link', { email }, headers))
  return { email, login_id, code: (await server.mailTo(email)).code }
}

async function typeCode(
  server: Target,
  { email, login_id }: { email: string; login_id: string },
  code: string,
  network: string,
): Promise<number> {
  const headers = { 'X-Forwarded-For': network }
  return (await server.post('/auth/verify-magic-link', { email, login_id, code }, headers)).status
}

const basicHeaders = (secret: string) => ({
  Authorization: `Basic ${Buffer.from(`shop:${secret}`).toString('base64')}`,
})
