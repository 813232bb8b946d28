import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { DAY } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'
import { until } from '../support/patience.ts'

/** The `n`th key of another system; the digest stands for its random bits. */
const foreignKey = (n: number) => `sk_live_${createHash('sha256').update(`key ${n}`).digest('hex')}`
const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')

async function open(engine: EngineName, t: TestContext, overrides: Parameters<typeof openServer>[2] = {}) {
  const server = await openServer(engine, t, overrides)
  const admin = await server.signIn('admin@example.com')
  await server.users.setRole(admin.user.id, 'admin')
  const ada = await server.signIn('ada@example.com')
  const token = admin.tokens.accessToken
  const call = (path: string, body: object) => server.call('POST', `/v1/admin${path}/import`, { token, body })
  const row = (n: number, change: object = {}) => ({
    email: 'ada@example.com',
    sha256: sha256(foreignKey(n)),
    prefix: 'sk_live_',
    scopes: ['agent:connect', 'account:read'],
    ...change,
  })
  const importKeys = (...keys: object[]) => call('/api-keys', { keys })
  const exchange = (key: string) => server.post('/auth/agent-token', { api_key: key })
  const lastAuditEvent = async () => (await server.store.audit.list({}, { limit: 1, after: null })).rows[0]!
  return { ...server, server, admin, ada, token, call, row, importKeys, exchange, lastAuditEvent }
}

