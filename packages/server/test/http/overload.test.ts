import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { openServer } from '../support/http.ts'

const EXCHANGE = { api_key: `svc_${'a'.repeat(32)}` }

test('more calls than can be answered in time are told so at once, with Retry-After, and probes still pass', async t => {
  const server = await openServer('sqlite', t, { maxWorkedOn: 5, failureLimits: [] })
  const held = Promise.withResolvers<void>()
  const { transaction } = server.storage
  server.storage.transaction = (work, landed) => held.promise.then(() => transaction(work, landed))
  const send = (n: number) => server.post('/auth/send-magic-link', { email: `n${n}@example.com` })
  const waiting = Array.from({ length: 5 }, (_, n) => send(n))
  let refused = await send(5)
  while (refused.status === 200) refused = await send(6)
  assert.equal(refused.status, 503)
  assert.equal(refused.body.code, 'unavailable')
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.equal((await server.get('/livez')).status, 200)
  assert.equal((await server.get('/readyz')).status, 200)
  held.resolve()
  for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 200)
  assert.equal((await send(7)).status, 200, 'and when they are done there is room again')
})

test('whoever sends a body slowly takes no place from others', async t => {
  const server = await openServer('sqlite', t, { maxWorkedOn: 2, failureLimits: [] })
  const head =
    'POST /auth/agent-token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{'
  const slow = Array.from({ length: 20 }, () => connect(server.port, '127.0.0.1').on('error', () => {}))
  t.after(() => slow.forEach(socket => void socket.destroy()))
  await Promise.all(slow.map(socket => new Promise(resolve => socket.write(head, resolve))))
  assert.equal((await server.post('/auth/agent-token', EXCHANGE)).status, 401)
})
