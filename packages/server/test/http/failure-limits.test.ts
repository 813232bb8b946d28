import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeywayError } from '../../src/errors.ts'
import { createFailureLimits } from '../../src/http/failure-limits.ts'
import { createTestClock } from '../support/clock.ts'
import { openServer } from '../support/http.ts'
import { caller } from '../support/services.ts'

test('failures are limited in a sliding window, and refused attempts do not prolong the wait', () => {
  const clock = createTestClock()
  const limits = createFailureLimits({ clock, windows: [{ window: 'minute', limit: 2 }] })
  const failure = new KeywayError('invalid_api_key', 'no')
  const refusal = (ip = '192.0.2.1') => limits.refusal(caller(ip), failure)
  assert.equal(refusal().code, 'invalid_api_key')
  clock.advance(30_000)
  assert.equal(refusal().code, 'invalid_api_key')
  assert.equal(refusal().extras.retryAfter, 30)
  clock.advance(29_999)
  assert.equal(refusal().code, 'rate_limited')
  assert.equal(refusal('192.0.2.2').code, 'invalid_api_key', 'another network is not touched')
  clock.advance(1)
  assert.equal(refusal().code, 'invalid_api_key')
  assert.equal(limits.refusal(caller(), new KeywayError('invalid_request', 'x')).code, 'invalid_request')
})

test('a valid key is accepted however many failures come from the same address', async t => {
  const server = await openServer('sqlite', t, { failureLimits: [{ window: 'minute', limit: 3 }] })
  const { tokens } = await server.signIn('ada@example.com')
  const { key } = await server.createKey(tokens.accessToken)
  const sendGuess = (headers = {}) =>
    server.post('/auth/agent-token', { api_key: `svc_${'0'.repeat(32)}` }, { headers })
  for (let tries = 0; tries < 3; tries++) assert.equal((await sendGuess()).status, 401)
  const spoofedHeaders = { 'X-Forwarded-For': '9.9.9.9', 'X-Real-IP': '9.9.9.8', Forwarded: 'for=9.9.9.7' }
  const limitedAnswer = await sendGuess(spoofedHeaders)
  assert.equal(limitedAnswer.status, 429)
  assert.equal(limitedAnswer.body.window, 'minute')
  assert.equal(limitedAnswer.headers.get('retry-after'), String(limitedAnswer.body.retry_after))
  assert.equal((await server.post('/auth/agent-token', { api_key: key })).status, 200)
  const readiness = await server.get('/readyz')
  assert.equal(readiness.status, 200)
  const names = readiness.body.checks.map((check: { name: string }) => check.name)
  assert.equal(names.includes('trusted_proxies'), false, 'no stranger sets a check of /readyz')
  server.clock.advance(60_000)
  assert.equal((await sendGuess()).status, 401)
})

test('the networks of one IPv6 /48 together have sixteen times the failure limit of one', () => {
  const clock = createTestClock()
  const limits = createFailureLimits({ clock, windows: [{ window: 'minute', limit: 3 }] })
  const failure = new KeywayError('invalid_api_key', 'no')
  const codes = Array.from(
    { length: 100 },
    (_, network) => limits.refusal(caller(`2001:db8:1:${network.toString(16)}::1`), failure).code,
  )
  assert.deepEqual(codes, [
    ...Array(3 * 16).fill('invalid_api_key'),
    ...Array(100 - 3 * 16).fill('rate_limited'),
  ])
  assert.equal(limits.refusal(caller('2001:db8:2::1'), failure).code, 'invalid_api_key')
})

test('a typed code is refused unchecked once its network has too many failures, while links and keys are accepted', async t => {
  const server = await openServer('sqlite', t, { failureLimits: [{ window: 'minute', limit: 3 }] })
  const { tokens } = await server.signIn('ada@example.com')
  const { key } = await server.createKey(tokens.accessToken)
  const mailedLink = await server.sendTo('eve@example.com')
  for (let tries = 0; tries < 3; tries++)
    await server.post('/auth/agent-token', { api_key: `svc_${'0'.repeat(32)}` })
  const { loginId, code, token } = mailedLink
  const proof = { login_id: loginId, code, email: 'eve@example.com' }
  const refusal = await server.post('/auth/verify-magic-link', proof)
  assert.equal(refusal.status, 429)
  assert.equal(refusal.headers.get('retry-after'), String(refusal.body.retry_after))
  assert.equal((await server.post('/auth/agent-token', { api_key: key })).status, 200)
  const link = { token, email: 'eve@example.com' }
  assert.equal((await server.post('/auth/verify-magic-link', link)).status, 200)
})
