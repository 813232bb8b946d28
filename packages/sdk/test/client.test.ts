import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { Keyway, type KeywayOptions } from '../src/client.ts'
import { KeywayError } from '../src/errors.ts'
import { memoryTokenStore, type StoredTokens } from '../src/token-store.ts'
import { createManualClock, type ManualClock } from './support/manual-clock.ts'
import { type ExchangeAnswer, problem } from './support/protocol-server.ts'

interface Call {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

type Script = (call: Call, count: number) => ExchangeAnswer

interface TestContext {
  after(fn: () => Promise<void>): void
}

/** An HTTP server with scripted answers, and a client whose delays end at once. */
async function start(t: TestContext, script: Script, options: KeywayOptions = {}) {
  const calls: Call[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { method = '', url = '', headers } = request
    const call = { method, url, headers, body: JSON.parse(text || '{}') }
    const answer = script(call, calls.push(call))
    if (answer === 'hang') return
    if (answer === 'drop') return void request.socket.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end(answer.status === 204 ? undefined : JSON.stringify(answer.body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  const waits: number[] = []
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const keyway = new Keyway({ url, clock: skippingDelays(createManualClock(), waits), ...options })
  return { keyway, calls, waits }
}

/** A clock that records delays and ends them at once; timeouts never fire. */
function skippingDelays(clock: ManualClock, waits: number[]): ManualClock {
  const timeoutMs = 15_000
  return {
    ...clock,
    random: () => 0,
    after(ms, callback) {
      if (ms === timeoutMs) return () => {}
      waits.push(ms)
      queueMicrotask(callback)
      return () => {}
    },
  }
}

const ok = (body: unknown): ExchangeAnswer => ({ status: 200, body })
const session = (count: number) => ({
  user: { id: 'u', email: 'ada@example.com', name: null, role: 'user', status: 'active', created_at: '' },
  access_token: `access-${count}`,
  token_type: 'Bearer',
  expires_in: 900,
  refresh_token: `refresh-${count}`,
  refresh_expires_in: 2_592_000,
  session_id: 's',
})
const initialTokens = (): StoredTokens => ({ access: 'access-0', refresh: 'refresh-0', sessionId: 's' })
const apiKey = `svc_${'a'.repeat(32)}`

describe('errors', () => {
  test('have code, status, request id, retryAfter and fields', async t => {
    const { keyway } = await start(t, () => ({
      status: 400,
      body: {
        code: 'invalid_request',
        detail: 'Look at errors.',
        status: 400,
        request_id: 'r-9',
        errors: [{ field: 'email', message: 'is no address' }],
      },
    }))
    await assert.rejects(keyway.sendMagicLink({ email: 'x' }), (error: KeywayError) => {
      assert.ok(error instanceof KeywayError)
      const { code, status, retryable, requestId, errors, message } = error
      assert.deepEqual(
        { code, status, retryable, requestId, errors, message },
        {
          code: 'invalid_request',
          status: 400,
          retryable: false,
          requestId: 'r-9',
          errors: [{ field: 'email', message: 'is no address' }],
          message: 'Look at errors.',
        },
      )
      return true
    })
  })

  test('without a problem document are bad_response with the status', async t => {
    const { keyway } = await start(t, () => ({ status: 404, body: '<h1>not here</h1>' }), { apiKey })
    await assert.rejects(
      keyway.apiKeys.list(),
      (error: KeywayError) => error.code === 'bad_response' && error.status === 404 && !error.retryable,
    )
  })

  test('of the network are retryable network_error', async t => {
    const { keyway } = await start(t, () => 'drop', { apiKey, maxRetries: 0 })
    await assert.rejects(
      keyway.account.get(),
      (error: KeywayError) => error.code === 'network_error' && error.retryable && error.status === 0,
    )
  })
})

describe('retries', () => {
  test('a refused read is retried after Retry-After', async t => {
    const script: Script = (_, count) => (count < 3 ? problem(429, 'rate_limited', 7) : ok({ data: [] }))
    const { keyway, calls, waits } = await start(t, script, { apiKey })
    await keyway.apiKeys.list()
    assert.equal(calls.length, 3)
    assert.deepEqual(waits, [7000, 7000])
  })

  test('a Retry-After above the limit throws the error with retryAfter', async t => {
    const { keyway, calls } = await start(t, () => problem(429, 'rate_limited', 3600), { apiKey })
    await assert.rejects(keyway.apiKeys.list(), (error: KeywayError) => error.retryAfter === 3600)
    assert.equal(calls.length, 1)
  })

  test('calls that are not idempotent are not retried', async t => {
    const { keyway, calls } = await start(t, () => 'drop', { apiKey })
    const nonIdempotentCalls = [
      () => keyway.sendMagicLink({ email: 'ada@example.com' }),
      () => keyway.verifyMagicLink({ token: 't', email: 'ada@example.com' }),
      () => keyway.apiKeys.create(),
      () => keyway.apiKeys.rotate('id'),
      () => keyway.agents.send('id', 1),
    ]
    for (const call of nonIdempotentCalls) await assert.rejects(call())
    assert.equal(calls.length, nonIdempotentCalls.length)
  })

  test('a charge is retried with one Idempotency-Key', async t => {
    const script: Script = (_, count) => (count < 3 ? 'drop' : { status: 201, body: { id: 'entry' } })
    const app = { id: 'hub', secret: 'geheim' }
    const { keyway, calls } = await start(t, script, { app })
    await keyway.apps.charge({ user_id: 'u', amount: '0.10', description: 'one' })
    assert.equal(new Set(calls.map(call => call.headers['idempotency-key'])).size, 1)
    assert.equal(calls[0]!.headers.authorization, `Basic ${btoa('hub:geheim')}`)
    assert.deepEqual(calls[0]!.body, { user_id: 'u', amount: '0.10', description: 'one' })
  })
})

describe('a session', () => {
  const acceptOnlySecondToken: Script = (call, count) => {
    if (call.url === '/auth/refresh') return ok(session(1))
    if (call.headers.authorization !== 'Bearer access-1') return problem(401, 'invalid_token')
    return ok({ data: [], count })
  }

  test('is kept after signing in and used by the next call', async t => {
    const tokens = memoryTokenStore()
    const { keyway, calls } = await start(t, () => ok({ ...session(1), is_new_user: true }), { tokens })
    await keyway.verifyMagicLink({ login_id: 'l', code: '12345678', email: 'ada@example.com' })
    assert.deepEqual(await tokens.get(), { access: 'access-1', refresh: 'refresh-1', sessionId: 's' })
    await keyway.account.get()
    assert.equal(calls[1]!.headers.authorization, 'Bearer access-1')
  })

  test('with an expired access token is refreshed once for twenty calls', async t => {
    const { keyway, calls } = await start(t, acceptOnlySecondToken, {
      tokens: memoryTokenStore(initialTokens()),
    })
    await Promise.all(Array.from({ length: 20 }, () => keyway.apiKeys.list()))
    const refreshes = calls.filter(call => call.url === '/auth/refresh')
    assert.equal(refreshes.length, 1)
    assert.match(String(refreshes[0]!.headers['idempotency-key']), /^[A-Za-z0-9_-]{16,128}$/)
  })

  test('shared by two clients (tabs) is refreshed once', async t => {
    const tokens = memoryTokenStore(initialTokens())
    const { keyway, calls } = await start(t, acceptOnlySecondToken, { tokens })
    const url = `http://${calls.length === 0 ? await hostOfFirstCall(keyway, calls) : calls[0]!.headers.host}`
    await tokens.set(initialTokens())
    calls.length = 0
    const secondTab = new Keyway({ url, tokens })
    await Promise.all([keyway.apiKeys.list(), secondTab.apiKeys.list()])
    const refreshCount = calls.filter(call => call.url === '/auth/refresh').length
    assert.equal(refreshCount, 1)
  })

  test('survives a lost response: the refresh is retried with the same Idempotency-Key', async t => {
    const script: Script = (call, count) => {
      if (call.url === '/auth/refresh' && count <= 3) return 'drop'
      return acceptOnlySecondToken(call, count)
    }
    const { keyway, calls } = await start(t, script, { tokens: memoryTokenStore(initialTokens()) })
    await keyway.apiKeys.list()
    const keys = calls
      .filter(call => call.url === '/auth/refresh')
      .map(call => call.headers['idempotency-key'])
    assert.equal(keys.length, 3)
    assert.equal(new Set(keys).size, 1)
  })

  test('survives a crash: the Idempotency-Key is stored until the response has arrived', async t => {
    const tokens = memoryTokenStore(initialTokens())
    let isReachable = false
    const script: Script = (call, count) => (isReachable ? acceptOnlySecondToken(call, count) : 'drop')
    const { keyway, calls } = await start(t, script, { tokens, maxRetries: 1 })
    await assert.rejects(keyway.refresh(), (error: KeywayError) => error.code === 'network_error')
    const { refreshKey } = (await tokens.get())!
    assert.equal(refreshKey, calls[0]!.headers['idempotency-key'])
    isReachable = true
    await keyway.refresh()
    assert.equal(calls.at(-1)!.headers['idempotency-key'], refreshKey)
    assert.equal((await tokens.get())!.refreshKey, undefined)
  })

  test('that was ended elsewhere is removed from the store, with an error', async t => {
    const tokens = memoryTokenStore(initialTokens())
    const { keyway } = await start(t, () => problem(401, 'invalid_token'), { tokens })
    await assert.rejects(keyway.account.get(), (error: KeywayError) => error.status === 401)
    assert.equal(await tokens.get(), undefined)
    await assert.rejects(keyway.account.get(), /Not signed in/)
  })

  test('is ended by logout on client and server', async t => {
    const tokens = memoryTokenStore(initialTokens())
    const { keyway, calls } = await start(t, () => ({ status: 204, body: null }), { tokens })
    await keyway.logout()
    assert.deepEqual(calls[0]!.body, { refresh_token: 'refresh-0' })
    assert.equal(await tokens.get(), undefined)
  })
})

describe('every call', () => {
  test('names the library and its version', async t => {
    const { keyway, calls } = await start(t, () => ok({ data: [] }), { apiKey })
    await keyway.usage()
    const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
    assert.equal(calls[0]!.headers['user-agent'], `keyway-sdk/${version}`)
  })

  test('has its method and path', async t => {
    const { keyway, calls } = await start(t, () => ok({ data: [], has_more: false, next_cursor: null }), {
      apiKey,
      app: { id: 'hub', secret: 'x' },
    })
    await keyway.apiKeys.create({ name: 'n' })
    await keyway.apiKeys.list({ limit: 2, status: 'revoked' })
    await keyway.apiKeys.get('a/b')
    await keyway.apiKeys.update('k', { name: 'm' })
    await keyway.apiKeys.rotate('k', { overlap_seconds: 0 })
    await keyway.apiKeys.revoke('k')
    await keyway.apiKeys.usage('k', { bucket: 'hour', from: '2026-11-01T00:00:00+01:00' })
    await keyway.usage()
    await keyway.sessions.list()
    await keyway.sessions.revoke('s')
    await keyway.sessions.revokeOthers()
    await keyway.account.get()
    await keyway.account.update({ name: 'Ada' })
    await keyway.account.ledger({ cursor: 'c' })
    await keyway.account.securityEvents()
    await keyway.account.authorizeCharges('hub')
    await keyway.account.withdrawCharges('hub')
    await keyway.agents.list()
    await keyway.agents.send('c', { a: 1 })
    await keyway.agents.disconnect('c')
    await keyway.apps.introspect('t')
    await keyway.apps.revocations({ cursor: 'c' })
    await keyway.exchange({ api_key: apiKey })
    await keyway.revoke('t')
    assert.deepEqual(
      calls.map(call => `${call.method} ${call.url}`),
      [
        'POST /v1/api-keys',
        'GET /v1/api-keys?limit=2&status=revoked',
        'GET /v1/api-keys/a%2Fb',
        'PATCH /v1/api-keys/k',
        'POST /v1/api-keys/k/rotate',
        'DELETE /v1/api-keys/k',
        'GET /v1/api-keys/k/usage?bucket=hour&from=2026-11-01T00%3A00%3A00%2B01%3A00',
        'GET /v1/usage',
        'GET /v1/sessions',
        'DELETE /v1/sessions/s',
        'DELETE /v1/sessions',
        'GET /v1/me',
        'PATCH /v1/me',
        'GET /v1/me/ledger?cursor=c',
        'GET /v1/security-events',
        'PUT /v1/me/charge-authorizations/hub',
        'DELETE /v1/me/charge-authorizations/hub',
        'GET /v1/agents',
        'POST /v1/agents/c/messages',
        'DELETE /v1/agents/c',
        'POST /auth/introspect',
        'GET /v1/revocations?cursor=c',
        'POST /auth/agent-token',
        'POST /auth/revoke',
      ],
    )
  })

  test('verifyKey counts calls, and is never repeated by itself', async t => {
    const { keyway, calls } = await start(
      t,
      (_, count) => (count === 1 ? ok({ active: false }) : problem(429, 'rate_limited')),
      { app: { id: 'quotes', secret: 'x' } },
    )
    assert.deepEqual(await keyway.apps.verifyKey('svc_a', { consume: 2 }), { active: false })
    assert.deepEqual(calls[0]!.body, { token: 'svc_a', consume: 2 })
    await assert.rejects(
      keyway.apps.verifyKey('svc_a', { consume: 1 }),
      (error: KeywayError) => error.code === 'rate_limited' && error.retryable,
    )
    assert.equal(calls.length, 2)
  })

  test('concurrent verifications share requests, and each has its own answer', async t => {
    const { keyway, calls } = await start(
      t,
      call =>
        call.url === '/auth/introspect'
          ? ok({ active: true, key_id: call.body.token })
          : ok({
              data: (call.body.tokens as { token: string }[]).map(({ token }) =>
                token === 'svc_7'
                  ? { error: { code: 'rate_limited', status: 429, detail: 'slow', retry_after: 3 } }
                  : { active: true, key_id: token },
              ),
            }),
      { app: { id: 'quotes', secret: 'x' } },
    )
    const keys = Array.from({ length: 100 }, (_, n) => `svc_${n}`)
    const answers = await Promise.allSettled(keys.map(key => keyway.apps.verifyKey(key, { consume: 1 })))
    for (const [n, answer] of answers.entries())
      if (n !== 7)
        assert.equal(
          answer.status === 'fulfilled' && 'key_id' in answer.value && answer.value.key_id,
          keys[n],
        )
      else {
        const { reason } = answer as PromiseRejectedResult
        assert.deepEqual(
          [reason.code, reason.status, reason.retryAfter, reason.retryable],
          ['rate_limited', 429, 3, true],
        )
      }
    assert.equal(calls.length, 4)
    assert.deepEqual((calls[0]!.body.tokens as object[])[0], { token: 'svc_0', consume: 1 })
    await keyway.apps.verifyKey('svc_1')
    assert.equal(calls[4]!.url, '/auth/introspect')
  })

  test('verifications that share a request fail together, and are sent separately to a service of an earlier version', async t => {
    let status = 503
    const { keyway, calls } = await start(
      t,
      call =>
        call.url === '/auth/introspect'
          ? ok({ active: false })
          : problem(status, status === 404 ? 'not_found' : 'unavailable'),
      { app: { id: 'quotes', secret: 'x' } },
    )
    const verifyBoth = () => Promise.allSettled(['svc_a', 'svc_b'].map(key => keyway.apps.verifyKey(key)))
    for (const answer of await verifyBoth())
      assert.equal((answer as PromiseRejectedResult).reason.code, 'unavailable')
    assert.equal(calls.length, 1)
    status = 404
    for (const answer of await verifyBoth())
      assert.deepEqual(answer, { status: 'fulfilled', value: { active: false } })
    assert.equal(calls.length, 4)
  })

  test('keys have the metadata and the external id that their owner attaches, and are found by the latter', async t => {
    const { keyway, calls } = await start(t, () => ok({ data: [], has_more: false, next_cursor: null }), {
      apiKey,
    })
    await keyway.apiKeys.create({ external_id: 'c 1', metadata: { plan: 'pro' } })
    await keyway.apiKeys.update('k', { external_id: null, metadata: null })
    await keyway.apiKeys.list({ external_id: 'c 1' })
    assert.deepEqual(
      calls.map(({ url, body }) => [url, body]),
      [
        ['/v1/api-keys', { external_id: 'c 1', metadata: { plan: 'pro' } }],
        ['/v1/api-keys/k', { external_id: null, metadata: null }],
        ['/v1/api-keys?external_id=c+1', {}],
      ],
    )
  })

  test('all() reads all pages', async t => {
    const pages: Script = call =>
      call.url.includes('cursor=2')
        ? ok({ data: [{ id: 'b' }], has_more: false, next_cursor: null })
        : ok({ data: [{ id: 'a' }], has_more: true, next_cursor: '2' })
    const { keyway } = await start(t, pages, { apiKey })
    const ids: string[] = []
    for await (const { id } of keyway.apiKeys.all()) ids.push(id)
    assert.deepEqual(ids, ['a', 'b'])
  })
})

/** Makes a call, and returns the test server's host and port from its Host header. */
async function hostOfFirstCall(keyway: Keyway, calls: Call[]): Promise<string> {
  await keyway.apiKeys.list()
  return calls[0]!.headers.host!
}
