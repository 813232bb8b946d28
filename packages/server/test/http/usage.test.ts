import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR } from '../../src/clock.ts'
import { forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'

const UNKNOWN_ID = '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11'

forEachEngine(engine => {
  test('usage has the uses of a key and its owner, by hour and by day', async t => {
    const server = await openServer(engine, t)
    const { tokens, user } = await server.signIn('ada@example.com')
    const token = tokens.accessToken
    const secret = await server.registerApp('reports')
    const { id, key } = await server.createKey(token, { scopes: ['agent:connect', 'keys:read'] })
    await server.post('/auth/agent-token', { api_key: key })
    await server.get('/v1/api-keys', { token: key })
    assert.equal((await server.get('/v1/me', { token: key })).body.code, 'insufficient_scope')
    assert.equal((await server.post('/v1/api-keys', {}, { token: key })).body.code, 'session_required')
    await server.post('/auth/introspect', { token: key }, { headers: basicAuthorization('reports', secret) })
    await server.meter.flush()

    const expected = {
      exchanges: 1,
      api_calls: 1,
      introspections: 1,
      refused: { insufficient_scope: 1, session_required: 1 },
      connections: 0,
      connected_seconds: 0,
      messages_sent: 0,
      messages_received: 0,
      charged: '0.00',
    }
    for (const bucket of ['hour', 'day']) {
      const { status, body } = await server.get(`/v1/api-keys/${id}/usage?bucket=${bucket}`, { token: key })
      assert.equal(status, 200)
      const { start, ...counts } = body.data.at(-1)
      assert.deepEqual(counts, expected)
      assert.equal(start, bucket === 'hour' ? '2026-11-20T12:00:00.000Z' : '2026-11-20T00:00:00.000Z')
      const ownersBucket = (await server.get(`/v1/usage?bucket=${bucket}`, { token })).body.data.at(-1)
      assert.equal(ownersBucket.api_calls, 2, 'one with the key, one to make it')
      assert.deepEqual(ownersBucket.refused, expected.refused)
    }
    assert.ok(user.id)
  })

  test('usage has every bucket of the range, oldest first, including empty ones', async t => {
    const server = await openServer(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const { id, key } = await server.createKey(tokens.accessToken)
    const token = key
    await server.post('/auth/agent-token', { api_key: key })
    server.clock.advance(2 * HOUR)
    await server.post('/auth/agent-token', { api_key: key })
    await server.meter.flush()
    const range = 'from=2026-11-20T12:59:59Z&to=2026-11-20T15:00:00%2B01:00&bucket=hour'
    const { body } = await server.get(`/v1/api-keys/${id}/usage?${range}`, { token })
    assert.deepEqual(
      body.data.map((bucket: { start: string; exchanges: number }) => [
        bucket.start.slice(11, 16),
        bucket.exchanges,
      ]),
      [
        ['12:00', 1],
        ['13:00', 0],
      ],
    )
    const answerUntilNow = await server.get(
      `/v1/api-keys/${id}/usage?from=2026-11-20T13:00:00Z&bucket=hour`,
      {
        token,
      },
    )
    assert.deepEqual(
      answerUntilNow.body.data.map((bucket: { exchanges: number }) => bucket.exchanges),
      [0, 1],
    )
  })

  test('an invalid range is refused with its field', async t => {
    const server = await openServer(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const invalidQueries: [string, string][] = [
      ['bucket=week', 'bucket'],
      ['from=yesterday', 'from'],
      ['to=2026-11-20', 'to'],
      ['from=2030-01-01T00:00:00Z', 'from'],
      ['from=2026-11-19T00:00:00Z&to=2026-11-18T00:00:00Z', 'to'],
      ['bucket=hour&from=2026-01-01T00:00:00Z', 'from'],
      ['from=2020-01-01T00:00:00Z', 'from'],
      ['from=2026-11-19T00:00:00Z&from=2026-11-18T00:00:00Z', 'from'],
    ]
    for (const [query, field] of invalidQueries) {
      const { status, body } = await server.get(`/v1/usage?${query}`, { token: tokens.accessToken })
      assert.deepEqual([status, body.code, body.errors[0].field], [400, 'invalid_request', field], query)
    }
  })

  test('another person’s usage and an unknown key’s are not found, and a key needs keys:read', async t => {
    const server = await openServer(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const bob = await server.signIn('bob@example.com')
    const { id } = await server.createKey(tokens.accessToken)
    const { key } = await server.createKey(tokens.accessToken, { scopes: ['account:read'] })
    for (const each of [id, UNKNOWN_ID, 'nonsense']) {
      const answer = await server.get(`/v1/api-keys/${each}/usage`, { token: bob.tokens.accessToken })
      assert.deepEqual([answer.status, answer.body.code], [404, 'not_found'])
    }
    for (const path of [`/v1/api-keys/${id}/usage`, '/v1/usage'])
      assert.equal((await server.get(path, { token: key })).body.code, 'insufficient_scope')
  })

  test('CSV has one record per bucket, one column per code, and no cell that a spreadsheet executes', async t => {
    const server = await openServer(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const token = tokens.accessToken
    const { id, key } = await server.createKey(token, { name: '=1+1', scopes: ['own:x'] })
    for (let n = 0; n < 2; n++) await server.post('/auth/agent-token', { api_key: key })
    await server.meter.flush()
    const path = `/v1/api-keys/${id}/usage?from=2026-11-20T00:00:00Z`
    const answer = await server.get(path, { token, headers: { Accept: 'text/csv' } })
    assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
    assert.equal(
      answer.text,
      'start,exchanges,api_calls,introspections,refused,connections,connected_seconds,messages_sent,messages_received,charged,refused_insufficient_scope\r\n' +
        '2026-11-20T00:00:00.000Z,0,0,0,2,0,0,0,0,0.00,2\r\n',
    )
    const contentTypeFor = async (accept: string) =>
      (await server.get(path, { token, headers: { Accept: accept } })).headers
        .get('content-type')!
        .split(';')[0]
    assert.equal(await contentTypeFor('*/*'), 'application/json')
    assert.equal(await contentTypeFor('application/json, text/csv;q=0.5'), 'application/json')
    assert.equal(await contentTypeFor('text/csv;q=0'), 'application/json')
    assert.equal(await contentTypeFor('TEXT/CSV; q=1.0, */*;q=0.1'), 'text/csv')
  })

  test('a key has the time, network and client of its last use, before and after it was stored', async t => {
    const server = await openServer(engine, t, { trustedProxies: ['127.0.0.1/32'] })
    const { tokens, user } = await server.signIn('ada@example.com')
    const token = tokens.accessToken
    const { id, key } = await server.createKey(token)
    const lastUse = async () => (await server.get(`/v1/api-keys/${id}`, { token })).body.last_used_from
    assert.equal(await lastUse(), null)
    const exchangeFrom = (address: string, client: string) =>
      server.post(
        '/auth/agent-token',
        { api_key: key },
        { headers: { 'X-Forwarded-For': address, 'User-Agent': client } },
      )
    await exchangeFrom('203.0.113.7', 'keyway-sdk/0.1.0')
    server.clock.advance(1)
    await exchangeFrom('2001:db8:1:2:3:4:5:6', `robot\x9f ${'x'.repeat(300)}`)
    const expected = { network: '2001:db8:1:2::/64', client: `robot ${'x'.repeat(194)}` }
    assert.deepEqual(await lastUse(), expected)
    await server.apiKeys.flushUses()
    assert.deepEqual(await lastUse(), expected)
    const listedKey = (await server.get('/v1/api-keys', { token })).body.data[0]
    assert.deepEqual(listedKey.last_used_from, expected)
    assert.deepEqual((await server.store.apiKeys.findOwned(user.id, id))!.lastUsedFrom, expected)
    server.clock.advance(1)
    await server.call('DELETE', `/v1/api-keys/${id}`, { token })
    assert.equal((await exchangeFrom('203.0.113.9', 'thief')).body.code, 'api_key_revoked')
    assert.deepEqual(await lastUse(), expected, 'a refused use moves nothing')
  })
})

forEachEngine(engine => {
  test('administrators and support read the usage of anybody and of any key, also as CSV', async t => {
    const server = await openServer(engine, t)
    const [admin, ada] = [await server.signIn('admin@example.com'), await server.signIn('ada@example.com')]
    await server.users.setRole(admin.user.id, 'admin')
    await server.users.setRole((await server.signIn('support@example.com')).user.id, 'support')
    const support = (await server.signIn('support@example.com')).tokens.accessToken
    const { id, key } = await server.createKey(ada.tokens.accessToken)
    await server.post('/auth/agent-token', { api_key: key })
    await server.meter.flush()
    for (const token of [admin.tokens.accessToken, support]) {
      for (const path of [`/v1/admin/users/${ada.user.id}/usage`, `/v1/admin/api-keys/${id}/usage`]) {
        assert.equal((await server.get(path, { token })).body.data.at(-1).exchanges, 1, path)
        const csv = await server.get(`${path}?bucket=hour`, { token, headers: { accept: 'text/csv' } })
        assert.equal(csv.text.split('\r\n').length, 26)
      }
      for (const path of [`/v1/admin/users/${UNKNOWN_ID}/usage`, `/v1/admin/api-keys/${UNKNOWN_ID}/usage`])
        assert.equal((await server.get(path, { token })).status, 404, path)
    }
  })
})
