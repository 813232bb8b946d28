import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../support/engines.ts'
import { type CallAnswer, openServer } from '../support/http.ts'

const UNKNOWN_ID = '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11'

forEachEngine(engine => {
  test('a key can be created, listed, read, renamed, exchanged, rotated and revoked', async t => {
    const server = await openServer(engine, t)
    const { tokens, user } = await server.signIn('ada@example.com')
    const token = tokens.accessToken
    const creationAnswer = await server.post(
      '/v1/api-keys',
      { name: 'Laptop', scopes: ['agent:connect'], expires_at: '2030-01-01T05:30:00+05:30' },
      { token },
    )
    assert.equal(creationAnswer.status, 201)
    const { key, ...object } = creationAnswer.body
    assert.equal(object.expires_at, '2030-01-01T00:00:00.000Z')
    assert.deepEqual((await server.get('/v1/api-keys', { token })).body, {
      data: [object],
      has_more: false,
      next_cursor: null,
    })
    assert.deepEqual((await server.get(`/v1/api-keys/${object.id.toUpperCase()}`, { token })).body, object)
    const renameAnswer = await server.call('PATCH', `/v1/api-keys/${object.id}`, {
      token,
      body: { name: 'Old', allowed_networks: null },
    })
    assert.equal(renameAnswer.body.name, 'Old')
    const exchangeAnswer = await server.post('/auth/agent-token', { api_key: key })
    assert.deepEqual({ ...exchangeAnswer.body, token: '' }, { token: '', agent_id: user.id, expires_in: 900 })
    const rotationAnswer = await server.post(
      `/v1/api-keys/${object.id}/rotate`,
      { overlap_seconds: 0 },
      { token },
    )
    assert.equal(rotationAnswer.status, 201)
    assert.equal((await server.post('/auth/agent-token', { api_key: key })).body.code, 'api_key_revoked')
    const deletionAnswer = await server.call('DELETE', `/v1/api-keys/${rotationAnswer.body.id}`, { token })
    assert.equal(deletionAnswer.body.status, 'revoked')
    const secondDelete = await server.call('DELETE', `/v1/api-keys/${rotationAnswer.body.id}`, { token })
    assert.deepEqual(secondDelete.body, deletionAnswer.body)
    assert.equal((await server.get('/v1/api-keys?status=active', { token })).body.data.length, 0)
    assert.equal((await server.get('/v1/api-keys?status=revoked', { token })).body.data.length, 2)
  })

  test('a key of another user is answered like an unknown one, and is not changed', async t => {
    const server = await openServer(engine, t)
    const ada = await server.signIn('ada@example.com')
    const bob = await server.signIn('bob@example.com')
    const { id, key } = await server.createKey(ada.tokens.accessToken)
    const token = bob.tokens.accessToken
    for (const [method, tail] of [
      ['GET', ''],
      ['PATCH', ''],
      ['POST', '/rotate'],
      ['DELETE', ''],
    ] as const) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : {}
      const answerForOtherUser = await server.call(method, `/v1/api-keys/${id}${tail}`, { token, body })
      const answerForUnknownKey = await server.call(method, `/v1/api-keys/${UNKNOWN_ID}${tail}`, {
        token,
        body,
      })
      assert.equal(answerForOtherUser.status, 404)
      assert.match(answerForOtherUser.body.detail, /^There is no such API key\./, method)
      assert.deepEqual(
        { ...answerForOtherUser.body, request_id: '' },
        { ...answerForUnknownKey.body, request_id: '' },
      )
    }
    assert.equal((await server.post('/auth/agent-token', { api_key: key })).status, 200)
  })
})

