import assert from 'node:assert/strict'
import { before, describe, type TestContext, test } from 'node:test'
import { type KnownScope, SCOPES } from '@keyway/sdk/protocol'
import type { Access } from '../../src/http/authenticate.ts'
import { ADMINISTRATIVE_RIGHTS } from '../support/administrative-rights.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'

const UNKNOWN_ID = '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11'

/**
 * The required access of each route on /v1: an app; a signed-in user only ("session"); a user or a key without scopes
 * ("owner"); or also a key with this scope. Listed explicitly, so that a changed route fails the test.
 */
const RIGHTS: Record<string, Exclude<Access, 'public'>> = {
  ...ADMINISTRATIVE_RIGHTS,
  'POST /v1/api-keys': 'session',
  'POST /v1/api-keys/{key_id}/rotate': 'session',
  'GET /v1/api-keys': 'keys:read',
  'GET /v1/api-keys/{key_id}': 'keys:read',
  'GET /v1/api-keys/{key_id}/usage': 'keys:read',
  'GET /v1/usage': 'keys:read',
  'PATCH /v1/api-keys/{key_id}': 'keys:write',
  'DELETE /v1/api-keys/{key_id}': 'keys:write',
  'GET /v1/me': 'account:read',
  'GET /v1/me/ledger': 'account:read',
  'GET /v1/me/export': 'session',
  'POST /v1/me/email': 'session',
  'POST /v1/me/email/confirm': 'session',
  'DELETE /v1/me/email': 'session',
  'DELETE /v1/me': 'session',
  'POST /v1/me/restore': 'session',
  'PATCH /v1/me': 'account:write',
  'GET /v1/consents': 'account:read',
  'DELETE /v1/consents/{app_id}': 'account:write',
  'DELETE /v1/me/charge-authorizations/{app_id}': 'account:write',
  'PUT /v1/me/charge-authorizations/{app_id}': 'owner',
  'GET /v1/security-events': 'events:read',
  'GET /v1/sessions': 'owner',
  'DELETE /v1/sessions/{session_id}': 'owner',
  'GET /v1/agents': 'agents:read',
  'POST /v1/agents/{connection_id}/messages': 'agents:send',
  'DELETE /v1/agents/{connection_id}': 'owner',
  'POST /v1/charges': 'app',
  'GET /v1/revocations': 'app',
  'POST /auth/introspect': 'app',
  'POST /auth/introspections': 'app',
  // This row is last, since it ends the session that the other rows use.
  'DELETE /v1/sessions': 'owner',
}

const KNOWN_SCOPES = Object.keys(SCOPES) as KnownScope[]

type Headers = Record<string, string>

interface Credential {
  name: string
  headers: Headers
  /** The error code on a route with this access; null if it is accepted. */
  refusal(needed: Exclude<Access, 'public' | 'app'>): string | null
}

async function openCredentials(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const { tokens, user } = await server.signIn('ada@example.com')
  const endedSession = await server.signIn('ada@example.com')
  // Only administrators may have keys of every scope.
  await server.users.setRole(user.id, 'admin')
  await server.users.setRole((await server.signIn('eve@example.com')).user.id, 'admin')
  const createKey = async (body: object) => {
    const { id, key } = await server.createKey(tokens.accessToken, body)
    return { id, key, headers: bearer(key) }
  }
  const unrestrictedKey = await createKey({})
  const exchange = await server.post('/auth/agent-token', { api_key: unrestrictedKey.key })
  const { token: linkToken } = await server.sendTo('ada@example.com')
  const pageLink = { token: linkToken, email: 'ada@example.com' as never }
  const pageSession = await server.magicLinks.verify(pageLink, 'page', server.caller())
  const secret = await server.registerApp('reports')
  const headersByScope = new Map<string, Headers>()
  for (const scope of KNOWN_SCOPES) headersByScope.set(scope, (await createKey({ scopes: [scope] })).headers)
  const ownScopeKey = await createKey({ scopes: ['own:everything'] })
  const expiringKey = await createKey({ expires_at: new Date(server.clock.now() + 1000).toISOString() })
  const revokedKey = await createKey({})
  const otherNetworkKey = await createKey({ allowed_networks: ['203.0.113.0/24'] })
  const bob = await server.signIn('bob@example.com')
  const suspendedKey = await server.createKey(bob.tokens.accessToken)
  await server.call('DELETE', `/v1/api-keys/${revokedKey.id}`, { token: tokens.accessToken })
  await server.call('DELETE', `/v1/sessions/${endedSession.session.id}`, { token: tokens.accessToken })
  await server.users.suspend(bob.user.id)
  server.clock.advance(1000)

  const always = (code: string | null) => () => code
  const codeForMissingRight = (needed: string) =>
    needed.endsWith('session') ? 'session_required' : 'insufficient_scope'
  const credentials: Credential[] = [
    { name: 'none', headers: {}, refusal: always('authentication_required') },
    { name: 'access token', headers: bearer(tokens.accessToken), refusal: always(null) },
    {
      name: 'key without scopes',
      headers: unrestrictedKey.headers,
      refusal: needed => (needed.endsWith('session') ? 'session_required' : null),
    },
    ...KNOWN_SCOPES.map(scope => ({
      name: `key with ${scope}`,
      headers: headersByScope.get(scope)!,
      refusal: (needed: string) => (needed === scope ? null : codeForMissingRight(needed)),
    })),
    { name: 'key with a scope of its own', headers: ownScopeKey.headers, refusal: codeForMissingRight },
    { name: 'agent token', headers: bearer(exchange.body.token), refusal: always('session_required') },
    { name: 'refresh token', headers: bearer(tokens.refreshToken), refusal: always('invalid_token') },
    {
      name: 'page cookie',
      headers: {
        Cookie: `__Host-keyway_session=${pageSession.cookie}; keyway_session=${pageSession.cookie}`,
      },
      refusal: always('authentication_required'),
    },
    {
      name: 'access token of an ended session',
      headers: bearer(endedSession.tokens.accessToken),
      refusal: always('invalid_token'),
    },
    { name: 'unknown key', headers: bearer(`svc_${'0'.repeat(32)}`), refusal: always('invalid_api_key') },
    { name: 'revoked key', headers: revokedKey.headers, refusal: always('api_key_revoked') },
    { name: 'expired key', headers: expiringKey.headers, refusal: always('api_key_expired') },
    {
      name: 'key of another network',
      headers: otherNetworkKey.headers,
      refusal: always('network_not_allowed'),
    },
    { name: 'suspended key', headers: bearer(suspendedKey.key), refusal: always('account_suspended') },
    {
      name: 'app secret',
      headers: basicAuthorization('reports', secret),
      refusal: always('authentication_required'),
    },
  ]
  const headersOf = (name: string) => credentials.find(each => each.name === name)!.headers
  return { server, credentials, headersOf, userId: user.id }
}

