import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Hono } from 'hono'
import { newId } from '../../src/ids.ts'
import { forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'

const ORIGIN = 'https://app.example.com'
const BROWSER_HEADERS = { Accept: 'text/html,application/xhtml+xml' }

test('only configured origins may call from a browser, without credentials mode', async t => {
  const server = await openServer('sqlite', t, { corsOrigins: [ORIGIN] })
  const allowedAnswer = await server.get('/livez', { headers: { Origin: ORIGIN } })
  assert.equal(allowedAnswer.headers.get('access-control-allow-origin'), ORIGIN)
  assert.equal(allowedAnswer.headers.get('vary'), 'Origin')
  for (const origin of [
    'null',
    'https://evil.test',
    `${ORIGIN}.evil.test`,
    'https://x.app.example.com',
    'http://app.example.com',
    ORIGIN.toUpperCase(),
  ]) {
    const refusal = await server.get('/livez', { headers: { Origin: origin } })
    assert.equal(refusal.headers.get('access-control-allow-origin'), null, origin)
    assert.equal(refusal.headers.get('vary'), 'Origin')
  }
  const headers = {
    Origin: ORIGIN,
    'Access-Control-Request-Method': 'PATCH',
    'Access-Control-Request-Headers': Array.from({ length: 50 }, (_, index) => `x-${index}`).join(','),
  }
  const preflightAnswer = await server.call('OPTIONS', '/v1/me', { headers })
  assert.equal(preflightAnswer.status, 204)
  assert.equal(
    preflightAnswer.headers.get('access-control-allow-headers'),
    'authorization, content-type, idempotency-key',
  )
  assert.match(preflightAnswer.headers.get('access-control-allow-methods')!, /PATCH/)
  assert.equal(preflightAnswer.headers.get('access-control-allow-credentials'), null)
  const problemAnswer = await server.get('/v1/me', { headers: { Origin: ORIGIN } })
  assert.equal(problemAnswer.headers.get('access-control-allow-origin'), ORIGIN, 'errors can be read too')
})

test('responses have no CORS headers if no origin is configured', async t => {
  const server = await openServer('sqlite', t)
  const { headers } = await server.get('/livez', { headers: { Origin: ORIGIN } })
  assert.equal(headers.get('access-control-allow-origin'), null)
})

test('GET, HEAD and OPTIONS do not use up a link', async t => {
  const server = await openServer('sqlite', t)
  const { token } = await server.sendTo('ada@example.com')
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT']) {
    for (const path of ['/auth/verify-magic-link', '/verify']) {
      const answer = await server.call(method, `${path}?token=${token}&email=ada%40example.com`, {
        headers: { 'User-Agent': 'Slackbot' },
      })
      assert.ok(answer.status < 500)
    }
  }
  const signInAnswer = await server.post('/auth/verify-magic-link', { token, email: 'ADA@example.com ' })
  assert.equal(signInAnswer.status, 200)
  assert.equal(signInAnswer.body.is_new_user, true)
})

test('a link that does not sign in is refused with the reason, and with what to do about it', async t => {
  const server = await openServer('sqlite', t)
  const email = 'ada@example.com'
  const refusalOf = async (token: string, address = email) => {
    const { status, body } = await server.post('/auth/verify-magic-link', { token, email: address })
    return `${status} ${body.code}: ${body.detail}`
  }
  const usedLink = await server.sendTo(email)
  const { body } = await server.post('/auth/verify-magic-link', { token: usedLink.token, email })
  assert.match(
    await refusalOf(usedLink.token),
    /^410 magic_link_used: .*was used already\. Ask for a new one\.$/,
  )
  const { token } = await server.sendTo(email)
  const refusalOfOtherAddress = await refusalOf(token, 'bob@example.com')
  assert.match(
    refusalOfOtherAddress,
    /^400 magic_link_invalid: .*not valid for this address\. Ask for a new one\.$/,
  )
  await server.users.suspend(body.user.id)
  assert.match(await refusalOf(token), /^403 account_suspended: This account is suspended\.$/)
  await server.users.activate(body.user.id)
  const expiredLink = await server.sendTo(email)
  server.clock.advance(5 * 60_000)
  assert.match(
    await refusalOf(expiredLink.token),
    /^410 magic_link_expired: .*has expired\. Ask for a new one\.$/,
  )
})

test('a refused sign-in mail is explained with its window and the wait', async t => {
  const server = await openServer('sqlite', t, { limits: [{ window: 'hour', limit: 1 }] })
  const send = () => server.post('/auth/send-magic-link', { email: 'ada@example.com' })
  await send()
  assert.match((await send()).body.detail, /sign-in mails .* within this hour\. Try again in 3600 seconds\.$/)
  server.clock.advance(3_599_000)
  assert.match((await send()).body.detail, /Try again in 1 second\.$/)
})