test('an empty name removes the name of a key or user; null and omission leave it unchanged', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const { id } = (await server.post('/v1/api-keys', { name: 'Laptop' }, { token })).body
  const nameOf = ({ body }: { body: { name?: unknown; user?: { name: unknown } } }) =>
    body.user ? body.user.name : body.name
  for (const path of [`/v1/api-keys/${id}`, '/v1/me']) {
    const patch = async (body: object) => nameOf(await server.call('PATCH', path, { token, body }))
    assert.equal(await patch({ name: 'Ada' }), 'Ada')
    assert.equal(await patch({ name: null }), 'Ada')
    assert.equal(await patch({}), 'Ada')
    assert.equal(await patch({ name: '' }), null)
  }
  assert.equal((await server.post('/v1/api-keys', { name: '' }, { token })).body.name, null)
})

test('malformed and wrong keys are refused with the same problem', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const { key } = await server.createKey(tokens.accessToken)
  const otherCharacter = key.endsWith('a') ? 'b' : 'a'
  const wrongKeys = [
    `${key}\n`,
    ` ${key}`,
    `${key}\0`,
    `${key}\0x`,
    key.replace('svc_', 'SVC_'),
    key.slice(0, -1) + otherCharacter,
    key.slice(0, 12),
    key.slice(0, 12) + '0'.repeat(24),
    key.replace('s', 'ｓ'),
    encodeURIComponent(`%73${key.slice(1)}`),
    '',
    'x'.repeat(10_000),
  ]
  const answers = await Promise.all(
    wrongKeys.map(miss => server.post('/auth/agent-token', { api_key: miss })),
  )
  const texts = new Set(
    answers.map(({ status, text, body }) => `${status} ${text.replace(body.request_id, '')}`),
  )
  assert.deepEqual([...texts].length, 1, [...texts].join('\n'))
  assert.match([...texts][0]!, /^401 .*invalid_api_key/)
  for (const invalidValue of [[key], { toString: key }, 1, null, true]) {
    assert.equal(
      (await server.post('/auth/agent-token', { api_key: invalidValue })).body.code,
      'invalid_request',
    )
  }
  assert.equal((await server.post('/auth/agent-token', { api_key: 'x'.repeat(100_000) })).status, 413)
})

test('a key that may not be used is refused with the reason, and with what to do about it', async t => {
  const server = await openServer('sqlite', t)
  const { tokens, user } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const create = (body: object = {}) => server.createKey(token, body)
  const expiresAt = new Date(server.clock.now() + 60_000).toISOString()
  const [usable, revoked, expired] = [await create(), await create(), await create({ expires_at: expiresAt })]
  const otherNetworkKey = await create({ allowed_networks: ['10.0.0.0/8'] })
  const keyWithoutAgentScope = await create({ scopes: ['own:thing'] })
  await server.call('DELETE', `/v1/api-keys/${revoked.id}`, { token })
  server.clock.advance(60_000)
  const refusalOf = async ({ key }: { key: string }) => {
    const { status, body } = await server.post('/auth/agent-token', { api_key: key })
    return `${status} ${body.code}: ${body.detail}`
  }
  assert.match(await refusalOf(revoked), /^401 api_key_revoked: .*was revoked\. Make a new one\.$/)
  assert.match(await refusalOf(expired), /^401 api_key_expired: .*has expired\. Make a new one\.$/)
  assert.match(
    await refusalOf(otherNetworkKey),
    /^403 network_not_allowed: .*not be used from this network\.$/,
  )
  assert.match(
    await refusalOf(keyWithoutAgentScope),
    /^403 insufficient_scope: .*lacks the scope agent:connect\. Use a key that has it, or one without scopes\.$/,
  )
  await server.users.suspend(user.id)
  assert.match(await refusalOf(usable), /^403 account_suspended: .*is suspended\. Ask the operator\.$/)
})

test('malformed ids in a path are 404', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const { id } = await server.createKey(tokens.accessToken)
  for (const malformedId of [
    `{${id}}`,
    `urn:uuid:${id}`,
    id.replaceAll('-', ''),
    '%00',
    '..%2fx',
    '1%20OR%201=1',
    'x'.repeat(8000),
    `${id}%00`,
    `${id}%20`,
  ]) {
    const answer = await server.call('DELETE', `/v1/api-keys/${malformedId}`, { token: tokens.accessToken })
    assert.equal(answer.status, 404, malformedId)
  }
  assert.equal((await server.get(`/v1/api-keys/${id}`, { token: tokens.accessToken })).body.status, 'active')
})

