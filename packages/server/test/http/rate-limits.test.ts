import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coversKey } from '../../src/apps/app.ts'
import { MINUTE } from '../../src/clock.ts'
import { Client } from '../hub/client.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServer, type ServerOverrides } from '../support/http.ts'

type Server = Awaited<ReturnType<typeof openServer>>

async function openKey(server: Server, limits: object = {}, email = 'ada@example.com') {
  const token = (await server.signIn(email)).tokens.accessToken
  const creationAnswer = await server.post('/v1/api-keys', { limits, app_id: 'shop' }, { token })
  assert.equal(creationAnswer.status, 201, JSON.stringify(creationAnswer.body))
  const exchange = () => server.post('/auth/agent-token', { api_key: creationAnswer.body.key })
  const patch = (body: object) =>
    server.call('PATCH', `/v1/api-keys/${creationAnswer.body.id}`, { token, body: { limits: body } })
  return { ...creationAnswer.body, token, exchange, patch }
}

async function registerApp(server: Server, id: string) {
  const secret = await server.registerApp(id)
  return { Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` }
}

async function openApp(server: Server, id: string) {
  const headers = await registerApp(server, id)
  return (token: string, consume?: number) => server.post('/auth/introspect', { token, consume }, { headers })
}

const limitPerMinute = (limit: number) => ({ requests: [{ limit, per: 'minute' }] })

forEachEngine(engine => {
  const open = (t: Parameters<typeof openServer>[1], overrides: ServerOverrides = {}) =>
    openServer(engine, t, overrides)

  test('exchanges, API calls and consumed calls count towards one limit; answers carry RateLimit and RateLimit-Policy', async t => {
    const server = await open(t)
    const introspect = await openApp(server, 'shop')
    const key = await openKey(server, limitPerMinute(10))
    const exchangeAnswer = await key.exchange()
    assert.equal(exchangeAnswer.status, 200)
    assert.equal(exchangeAnswer.headers.get('ratelimit'), '"minute";r=9;t=60')
    assert.equal(exchangeAnswer.headers.get('ratelimit-policy'), '"minute";q=10;w=60')
    const listAnswer = await server.get('/v1/api-keys', { token: key.key })
    assert.equal(listAnswer.headers.get('ratelimit'), '"minute";r=8;t=60')
    const consumeAnswer = await introspect(key.key, 7)
    assert.deepEqual(consumeAnswer.body.limits, {
      requests: [{ limit: 10, remaining: 1, reset_seconds: 60 }],
    })
    const answerWithoutConsume = await introspect(key.key)
    assert.deepEqual(answerWithoutConsume.body.limits, consumeAnswer.body.limits)
    server.clock.advance(2000)
    assert.equal((await key.exchange()).status, 200)
    for (const refused of [
      await key.exchange(),
      await server.get('/v1/me', { token: key.key }),
      await introspect(key.key, 1),
    ]) {
      assert.equal(refused.status, 429)
      assert.equal(refused.body.code, 'rate_limited')
      assert.equal(refused.body.window, 'minute')
      assert.equal(refused.headers.get('retry-after'), '58')
      assert.equal(refused.headers.get('ratelimit'), '"minute";r=0;t=58')
    }
    server.clock.advance(58_000)
    assert.equal((await key.exchange()).status, 200)
  })

  test('messages over the API count towards the limit of their key, and what its connections send does not', async t => {
    const server = await open(t)
    const key = await openKey(server, limitPerMinute(4))
    const { body } = await key.exchange()
    const agent = new Client(`${server.url.replace('http', 'ws')}/hub`, body.token)
    const { connection_id } = await agent.next('ready')
    for (let n = 0; n < 20; n++) {
      agent.send({ type: 'send', id: `${n}`, to: connection_id, data: n })
      await agent.next('sent')
    }
    const send = () =>
      server.post(`/v1/agents/${connection_id}/messages`, { data: 'hello' }, { token: key.key })
    assert.equal((await send()).headers.get('ratelimit'), '"minute";r=2;t=60')
    assert.equal((await key.exchange()).headers.get('ratelimit'), '"minute";r=1;t=60')
    assert.equal((await send()).status, 200)
    // The exchange that would renew the agent's token is refused too, but the open connection stays until its token
    // expires.
    for (const refused of [await send(), await key.exchange()]) {
      assert.equal(refused.status, 429)
      assert.equal(refused.headers.get('retry-after'), '60')
    }
    await agent.flush()
    agent.socket.close()
  })

  test('a key without limits has none, and its answers no fields', async t => {
    const server = await open(t)
    const key = await openKey(server)
    const exchangeAnswer = await key.exchange()
    assert.equal(exchangeAnswer.headers.get('ratelimit'), null)
    const introspect = await openApp(server, 'shop')
    assert.deepEqual((await introspect(key.key, 5)).body.limits, {})
  })

  test('of the limits of owner, operator, policy and person the stricter counts', async t => {
    const server = await open(t, {
      keyLimits: [{ limit: 8, per: 'minute' }],
      personLimits: [{ limit: 10, per: 'minute' }],
    })
    const countAccepted = async (key: { exchange: Awaited<ReturnType<typeof openKey>>['exchange'] }) => {
      let passedCount = 0
      while ((await key.exchange()).status === 200) passedCount++
      return passedCount
    }
    const key = await openKey(server, limitPerMinute(5))
    await server.apiKeys.setOperatorLimits(key.id, {
      requests: [{ limit: 3, per: 'minute' }],
      spend: [],
      quota: null,
    })
    assert.equal(await countAccepted(key), 3)
    await server.apiKeys.setOperatorLimits(key.id, { requests: [], spend: [], quota: null })
    assert.equal(await countAccepted(key), 2)
    await key.patch({})
    assert.equal(await countAccepted(key), 3)
    const otherKey = await openKey(server, {}, 'ada@example.com')
    assert.equal(await countAccepted(otherKey), 2)
    const overPolicyAnswer = await key.patch(limitPerMinute(9))
    assert.equal(overPolicyAnswer.status, 400)
    assert.match(overPolicyAnswer.body.errors[0].message, /at most 8 per minute by the policy key_limits/)
    const bob = await openKey(server, {}, 'bob@example.com')
    assert.match(
      (await bob.exchange()).headers.get('ratelimit')!,
      /^"minute";r=7;t=60, "person-minute";r=9;t=60$/,
    )
  })

  test('a new key without request limits gets those of the policy, which its owner may change', async t => {
    const server = await open(t, { keyDefaults: [{ limit: 5, per: 'hour' }] })
    const key = await openKey(server)
    assert.deepEqual(key.limits, { requests: [{ limit: 5, per: 'hour' }] })
    assert.deepEqual((await key.patch({})).body.limits, {})
    assert.deepEqual((await openKey(server, limitPerMinute(9))).limits, limitPerMinute(9))
  })

  test('a rotation passes on what is used up, and a key in its overlap shares it with its successor', async t => {
    const server = await open(t)
    const key = await openKey(server, { ...limitPerMinute(5), quota: { remaining: 100 } })
    const introspect = await openApp(server, 'shop')
    await introspect(key.key, 3)
    const rotationAnswer = await server.post(`/v1/api-keys/${key.id}/rotate`, {}, { token: key.token })
    const answerAfterRotation = await introspect(rotationAnswer.body.key, 1)
    assert.deepEqual(answerAfterRotation.body.limits.requests[0].remaining, 1)
    assert.deepEqual(answerAfterRotation.body.limits.quota, { remaining: 96 })
    assert.equal((await introspect(key.key, 1)).status, 200)
    assert.equal((await introspect(rotationAnswer.body.key, 1)).status, 429)
  })

  test('consume takes rate and quota together, all of it or nothing', async t => {
    const server = await open(t)
    const introspect = await openApp(server, 'shop')
    const key = await openKey(server, {
      requests: [{ limit: 50, per: 'minute' }],
      quota: { remaining: 30, refill: { amount: 30, every: 'day' } },
    })
    assert.deepEqual((await introspect(key.key, 20)).body.limits, {
      requests: [{ limit: 50, remaining: 30, reset_seconds: 60 }],
      quota: { remaining: 10 },
    })
    const exhaustedAnswer = await introspect(key.key, 11)
    assert.equal(exhaustedAnswer.status, 402)
    assert.equal(exhaustedAnswer.body.code, 'quota_exhausted')
    assert.ok(Number(exhaustedAnswer.headers.get('retry-after')) > 0)
    assert.equal((await introspect(key.key)).body.limits.requests[0].remaining, 30)
    await key.patch({
      requests: [{ limit: 21, per: 'minute' }],
      quota: { refill: { amount: 30, every: 'day' } },
    })
    assert.equal((await introspect(key.key, 2)).status, 429)
    server.clock.advance(2 * MINUTE)
    assert.deepEqual((await introspect(key.key, 10)).body.limits.quota, { remaining: 0 })
    const exchangeAnswer = await key.exchange()
    assert.equal(exchangeAnswer.status, 200, 'exchanges are no calls of the quota')
    const keyAnswer = await server.get(`/v1/api-keys/${key.id}`, { token: key.token })
    assert.equal(keyAnswer.body.limits.quota.remaining, 0)
  })

  test('calls are consumed by the app that the key is for and by first-party apps; others read no limits', async t => {
    const server = await open(t)
    const introspectAsShop = await openApp(server, 'shop')
    const introspectAsOtherApp = await openApp(server, 'other')
    const key = await openKey(server, limitPerMinute(5))
    assert.equal((await introspectAsOtherApp(key.key, 1)).body.code, 'forbidden')
    assert.equal((await introspectAsOtherApp(key.key)).body.limits, undefined)
    assert.equal((await introspectAsOtherApp(key.key)).body.active, true)
    assert.equal((await introspectAsShop(key.key, 1)).status, 200)
    assert.ok(coversKey({ id: 'console', firstParty: true, coversFrom: 0 }, { appId: 'shop', createdAt: 0 }))
    const { token } = (await key.exchange()).body
    assert.equal((await introspectAsShop(token, 1)).body.limits.requests[0].remaining, 2)
    assert.equal((await introspectAsOtherApp(token, 1)).body.code, 'forbidden')
    assert.equal((await introspectAsShop(key.token, 1)).body.code, 'forbidden', 'an access token is no key')
    assert.deepEqual((await introspectAsShop('svc_00000000000000000000000000000000', 1)).body, {
      active: false,
    })
    await server.call('DELETE', `/v1/api-keys/${key.id}`, { token: key.token })
    assert.deepEqual((await introspectAsShop(key.key, 1)).body, { active: false })
    for (const invalidConsume of [-1, 1.5, '1', 1_000_001])
      assert.equal((await introspectAsShop(key.key, invalidConsume as number)).status, 400)
  })

  test('several credentials are introspected by one request, each as it would be alone', async t => {
    const server = await open(t)
    const headers = await registerApp(server, 'shop')
    const introspectAlone = async (token: string, consume?: number) =>
      (await server.post('/auth/introspect', { token, consume }, { headers })).body
    const introspectTogether = (tokens: object[]) =>
      server.post('/auth/introspections', { tokens }, { headers })
    const [plain, limited, revoked] = [
      await openKey(server, {}),
      await openKey(server, { ...limitPerMinute(5), spend: [{ amount: '2.00', per: 'day' }] }),
      await openKey(server, {}),
    ]
    await server.call('PATCH', `/v1/api-keys/${limited.id}`, {
      token: limited.token,
      body: { metadata: { plan: 'pro' } },
    })
    await server.call('DELETE', `/v1/api-keys/${revoked.id}`, { token: revoked.token })
    const { token: agentToken } = (await plain.exchange()).body
    const credentials = [plain.key, limited.key, revoked.key, agentToken, plain.token, 'nonsense', plain.key]
    const introspections = await introspectTogether(credentials.map(token => ({ token })))
    assert.deepEqual(
      introspections.body.data,
      await Promise.all(credentials.map(token => introspectAlone(token))),
    )
    assert.deepEqual(introspections.body.data[1].metadata, { plan: 'pro' })
    assert.deepEqual(introspections.body.data[1].limits.spend[0].amount, '2.00')

    const consumeAnswer = await introspectTogether([
      { token: limited.key, consume: 3 },
      { token: limited.key, consume: 3 },
      { token: plain.token, consume: 1 },
      { token: plain.key, consume: 1 },
    ])
    const [first, over, session, last] = consumeAnswer.body.data
    assert.equal(consumeAnswer.status, 200)
    assert.equal(first.limits.requests[0].remaining, 2)
    assert.equal(over.error.code, 'rate_limited')
    assert.ok(over.error.retry_after > 0)
    assert.equal(session.error.code, 'forbidden')
    assert.equal(last.active, true)
    assert.equal((await introspectAlone(limited.key)).limits.requests[0].remaining, 2)
  })

  test('a request introspects from one to thirty-two credentials, and no unknown field', async t => {
    const server = await open(t)
    const headers = await registerApp(server, 'shop')
    const introspectMany = (body: object) => server.post('/auth/introspections', body, { headers })
    const bodyWithTokens = (count: number) => ({
      tokens: Array.from({ length: count }, () => ({ token: 'x' })),
    })
    assert.equal((await introspectMany(bodyWithTokens(32))).status, 200)
    for (const invalidBody of [
      bodyWithTokens(0),
      bodyWithTokens(33),
      {},
      { tokens: 'x' },
      { tokens: ['x'] },
      { tokens: [{ token: 'x', consumes: 1 }] },
      { tokens: [{ token: 'x', consume: -1 }] },
    ]) {
      const { status, body } = await introspectMany(invalidBody)
      assert.equal(status, 400, JSON.stringify(invalidBody))
      assert.match(body.errors[0].field, /^tokens/)
    }
    assert.equal((await introspectMany({ tokens: [{ token: 'x'.repeat(25_000) }] })).status, 413)
  })

  test('a refused call counts nothing, whatever refuses it', async t => {
    const server = await open(t)
    const introspect = await openApp(server, 'shop')
    const key = await openKey(server, limitPerMinute(10))
    await server.call('PATCH', `/v1/api-keys/${key.id}`, {
      token: key.token,
      body: { allowed_networks: ['203.0.113.0/24'] },
    })
    assert.equal((await key.exchange()).body.code, 'network_not_allowed')
    assert.equal((await server.post('/v1/api-keys', {}, { token: key.key })).status, 403)
    assert.equal((await introspect(key.key, 11)).status, 429)
    assert.deepEqual((await introspect(key.key)).body.limits.requests[0].remaining, 10)
  })
})
