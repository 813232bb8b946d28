import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openServer } from '../support/http.ts'

const EXCHANGE = { api_key: `svc_${'a'.repeat(32)}` }

test('calls beyond the limit of concurrent calls are refused immediately with Retry-After, and probes are answered', async t => {
  const server = await openServer('sqlite', t, { maxConcurrentCalls: 5, failureLimits: [] })
  const released = Promise.withResolvers<void>()
  const { transaction } = server.storage
  server.storage.transaction = (work, landed) => released.promise.then(() => transaction(work, landed))
  const send = (n: number) => server.post('/auth/send-magic-link', { email: `n${n}@example.com` })
  const calls = Array.from({ length: 6 }, (_, n) => send(n))
  // Five of the calls wait, so the first answer is that of the refused one, whichever it is.
  const refusal = await Promise.race(calls)
  assert.equal(refusal.status, 503)
  assert.equal(refusal.body.code, 'unavailable')
  assert.equal(refusal.headers.get('retry-after'), '1')
  assert.equal((await server.get('/livez')).status, 200)
  assert.equal((await server.get('/readyz')).status, 200)
  released.resolve()
  const statuses = (await Promise.all(calls)).map(({ status }) => status)
  assert.deepEqual(statuses.toSorted(), [200, 200, 200, 200, 200, 503])
  assert.equal((await send(7)).status, 200, 'and when they are done there is room again')
})

test('a network that uses all concurrent calls is refused, and others are served', async t => {
  const server = await openServer('sqlite', t, { maxConcurrentCalls: 5, trustedProxies: ['127.0.0.0/8'] })
  const released = Promise.withResolvers<void>()
  const { transaction } = server.storage
  server.storage.transaction = (work, landed) => released.promise.then(() => transaction(work, landed))
  const sendFrom = (network: string, n: number) =>
    server.post(
      '/auth/send-magic-link',
      { email: `n${n}@example.com` },
      { headers: { 'X-Forwarded-For': network } },
    )
  const pendingCalls = Array.from({ length: 5 }, (_, n) => sendFrom('192.0.2.1', n))
  let refusal = await Promise.race([sendFrom('192.0.2.1', 5), ...pendingCalls])
  while (refusal.status === 200) refusal = await sendFrom('192.0.2.1', 6)
  assert.equal(refusal.status, 503)
  const otherAnswer = await server.post('/auth/agent-token', EXCHANGE, {
    headers: { 'X-Forwarded-For': '198.51.100.1' },
  })
  assert.equal(otherAnswer.status, 401)
  released.resolve()
  await Promise.all(pendingCalls)
})