test('pages of lists are bounded, and a cursor reveals no rows of other users', async t => {
  const server = await openServer('sqlite', t)
  const ada = await server.signIn('ada@example.com')
  const bob = await server.signIn('bob@example.com')
  for (let count = 0; count < 3; count++) await server.createKey(ada.tokens.accessToken)
  const firstPage = await server.get('/v1/api-keys?limit=2', { token: ada.tokens.accessToken })
  assert.equal(firstPage.body.data.length, 2)
  assert.equal(firstPage.body.has_more, true)
  const cursor = firstPage.body.next_cursor
  const secondPage = await server.get(`/v1/api-keys?limit=2&cursor=${cursor}`, {
    token: ada.tokens.accessToken,
  })
  assert.equal(secondPage.body.data.length, 1)
  assert.equal(secondPage.body.next_cursor, null)
  assert.deepEqual(
    (await server.get(`/v1/api-keys?cursor=${cursor}`, { token: bob.tokens.accessToken })).body.data,
    [],
  )
  for (const query of [
    'limit=-1',
    'limit=0',
    'limit=101',
    'limit=1e9',
    'limit=abc',
    'limit=',
    'limit=1&limit=2',
    'cursor=x',
    'cursor=%00',
    `cursor=${'a'.repeat(5000)}`,
    'status=dead',
  ]) {
    assert.equal(
      (await server.get(`/v1/api-keys?${query}`, { token: ada.tokens.accessToken })).status,
      400,
      query,
    )
  }
})

test('invalid expiries, scopes, names and networks are refused with an example', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const bodies = [
    { expires_at: '2020-01-01T00:00:00Z' },
    { expires_at: '2030-02-30T00:00:00Z' },
    { expires_at: '+275760-09-13T00:00:00Z' },
    { expires_at: '9999-12-31T23:59:59-12:00' },
    { expires_at: '2030-01-01T00:00:00' },
    { expires_at: 1900000000 },
    { scopes: null },
    { scopes: 'agent:connect' },
    { scopes: ['agent:everything'] },
    { scopes: ['a b'] },
    { scopes: Array.from({ length: 33 }, (_, index) => `s${index}`) },
    { name: 'x'.repeat(101) },
    { name: 'a\r\n{"level":"fake"}' },
    { name: '\u001b[31m' },
    { allowed_networks: ['10.0.0.1/8'] },
    { allowed_networks: ['nowhere'] },
    { app_id: 'UPPER' },
    { app_id: 'x'.repeat(10_000) },
    { app_id: {} },
    { app_id: '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11' },
  ]
  for (const body of bodies) {
    const answer = await server.post('/v1/api-keys', body, { token: tokens.accessToken })
    assert.equal(answer.body.code, 'invalid_request', JSON.stringify(body))
    assert.ok(answer.body.errors[0].field)
  }
})

test('each problem of a field is reported once, also host bits of a network', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const { id } = await server.createKey(token)
  const hugeOverlapAnswer = await server.post(
    `/v1/api-keys/${id}/rotate`,
    { overlap_seconds: 1e300 },
    { token },
  )
  assert.equal(hugeOverlapAnswer.body.errors.length, 1)
  const hostBitsAnswer = await server.post('/v1/api-keys', { allowed_networks: ['10.1.2.3/8'] }, { token })
  assert.match(hostBitsAnswer.body.errors[0].message, /no address bits after the prefix/)
})