function bearer(token: string): Headers {
  return { Authorization: `Bearer ${token}` }
}

forEachEngine(engine => {
  test('every route accepts exactly the kinds of credential that the access table lists', async t => {
    const { server, credentials } = await openCredentials(engine, t)
    const refusals = new Set(credentials.flatMap(({ refusal }) => refusal('owner') ?? []))
    for (const [named, needed] of Object.entries(RIGHTS)) {
      const [method, template] = named.split(' ') as [string, string]
      const path = template
        .replaceAll('{app_id}', template.includes('/admin/') ? 'unknown' : 'console')
        .replaceAll(/\{\w+\}/g, UNKNOWN_ID)
      const isRead = method === 'GET' || method === 'DELETE' || method === 'PUT'
      for (const credential of credentials) {
        const { headers } = credential
        const answer = await server.call(method, path, { headers, body: isRead ? undefined : '{}' })
        const title = `${named} with ${credential.name}: ${answer.status} ${answer.text}`
        const isApp = credential.name === 'app secret'
        const refusal =
          needed === 'app' ? (isApp ? null : 'authentication_required') : credential.refusal(needed)
        if (refusal) assert.equal(answer.body.code, refusal, title)
        else assert.ok(answer.status < 500 && !refusals.has(answer.body?.code), title)
        if (answer.status === 401) {
          const challenge = answer.headers.get('www-authenticate')
          assert.equal(challenge, challengeOf(needed, refusal), title)
        }
      }
    }
  })

  test('an API key may narrow the allowed networks of any key of its owner, but never widen them', async t => {
    const { server, headersOf } = await openCredentials(engine, t)
    const token = headersOf('access token').Authorization!.slice('Bearer '.length)
    const targetKey = await server.createKey(token, {})
    const patch = async (headers: Headers, allowed_networks: string[]) => {
      const { status, body } = await server.call('PATCH', `/v1/api-keys/${targetKey.id}`, {
        headers,
        body: { allowed_networks },
      })
      return status === 200 ? body.allowed_networks.join(' ') : body.code
    }
    for (const name of ['key with keys:write', 'key without scopes']) {
      const headers = headersOf(name)
      assert.equal(await patch(headersOf('access token'), []), '')
      assert.equal(await patch(headers, []), '', 'the same is no widening')
      assert.equal(await patch(headers, ['10.0.0.0/8', '2001:db8::/32']), '10.0.0.0/8 2001:db8::/32')
      for (const wider of [[], ['0.0.0.0/0'], ['10.0.0.0/7'], ['10.0.0.0/8', '192.0.2.1'], ['::/0']])
        assert.equal(await patch(headers, wider), 'session_required', wider.join())
      assert.equal(await patch(headers, ['10.1.0.0/16']), '10.1.0.0/16')
      assert.equal(await patch(headers, ['10.0.0.0/8']), 'session_required')
    }
    assert.equal(await patch(headersOf('key with keys:read'), ['10.1.1.0/24']), 'insufficient_scope')
    assert.equal(await patch(headersOf('access token'), ['0.0.0.0/0']), '0.0.0.0/0')
  })
})

test('the access table lists every protected route', async t => {
  const { server } = await openCredentials('sqlite', t)
  const routes = server.app.routes.filter(({ access }) => access !== 'public')
  assert.deepEqual(
    routes.map(({ method, path }) => `${method} ${path}`).toSorted(),
    Object.keys(RIGHTS).toSorted(),
  )
})