test('the mailed link does not depend on Host, forwarding headers or body fields', async t => {
  const server = await openServer('sqlite', t)
  const headers = {
    'X-Forwarded-Host': 'evil.test',
    'X-Forwarded-Proto': 'http',
    'X-Original-Host': 'evil.test',
    Forwarded: 'host=evil.test',
  }
  const body = JSON.stringify({
    email: 'ada@example.com',
    redirect_to: 'https://evil.test',
    next: '//evil.test',
    callbackURL: 'javascript:1',
  })
  assert.equal((await server.post('/auth/send-magic-link', body, { headers })).status, 200)
  const sendRaw = (target: string, host: string) =>
    server.raw(
      `POST ${target} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    )
  for (const host of ['evil.test', 'evil.test:81', 'user@evil.test'])
    await sendRaw('/auth/send-magic-link', host)
  await sendRaw('http://evil.test/auth/send-magic-link', 'evil.test')
  for (const { link } of await server.mailsTo('ada@example.com', 'sign_in')) {
    assert.ok(link.startsWith('https://keyway.test/verify?token='), link)
  }
})

test('the response to a send contains nothing that could sign in', async t => {
  const server = await openServer('sqlite', t)
  await server.signIn('known@example.com')
  const answerToKnown = await server.post('/auth/send-magic-link', { email: 'known@example.com' })
  const answerToUnknown = await server.post('/auth/send-magic-link', { email: 'unknown@example.com' })
  for (const { body } of [answerToKnown, answerToUnknown]) {
    assert.deepEqual({ ...body, login_id: '' }, { status: 'sent', expires_in: 300, login_id: '' })
  }
  assert.deepEqual([...answerToKnown.headers.keys()], [...answerToUnknown.headers.keys()])
  const { link, token, code } = await server.lastLink('known@example.com')
  for (const secret of [link, token, code]) assert.ok(!answerToKnown.text.includes(secret))
})

test('the exchange accepts only POST with JSON, and a 405 lists the methods of a path', async t => {
  const server = await openServer('sqlite', t)
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
    const answer = await server.call(method, '/auth/agent-token')
    assert.equal(answer.status, 405)
    assert.equal(answer.headers.get('allow'), 'POST, OPTIONS')
  }
  assert.equal((await server.get('/auth/agent-token/')).status, 404)
  assert.match((await server.get('/nowhere')).body.detail, /\/docs/)
})

test('every 404 refers to /docs', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const headers = { authorization: `Bearer ${tokens.accessToken}` }
  const unknownId = '01a1fb64-1e3f-739c-883b-779f886a550f'
  for (const [method, path] of [
    ['GET', `/v1/api-keys/${unknownId}`],
    ['DELETE', `/v1/sessions/${unknownId}`],
    ['DELETE', `/v1/agents/${unknownId}`],
    ['PUT', '/v1/me/charge-authorizations/nobody'],
    ['DELETE', '/v1/me/charge-authorizations/nobody'],
  ] as const) {
    const { status, body } = await server.call(method, path, { headers })
    assert.equal(status, 404, path)
    assert.match(body.detail, /\/docs/, path)
  }
})

test('HEAD has the status and headers of GET, without a body', async t => {
  const server = await openServer('sqlite', t)
  const headAnswer = await server.call('HEAD', '/.well-known/jwks.json')
  assert.equal(headAnswer.status, 200)
  assert.equal(headAnswer.text, '')
  assert.equal(headAnswer.headers.get('cache-control'), 'public, max-age=30')
})

test('the JWK Set is public and cacheable, and has no private keys', async t => {
  const server = await openServer('sqlite', t)
  const firstAnswer = await server.get('/.well-known/jwks.json')
  for (const jwk of firstAnswer.body.keys)
    assert.deepEqual(Object.keys(jwk).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'])
  const etag = firstAnswer.headers.get('etag')!
  const conditionalAnswer = await server.get('/.well-known/jwks.json', { headers: { 'If-None-Match': etag } })
  assert.equal(conditionalAnswer.status, 304)
  assert.equal(conditionalAnswer.text, '')
})

test('a request to the hub without an upgrade gets 426', async t => {
  const server = await openServer('sqlite', t)
  const { status, headers, body } = await server.get('/hub')
  assert.deepEqual([status, body.code, headers.get('upgrade')], [426, 'upgrade_required', 'websocket'])
})

test('a token in the query of the hub gets 401 with the two accepted ways, with and without an upgrade', async t => {
  const server = await openServer('sqlite', t)
  for (const name of ['token', 'access_token', 'api_key']) {
    const { status, headers, body } = await server.get(`/hub?${name}=x`)
    assert.deepEqual([status, body.code], [401, 'invalid_token'])
    assert.match(body.detail, /Authorization: Bearer.*bearer\.<token>/)
    assert.equal(headers.get('www-authenticate'), 'Bearer error="invalid_token"')
  }
})

test('the root path has URLs for programs and a page for browsers, and API paths never reach the pages', async t => {
  const pages = new Hono()
  pages.get('/', c => c.redirect('/sign-in', 303))
  pages.get('/sign-in', c => c.html('<p>Sign in</p>'))
  const publicUrl = 'http://localhost:8080'
  const fetchPage = async (request: Request) => {
    const response = await pages.fetch(request)
    return response.status === 404 ? { allow: null } : response
  }
  const server = await openServer('sqlite', t, { pages: { fetch: fetchPage }, publicUrl })
  const localRootAnswer = await server.get('/')
  assert.deepEqual(localRootAnswer.body, {
    name: 'Keyway',
    version: '0.0.0',
    hub_url: 'ws://localhost:8080/hub',
    openapi_url: 'http://localhost:8080/openapi.json',
    docs_url: 'http://localhost:8080/docs',
    inbox_url: 'http://localhost:8080/inbox',
  })
  const remoteRootAnswer = await server.get('/', { headers: { 'X-Forwarded-For': '203.0.113.7' } })
  assert.equal('inbox_url' in remoteRootAnswer.body, false, 'whoever finds no inbox is not sent there')
  const otherPageAnswer = await server.get('/sign-in?next=1', { headers: BROWSER_HEADERS })
  assert.equal(otherPageAnswer.status, 307)
  assert.equal(otherPageAnswer.headers.get('location'), `${publicUrl}/sign-in?next=1`)
  const pageAnswer = await server.raw(
    'GET /sign-in HTTP/1.1\r\nHost: localhost:9\r\nAccept: text/html\r\nConnection: close\r\n\r\n',
  )
  assert.match(pageAnswer, /^HTTP\/1\.1 200 [\s\S]*x-request-id: [\s\S]*Sign in/i)
  const redirectText = await server.raw(
    'GET / HTTP/1.1\r\nHost: localhost:9\r\nAccept: text/html\r\nConnection: close\r\n\r\n',
  )
  assert.match(redirectText, /^HTTP\/1\.1 303 [\s\S]*location: \/sign-in\r/i)
  assert.equal((await server.get('/v1/nowhere', { headers: BROWSER_HEADERS })).body.code, 'not_found')
  assert.equal((await server.get('/nowhere')).body.code, 'not_found')
})

forEachEngine(engine => {
  test('a session is created, refreshed, refreshed again with its idempotency key, listed and ended', async t => {
    const server = await openServer(engine, t)
    const { token } = await server.sendTo('ada@example.com')
    const { body: first } = await server.post('/auth/verify-magic-link', { token, email: 'ada@example.com' })
    assert.equal(
      (await server.post('/auth/verify-magic-link', { token, email: 'ada@example.com' })).status,
      410,
    )
    const headers = { 'Idempotency-Key': 'u5d1Zp8yQm4kR0vT2xWc' }
    const refresh = (refresh_token: string, extra = {}) =>
      server.post('/auth/refresh', { refresh_token }, { headers: extra })
    assert.equal((await refresh(first.refresh_token, { 'Idempotency-Key': 'short' })).status, 400)
    const secondRefresh = await refresh(first.refresh_token, headers)
    assert.equal(
      (await refresh(first.refresh_token, headers)).body.refresh_token,
      secondRefresh.body.refresh_token,
    )
    const sessionList = await server.get('/v1/sessions', { token: secondRefresh.body.access_token })
    assert.equal(sessionList.body.data[0].current, true)
    assert.equal((await refresh(first.refresh_token)).body.code, 'refresh_token_reused')
    assert.equal(
      (await server.get('/v1/me', { token: secondRefresh.body.access_token })).body.code,
      'invalid_token',
    )
    assert.equal(
      (await server.post('/auth/logout', { refresh_token: secondRefresh.body.refresh_token })).status,
      204,
    )
    assert.equal((await server.post('/auth/logout', { refresh_token: 'unknown' })).status, 204)
    assert.equal((await server.post('/auth/revoke', { token: 'unknown' })).status, 204)
    assert.equal((await server.post('/auth/revoke', { token: 1 })).status, 400)
  })

  test('an app charges once, introspects tokens, and follows the revocation feed', async t => {
    const server = await openServer(engine, t)
    const { tokens, user } = await server.signIn('ada@example.com')
    const token = tokens.accessToken
    const secret = await server.registerApp('reports')
    const headers = { ...basicAuthorization('reports', secret), 'Idempotency-Key': 'u5d1Zp8yQm4kR0vT2xWc' }
    const charge = (amount: string, extra = {}) =>
      server.post(
        '/v1/charges',
        { user_id: user.id, amount, description: 'work' },
        { headers: { ...headers, ...extra } },
      )
    assert.equal((await charge('0.25')).body.code, 'charge_not_authorized')
    await server.call('PUT', '/v1/me/charge-authorizations/reports', { token })
    const chargeAnswer = await charge('0.25')
    assert.equal(chargeAnswer.status, 201)
    assert.equal(chargeAnswer.body.balance_after, '1.75')
    assert.deepEqual((await charge('0.25')).body, chargeAnswer.body)
    assert.equal((await charge('0.26')).body.code, 'idempotency_conflict')
    assert.equal((await charge('5', { 'Idempotency-Key': 'another-key-12345678' })).status, 402)
    assert.equal((await charge('-1')).status, 400)
    const orderHeaders = { 'Idempotency-Key': 'order:7/a' }
    const orderCharge = await charge('0.5', orderHeaders)
    assert.equal(orderCharge.status, 201, "an app's own number of an order is a good key")
    assert.deepEqual((await charge('0.5', orderHeaders)).body, orderCharge.body)
    for (const invalidKey of ['', 'a b', 'k'.repeat(256), 'ü'])
      assert.equal((await charge('0.5', { 'Idempotency-Key': invalidKey })).status, 400, invalidKey)
    assert.equal(
      (await server.post('/v1/charges', {}, { headers: basicAuthorization('reports', secret) })).body
        .errors[0].field,
      'Idempotency-Key',
    )

    const { id, key } = await server.createKey(token)
    const introspect = () => server.post('/auth/introspect', { token: key }, { headers })
    assert.equal((await introspect()).body.active, true)
    const stream = await fetch(`${server.url}/v1/revocations`, {
      headers: { ...headers, Accept: 'text/event-stream' },
    })
    assert.equal(stream.headers.get('content-type'), 'text/event-stream')
    const reader = stream.body!.getReader()
    await server.call('DELETE', `/v1/api-keys/${id}`, { token })
    let received = ''
    while (!received.includes(id)) received += new TextDecoder().decode((await reader.read()).value)
    assert.match(received, /id: \S+\nevent: revocation\ndata: \{/)
    await reader.cancel()
    assert.deepEqual((await introspect()).body, { active: false })
    const feedAnswer = await server.get('/v1/revocations', { headers })
    assert.ok(feedAnswer.body.data.some((entry: { subject_id: string }) => entry.subject_id === id))
    assert.equal((await server.get('/v1/revocations?cursor=x', { headers })).status, 400)
  })
})

test('live connections are listed in pages, newest first, each once', async t => {
  const server = await openServer('sqlite', t)
  const { user, tokens } = await server.signIn('ada@example.com')
  const now = server.clock.now()
  const nodeId = newId(now)
  await server.store.presence.heartbeat({
    id: nodeId,
    startedAt: now,
    seenAt: now,
    version: '0.0.0',
    sealsEvents: true,
    relayVersion: 1,
  })
  const rows = Array.from({ length: 5 }, (_, index) => ({
    connectionId: newId(now),
    nodeId,
    userId: user.id,
    keyId: newId(now),
    keyName: null,
    address: '192.0.2.1',
    client: null,
    // Every two connections have the same time, so that ids break ties.
    connectedAt: now - Math.floor(index / 2) * 1000,
  }))
  await server.store.presence.record(nodeId, rows, [], now)
  const list = (query: string) => server.get(`/v1/agents${query}`, { token: tokens.accessToken })
  const allConnections = await list('')
  assert.deepEqual(
    [allConnections.body.data.length, allConnections.body.has_more, allConnections.body.next_cursor],
    [5, false, null],
  )
  const listedConnections: unknown[] = []
  let query = '?limit=2'
  for (const expected of [2, 2, 1]) {
    const { body } = await list(query)
    assert.equal(body.data.length, expected)
    assert.equal(body.has_more, expected === 2)
    listedConnections.push(...body.data)
    query = `?limit=2&cursor=${body.next_cursor}`
  }
  assert.deepEqual(listedConnections, allConnections.body.data)
  assert.equal((await list('?limit=0')).status, 400)
  assert.equal((await list('?cursor=x')).status, 400)
})