test('only a successful use updates last_used_at', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const createKey = async (body: object) => (await server.post('/v1/api-keys', body, { token })).body
  const lastUseOf = async (id: string) =>
    (await server.get(`/v1/api-keys/${id}`, { token })).body.last_used_at
  const scopedKey = await createKey({ scopes: ['account:read'] })
  const unrestrictedKey = await createKey({})
  assert.equal((await server.get('/v1/agents', { token: scopedKey.key })).status, 403)
  assert.equal((await server.get('/v1/api-keys', { token: scopedKey.key })).status, 403)
  assert.equal((await server.post('/auth/agent-token', { api_key: scopedKey.key })).status, 403)
  assert.equal((await server.post('/v1/api-keys', {}, { token: unrestrictedKey.key })).status, 403)
  assert.equal(await lastUseOf(scopedKey.id), null)
  assert.equal(await lastUseOf(unrestrictedKey.id), null)
  assert.equal((await server.get('/v1/me', { token: scopedKey.key })).status, 200)
  assert.notEqual(await lastUseOf(scopedKey.id), null)
})

test('the whole key is only in the response that creates it', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const { id, key } = await server.createKey(token)
  const answers = [
    await server.get('/v1/api-keys', { token }),
    await server.get(`/v1/api-keys/${id}`, { token }),
    await server.post('/auth/agent-token', { api_key: key }),
    await server.get('/v1/me', { token: key }),
    await server.get('/v1/security-events', { token }),
    await server.call('DELETE', `/v1/api-keys/${id}`, { token }),
    await server.post('/auth/agent-token', { api_key: key }),
    await server.post('/auth/agent-token', { api_key: `${key}x` }),
    await server.post('/auth/refresh', { refresh_token: key }),
    await server.get('/v1/me', { token: key }),
  ]
  for (const { text, headers } of answers) {
    const wholeAnswer = text + JSON.stringify([...headers])
    for (let at = 0; at + 13 <= key.length; at++) assert.ok(!wholeAnswer.includes(key.slice(at, at + 13)))
  }
})

forEachEngine(engine => {
  test('a mistyped field of a key is refused with a suggestion, and nothing is created or changed', async t => {
    const server = await openServer(engine, t)
    const { tokens } = await server.signIn('ada@example.com')
    const token = tokens.accessToken
    const { id } = await server.createKey(token, { name: 'Laptop' })
    const create = (body: object) => server.post('/v1/api-keys', body, { token })
    const update = (body: object) => server.call('PATCH', `/v1/api-keys/${id}`, { token, body })
    const rotate = (body: object) => server.post(`/v1/api-keys/${id}/rotate`, body, { token })
    const cases: [call: (body: object) => Promise<CallAnswer>, body: object, field: string, meant: RegExp][] =
      [
        [create, { scope: ['agent:connect'] }, 'scope', /"scopes"/],
        [create, { Scopes: ['agent:connect'] }, 'Scopes', /"scopes"/],
        [create, { expiresAt: '2030-01-01T00:00:00Z' }, 'expiresAt', /"expires_at"/],
        [create, { allowed_network: ['10.0.0.0/8'] }, 'allowed_network', /"allowed_networks"/],
        [create, { permissions: ['agent:connect'] }, 'permissions', /name, scopes, expires_at/],
        [create, JSON.parse('{"__proto__": {"scopes": []}}'), '__proto__', /name, scopes, expires_at/],
        [create, { ['x'.repeat(9000)]: 1 }, 'x'.repeat(64), /name, scopes/],
        [update, { expires_at: '2030-01-01T00:00:00Z' }, 'expires_at', /name, allowed_networks/],
        [update, { scopes: [] }, 'scopes', /name, allowed_networks/],
        [rotate, { overlap: 0 }, 'overlap', /overlap_seconds/],
      ]
    for (const [call, body, field, meant] of cases) {
      const answer = await call(body)
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], field)
      assert.equal(answer.body.errors[0].field, field)
      assert.match(answer.body.errors[0].message, meant)
    }
    const answerToManyFields = await create(
      Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`f${index}`, 1])),
    )
    assert.equal(answerToManyFields.body.errors.length, 20)
    const { data } = (await server.get('/v1/api-keys', { token })).body
    assert.deepEqual(
      data.map((key: { name: string; scopes: string[] }) => [key.name, key.scopes]),
      [['Laptop', []]],
    )
  })
})