function challengeOf(needed: string, refusal: string | null): string {
  if (needed === 'app') return 'Basic realm="Keyway apps", charset="UTF-8"'
  return refusal === 'authentication_required' ? 'Bearer' : 'Bearer error="invalid_token"'
}

describe('the Authorization header', () => {
  test('accepts the scheme in any letter case, and refuses a repeated or divided header', async t => {
    const { server, headersOf } = await openCredentials('sqlite', t)
    const token = headersOf('access token').Authorization!.slice('Bearer '.length)
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      assert.equal(
        (await server.get('/v1/me', { headers: { Authorization: `${scheme} ${token}` } })).status,
        200,
      )
    }
    for (const value of [
      'Bearer',
      'Bearer ',
      'Bearer %',
      'Bearer %ZZ',
      'Bearer x',
      'Basic',
      'Bearer a b',
      `Bearer ${token}, x`,
      `Bearer ${token} x`,
      token,
      'Bearer \xff',
      `Bearer ${'a'.repeat(9000)}`,
    ]) {
      const { status, body } = await server.get('/v1/me', { headers: { Authorization: value } })
      assert.equal(status, 401, value)
      assert.match(body.code, /^(authentication_required|invalid_token)$/)
    }
    const repeatedHeader = `GET /v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nAuthorization: Bearer ${token}\r\n\r\n`
    assert.match(await server.raw(repeatedHeader), /^HTTP\/1\.1 400 /)
  })

  test('an insufficient_scope challenge names the missing scope', async t => {
    const { server, headersOf } = await openCredentials('sqlite', t)
    const answer = await server.get('/v1/me', {
      headers: headersOf('key with agent:connect'),
    })
    assert.equal(answer.status, 403)
    assert.equal(
      answer.headers.get('www-authenticate'),
      'Bearer error="insufficient_scope", scope="account:read"',
    )
  })
})

describe('a credential outside the Authorization header', () => {
  let paths: string[]
  before(() => {
    paths = ['access_token', 'api_key', 'token', 'refresh_token', 'key']
  })

  test('is refused in a URL, even with a valid Authorization header', async t => {
    const { server, headersOf } = await openCredentials('sqlite', t)
    const headers = headersOf('access token')
    const token = headers.Authorization!.slice('Bearer '.length)
    for (const name of paths) {
      assert.equal((await server.get(`/v1/me?${name}=${token}`)).status, 400)
      assert.equal((await server.get(`/v1/me?${name}=${token}`, { headers })).status, 400)
    }
    const { key } = await server.createKey(token)
    assert.equal((await server.post(`/auth/agent-token?api_key=${key}`, { api_key: key })).status, 400)
    assert.equal((await server.post(`/auth/agent-token?api_key=${key}`, {})).status, 400)
  })

  test('is ignored in a cookie, another header, a form or a Basic user name', async t => {
    const { server, headersOf } = await openCredentials('sqlite', t)
    const token = headersOf('access token').Authorization!.slice('Bearer '.length)
    const { key } = await server.createKey(token)
    for (const secret of [token, key]) {
      for (const headers of [
        { Cookie: `access_token=${secret}` },
        { 'X-API-Key': secret },
        basicAuthorization(secret, ''),
        basicAuthorization('', secret),
      ]) {
        assert.equal((await server.get('/v1/me', { headers })).status, 401)
      }
    }
    const form = await server.post('/auth/agent-token', `api_key=${key}`, {
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    })
    assert.equal(form.status, 415)
  })
})

test('a user id in a body does not change whose data a call accesses', async t => {
  const { server, headersOf } = await openCredentials('sqlite', t)
  const carl = await server.signIn('carl@example.com')
  const headers = headersOf('access token')
  for (const name of ['user_id', 'userId', 'owner_id', 'agent_id']) {
    const path = `/v1/api-keys?${name}=${carl.user.id}`
    assert.equal((await server.post(path, { name: 'mine' })).status, 401)
    const refusal = await server.post(path, { [name]: carl.user.id }, { headers })
    assert.deepEqual([refusal.status, refusal.body.errors[0].field], [400, name])
    const creationAnswer = await server.post(path, {}, { headers })
    assert.equal(creationAnswer.status, 201)
    assert.notEqual(creationAnswer.body.user_id, carl.user.id)
    assert.equal(creationAnswer.body.key_prefix, creationAnswer.body.key.slice(0, 12))
  }
  const keyList = await server.get('/v1/api-keys', { token: carl.tokens.accessToken })
  assert.deepEqual(keyList.body.data, [])
})

test('a key of a suspended owner is refused with account_suspended on every route', async t => {
  const { server, headersOf } = await openCredentials('sqlite', t)
  const headers = headersOf('key without scopes')
  const { body } = await server.get('/v1/me', { headers })
  await server.users.suspend(body.user.id)
  const answer = await server.get('/v1/me', { headers })
  assert.equal(answer.status, 403)
  assert.equal(answer.body.code, 'account_suspended')
  assert.equal(
    (await server.get('/v1/me', { headers: headersOf('access token') })).body.code,
    'invalid_token',
  )
})