forEachEngine(engine => {
  test('an imported key is accepted by exchange, API, OAuth and introspection until it is revoked', async t => {
    const { importKeys, row, exchange, get, form, registerApp, post, call, ada, token, server } = await open(
      engine,
      t,
    )
    const key = foreignKey(1)
    assert.equal((await exchange(key)).body.code, 'invalid_api_key')
    const importAnswer = await importKeys(row(1, { name: 'Old laptop', external_id: 'k-1' }))
    assert.deepEqual(
      [importAnswer.status, importAnswer.body.imported, importAnswer.body.skipped],
      [200, 1, 0],
      importAnswer.text,
    )
    const { id } = importAnswer.body.data[0]
    const exchangeAnswer = await exchange(key)
    assert.deepEqual(
      [exchangeAnswer.status, exchangeAnswer.body.agent_id],
      [200, ada.user.id],
      exchangeAnswer.text,
    )
    const me = await get('/v1/me', { token: key })
    assert.equal(me.body.user.email, 'ada@example.com')
    assert.equal((await get('/v1/api-keys', { token: key })).body.code, 'insufficient_scope')
    const tokenAnswer = await form('/oauth/token', {
      grant_type: 'client_credentials',
      client_id: id,
      client_secret: key,
    })
    assert.equal(tokenAnswer.status, 200, tokenAnswer.text)
    const secret = await registerApp('reports')
    const headers = basicAuthorization('reports', secret)
    const introspect = async () => (await post('/auth/introspect', { token: key }, { headers })).body
    const introspection = await introspect()
    assert.deepEqual([introspection.active, introspection.key_id, introspection.type], [true, id, 'api_key'])

    const adaToken = ada.tokens.accessToken
    const keyObject = (await get(`/v1/api-keys/${id}`, { token: adaToken })).body
    assert.deepEqual(
      [keyObject.key_prefix, keyObject.name, keyObject.external_id],
      ['sk_live_', 'Old laptop', 'k-1'],
    )
    assert.ok(!JSON.stringify(keyObject).includes(key.slice(0, 13)))
    const foundKeys = await get('/v1/admin/api-keys?prefix=sk_li', { token })
    assert.deepEqual(
      foundKeys.body.data.map((each: { id: string }) => each.id),
      [id],
    )
    assert.equal((await server.call('DELETE', `/v1/api-keys/${id}`, { token: adaToken })).status, 200)
    assert.equal((await exchange(key)).body.code, 'api_key_revoked')
    assert.equal((await introspect()).active, false)
    const secondImport = await importKeys(row(1))
    assert.deepEqual(
      [secondImport.body.imported, secondImport.body.skipped, secondImport.body.data[0].id],
      [0, 1, id],
    )
    assert.equal((await exchange(key)).body.code, 'api_key_revoked', 'a revoked one is never revived')
    assert.equal((await call('/api-keys', { keys: [] })).status, 400)
  })

  test('whoever holds an imported key may revoke it, its owner may rotate it, and an unknown Bearer value counts as a failure', async t => {
    const { importKeys, row, exchange, get, post, ada, call, server } = await open(engine, t, {
      failureLimits: [{ window: 'minute', limit: 3 }],
    })
    assert.equal((await get('/v1/me', { token: foreignKey(9) })).body.code, 'invalid_token')
    const { data } = (await importKeys(row(1), row(2), row(3))).body
    assert.equal((await post('/auth/revoke', { token: foreignKey(1) })).status, 204)
    assert.equal((await exchange(foreignKey(1))).body.code, 'api_key_revoked')
    const rotationAnswer = await server.call('POST', `/v1/api-keys/${data[1].id}/rotate`, {
      token: ada.tokens.accessToken,
      body: { overlap_seconds: 0 },
    })
    assert.match(rotationAnswer.body.key, /^svc_/)
    assert.equal((await exchange(foreignKey(2))).body.code, 'api_key_revoked')
    assert.ok(call)
    const refusalCodes = []
    for (let n = 0; n < 4; n++)
      refusalCodes.push((await get('/v1/me', { token: foreignKey(90 + n) })).body.code)
    assert.deepEqual(refusalCodes.slice(-2), ['rate_limited', 'rate_limited'])
    assert.equal((await get('/v1/me', { token: foreignKey(3) })).status, 200, 'good keys are always served')
    assert.equal((await get('/v1/me', { token: 'eyJhbGciOiJFZERTQSJ9.e30.x' })).body.code, 'invalid_token')
  })

  test('a text that is no key of ours is looked up on every node while imported keys exist, and never otherwise', async t => {
    const { importKeys, row, opened, exchange, imported, ada, apiKeys, server } = await open(engine, t)
    const node = await opened.reopen()
    const otherNode = await openServer(engine, t, { on: { node, of: opened } })
    otherNode.imported.start()
    t.after(() => otherNode.imported.stop())
    assert.equal(imported.mayBeKey(foreignKey(1)), false)
    const { data } = (await importKeys(row(1))).body
    if (engine === 'sqlite') await otherNode.imported.load() // nodes on SQLite exchange no events
    await until('the other node looks them up', () => otherNode.imported.mayBeKey(foreignKey(1)))
    assert.equal((await otherNode.post('/auth/agent-token', { api_key: foreignKey(1) })).status, 200)
    for (const text of ['', 'x'.repeat(513), 'svr_x', 'sva_x', 'eyJhbGciOiJFZERTQSJ9.e30.x'])
      assert.equal(imported.mayBeKey(text), false, text.slice(0, 20))
    await apiKeys.revoke(ada.user.id, data[0].id, server.caller())
    await imported.load()
    assert.equal((await exchange(foreignKey(1))).body.code, 'api_key_revoked', 'it stays listed')
  })

  test('an import is refused as a whole: wrong fields, no account, the key of another, a policy, the key limit', async t => {
    const { importKeys, row, store, ada, signIn, policies, clock, admin, lastAuditEvent } = await open(
      engine,
      t,
      {
        maxActiveKeys: 3,
      },
    )
    const bob = await signIn('bob@example.com')
    await importKeys(row(1, { email: undefined, user_id: bob.user.id }))
    const auditEvent = await lastAuditEvent()
    assert.deepEqual([auditEvent.type, auditEvent.after], ['api_key.imported', { imported: 1, skipped: 0 }])
    assert.equal(auditEvent.subject.type, 'api_key')
    const invalidChanges: [object, string, RegExp?][] = [
      [{ sha256: 'abc' }, 'keys.1.sha256'],
      [{ prefix: 'much too long' }, 'keys.1.prefix'],
      [{ prefix: 'a b' }, 'keys.1.prefix'],
      [{ scopes: undefined }, 'keys.1.scopes', /^is required: a list of scopes \(\[\] for all permissions\)/],
      [{ scopes: ['agent:fly'] }, 'keys.1.scopes.0'],
      [{ scopes: ['admin:read'] }, 'keys.1.scopes', /admin:… for administrators only/],
      [{ user_id: admin.user.id }, 'keys.1'],
      [{ email: undefined }, 'keys.1'],
      [{ email: 'nobody@example.com' }, 'keys.1.email', /has no account/],
      [{ email: undefined, user_id: newId(0) }, 'keys.1.user_id', /has no account/],
      [{ expires_at: '2020-01-01T00:00:00Z' }, 'keys.1.expires_at', /must lie in the future/],
      [{ expiresAt: '2090-01-01T00:00:00Z' }, 'keys.1'],
    ]
    for (const [change, field, message = /./] of invalidChanges) {
      const refusal = await importKeys(row(2), row(3, change))
      assert.deepEqual([refusal.status, refusal.body.errors?.[0].field], [400, field], refusal.text)
      assert.match(refusal.body.errors[0].message, message)
    }
    const answerWithOthersKey = await importKeys(row(2), row(1))
    assert.deepEqual([answerWithOthersKey.status, answerWithOthersKey.body.code], [409, 'key_conflict'])
    const overLimitAnswer = await importKeys(row(2), row(3), row(4), row(5))
    assert.deepEqual([overLimitAnswer.status, overLimitAnswer.body.code], [409, 'key_limit_reached'])
    await policies.change({ maxKeyLifetimeDays: 30 }, BY_COMMAND_LINE)
    const answerWithoutExpiry = await importKeys(row(2))
    assert.match(answerWithoutExpiry.body.detail, /keys\.0\.expires_at.*max_key_lifetime_days/)
    assert.equal((await store.apiKeys.list(ada.user.id, null, 0, { limit: 9, after: null })).rows.length, 0)
    const expires_at = new Date(clock.now() + 30 * DAY).toISOString()
    const repeatedKeyAnswer = await importKeys(row(2, { expires_at }), row(2, { expires_at }))
    assert.deepEqual([repeatedKeyAnswer.body.imported, repeatedKeyAnswer.body.skipped], [1, 1])
    const { rows } = await store.securityEvents.list(ada.user.id, { limit: 9, after: null })
    assert.equal(rows.filter(({ type }) => type === 'api_key_created').length, 1)
  })

  test('an administrator cannot import administrative keys of another administrator, and may import own ones', async t => {
    const { importKeys, row, signIn, users, get, apiKeys } = await open(engine, t)
    const graceSignIn = await signIn('grace@example.com')
    await users.setRole(graceSignIn.user.id, 'admin')
    for (const scopes of [[], ['admin:write'], ['agent:connect', 'admin:read']]) {
      const refusal = await importKeys(row(1), row(2, { email: 'grace@example.com', scopes }))
      assert.deepEqual([refusal.status, refusal.body.errors?.[0].field], [400, 'keys.1.scopes'], refusal.text)
      assert.match(refusal.body.errors[0].message, /for another administrator; use the keyway command/)
      const ownKeysAnswer = await importKeys(row(3 + scopes.length, { email: 'admin@example.com', scopes }))
      assert.equal(ownKeysAnswer.body.imported, 1, ownKeysAnswer.text)
    }
    assert.equal((await get('/v1/admin/users', { token: foreignKey(2) })).status, 401)
    assert.equal((await importKeys(row(9, { email: 'grace@example.com' }))).body.imported, 1)
    const ownerFields = { userId: graceSignIn.user.id }
    const key = { owner: ownerFields, keyHash: 'x'.repeat(43), keyPrefix: 'x', name: null, scopes: null }
    const otherFields = { expiresAt: null, appId: 'service-sdk', externalId: null }
    assert.equal((await apiKeys.importKeys([{ ...key, ...otherFields }], BY_COMMAND_LINE)).length, 1)
  })

  test('eight imports at once on two nodes import each key once', async t => {
    const { row, opened, server, token, store, ada } = await open(engine, t)
    const node = await opened.reopen()
    const otherNode = await openServer(engine, t, { on: { node, of: opened } })
    await otherNode.signingKeys.load()
    const keys = Array.from({ length: 10 }, (_, n) => row(n))
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 ? server : otherNode).call('POST', '/v1/admin/api-keys/import', { token, body: { keys } }),
      ),
    )
    for (const { status, text } of answers) assert.equal(status, 200, text)
    assert.equal(
      answers.reduce((sum, { body }) => sum + body.imported, 0),
      10,
    )
    assert.equal((await store.apiKeys.list(ada.user.id, null, 0, { limit: 99, after: null })).rows.length, 10)
  })

  test('imported people have neither credit nor plan nor mail, and get all of it once with the first sign-in', async t => {
    const { call, store, signIn, mailsTo, get, token, importKeys, row, accounts, lastAuditEvent } =
      await open(engine, t)
    const users = [
      { email: 'Grace@example.com', name: 'Grace', external_id: 'c-42' },
      { email: 'ada@example.com', name: 'Other' },
      { email: 'grace@example.com' },
    ]
    const importAnswer = await call('/users', { users })
    assert.deepEqual(
      [importAnswer.status, importAnswer.body.imported, importAnswer.body.skipped],
      [200, 1, 2],
      importAnswer.text,
    )
    assert.deepEqual((await lastAuditEvent()).after, { imported: 1, skipped: 2 })
    const { id } = importAnswer.body.data[0]
    assert.equal(importAnswer.body.data[2].id, id)
    const person = (await get(`/v1/admin/users/${id}`, { token })).body
    assert.deepEqual([person.name, person.external_id, person.balance.amount], ['Grace', 'c-42', '0.00'])
    assert.equal(await store.billing.subscription(id), null)
    assert.equal((await store.outbox.recentFor('grace@example.com' as never, 9)).length, 0)
    await importKeys(row(1, { email: 'grace@example.com' }))
    assert.equal((await get('/v1/me', { token: foreignKey(1) })).body.subscription.plan, 'free')

    const firstSignIn = await signIn('grace@example.com')
    assert.deepEqual([firstSignIn.user.id, firstSignIn.user.name, firstSignIn.isNewUser], [id, 'Grace', true])
    const secondSignIn = await signIn('grace@example.com')
    assert.equal(secondSignIn.isNewUser, false)
    const account = await accounts.get(id)
    assert.deepEqual([account.balance, account.authorizations.length], [2_000_000, 2])
    assert.equal((await mailsTo('grace@example.com', 'welcome')).length, 1)
    for (const wrong of [
      { email: 'grace' },
      { mail: 'x@example.com' },
      { email: 'x@example.com', role: 'admin' },
    ])
      assert.equal((await call('/users', { users: [wrong] })).status, 400, JSON.stringify(wrong))
  })

  test('a thousand keys and people are imported by one call, and no more', async t => {
    const { call, store, row, importKeys } = await open(engine, t, { maxActiveKeys: 5 })
    const users = Array.from({ length: 1000 }, (_, n) => ({
      email: `p${n}@example.com`,
      name: 'ü'.repeat(100),
    }))
    assert.equal((await call('/users', { users: [...users, { email: 'one@example.com' }] })).status, 400)
    assert.equal((await call('/users', { users })).body.imported, 1000)
    const scopes = Array.from({ length: 32 }, (_, n) => `shop:${n}`)
    const keys = users.map(({ email }, n) => row(n, { email, scopes }))
    const importAnswer = await importKeys(...keys)
    assert.equal(importAnswer.body.imported, 1000, importAnswer.text.slice(0, 300))
    assert.equal(await store.apiKeys.hasImported(), true)
  })
})