test('null means no expiry of a key, but is refused for its scopes', async t => {
  const server = await openServer('sqlite', t)
  const { tokens } = await server.signIn('ada@example.com')
  const create = (body: object) => server.post('/v1/api-keys', body, { token: tokens.accessToken })
  assert.equal((await create({ expires_at: null })).body.expires_at, null)
  const refusal = await create({ scopes: null })
  assert.deepEqual([refusal.status, refusal.body.errors[0].field], [400, 'scopes'])
})

test('too many created keys are refused with 429, the window and the wait', async t => {
  const server = await openServer('sqlite', t, { keyCreationLimits: [{ window: 'hour', limit: 2 }] })
  const { tokens } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const { id } = await server.createKey(token)
  await server.createKey(token)
  server.clock.advance(60_000)
  for (const path of ['/v1/api-keys', `/v1/api-keys/${id}/rotate`]) {
    const { status, body, headers } = await server.post(path, {}, { token })
    assert.deepEqual([status, body.code, body.window, body.retry_after], [429, 'rate_limited', 'hour', 3540])
    assert.equal(headers.get('retry-after'), '3540')
    assert.equal(body.setting, 'KEYWAY_KEY_CREATION_LIMITS')
    assert.match(body.detail, /within this hour\. Try again in 3540 seconds\.$/)
  }
  server.clock.advance(3_539_000)
  const laterToken = (await server.signIn('ada@example.com')).tokens.accessToken
  const answerInLastSecond = await server.post('/v1/api-keys', {}, { token: laterToken })
  assert.match(answerInLastSecond.body.detail, /Try again in 1 second\.$/)
  server.clock.advance(1000)
  assert.equal((await server.post('/v1/api-keys', {}, { token: laterToken })).status, 201)
})

test('problems name the setting behind a refusal only with the local inbox', async t => {
  for (const hasInbox of [true, false]) {
    const server = await openServer('sqlite', t, {
      keyCreationLimits: [{ window: 'hour', limit: 1 }],
      hasInbox,
    })
    const { tokens } = await server.signIn('ada@example.com')
    await server.createKey(tokens.accessToken)
    const { status, body } = await server.post('/v1/api-keys', {}, { token: tokens.accessToken })
    assert.deepEqual([status, body.setting], [429, hasInbox ? 'KEYWAY_KEY_CREATION_LIMITS' : undefined])
  }
})

test('EXC-06: 2,000 exchanges of one key are bounded with 429 and Retry-After; refusals and other keys are not', async t => {
  const server = await openServer('sqlite', t, { exchangeLimits: [{ window: 'minute', limit: 600 }] })
  const ada = await server.signIn('ada@example.com')
  const bob = await server.signIn('bob@example.com')
  const { id, key } = await server.createKey(ada.tokens.accessToken)
  const otherKey = await server.createKey(bob.tokens.accessToken)
  const exchange = (api_key: string) => server.post('/auth/agent-token', { api_key })
  const answers: CallAnswer[] = []
  for (let sent = 0; sent < 2000; sent += 100) {
    answers.push(...(await Promise.all(Array.from({ length: 100 }, () => exchange(key)))))
  }
  assert.equal(answers.filter(({ status }) => status === 200).length, 600)
  const limitedAnswers = answers.filter(({ status }) => status === 429)
  assert.equal(limitedAnswers.length, 1400)
  for (const { body, headers } of limitedAnswers) {
    assert.deepEqual([body.code, body.window, body.retry_after], ['rate_limited', 'minute', 60])
    assert.equal(headers.get('retry-after'), '60')
  }
  assert.equal((await exchange(otherKey.key)).status, 200)
  assert.equal((await exchange(`svc_${'0'.repeat(32)}`)).body.code, 'invalid_api_key')
  assert.equal((await server.get('/v1/me', { token: key })).status, 200, 'the key works elsewhere')
  server.clock.advance(60_000)
  assert.equal((await exchange(key)).status, 200)
  await server.call('DELETE', `/v1/api-keys/${id}`, { token: ada.tokens.accessToken })
  assert.equal((await exchange(key)).body.code, 'api_key_revoked')
})
