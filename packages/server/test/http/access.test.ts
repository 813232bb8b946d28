import assert from 'node:assert/strict'
import { before, describe, type TestContext, test } from 'node:test'
import { createApps } from '../../src/apps/apps.ts'
import type { Access } from '../../src/http/authenticate.ts'
import type { Route } from '../../src/http/route.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basic, openServer } from '../support/http.ts'

const UNKNOWN_ID = '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11'

type Refusal =
  | 'authentication_required'
  | 'invalid_token'
  | 'session_required'
  | 'insufficient_scope'
  | 'invalid_api_key'
type CredentialName =
  | 'none'
  | 'access token'
  | 'key without scopes'
  | 'key with its scope'
  | 'key with another scope'
  | 'agent token'
  | 'refresh token'
  | 'page cookie'
  | 'app secret'

/** Who may call what, in one table: the refusal that each credential gets, or null where it gets through. */
function expected(access: Exclude<Access, 'public'>, credential: CredentialName): Refusal | null {
  if (access === 'app') return credential === 'app secret' ? null : 'authentication_required'
  switch (credential) {
    case 'access token':
      return null
    case 'key without scopes':
      return access === 'session' ? 'session_required' : null
    case 'key with its scope':
      return access === 'session' ? 'session_required' : access === 'owner' ? 'insufficient_scope' : null
    case 'key with another scope':
      return access === 'session' ? 'session_required' : 'insufficient_scope'
    case 'agent token':
      return 'session_required'
    case 'refresh token':
      return 'invalid_token'
    default:
      return 'authentication_required'
  }
}

async function openCredentials(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const { tokens } = await server.signIn('ada@example.com')
  const make = (scopes: string[]) => server.createKey(tokens.accessToken, { scopes })
  const unrestricted = await make([])
  const exchanged = await server.post('/auth/agent-token', { api_key: unrestricted.key })
  const { token: linkToken } = await server.sendTo('ada@example.com')
  const page = await server.magicLinks.verify(
    { token: linkToken, email: 'ada@example.com' as never },
    'page',
    server.caller(),
  )
  const apps = createApps({ storage: server.storage, clock: server.clock })
  await apps.register({ id: 'reports', name: 'Reports', audience: null, verifyUrl: null })
  const secret = await apps.newSecret('reports')
  const known = ['agent:connect', 'agents:send', 'agents:read', 'account:read'] as const
  const scoped = new Map<string, string>()
  for (const scope of known) scoped.set(scope, (await make([scope])).key)

  function headersFor(credential: CredentialName, access: Access): Record<string, string> {
    const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
    const own = scoped.get(access) ?? scoped.get('account:read')!
    const other = access === 'agents:send' ? 'agents:read' : 'agent:connect'
    switch (credential) {
      case 'none':
        return {}
      case 'access token':
        return bearer(tokens.accessToken)
      case 'key without scopes':
        return bearer(unrestricted.key)
      case 'key with its scope':
        return bearer(own)
      case 'key with another scope':
        return bearer(scoped.get(other)!)
      case 'agent token':
        return bearer(exchanged.body.token)
      case 'refresh token':
        return bearer(tokens.refreshToken)
      case 'page cookie':
        return { Cookie: `__Host-keyway_session=${page.cookie}; keyway_session=${page.cookie}` }
      case 'app secret':
        return basic('reports', secret)
    }
  }
  return { server, headersFor }
}

const CREDENTIALS: CredentialName[] = [
  'none',
  'access token',
  'key without scopes',
  'key with its scope',
  'key with another scope',
  'agent token',
  'refresh token',
  'page cookie',
  'app secret',
]

const REFUSALS = new Set<string>([
  'authentication_required',
  'invalid_token',
  'session_required',
  'insufficient_scope',
  'invalid_api_key',
])

forEachEngine(engine => {
  test('every route answers every kind of credential as the table says', async t => {
    const { server, headersFor } = await openCredentials(engine, t)
    for (const route of server.app.routes.filter(isProtected)) {
      const path = route.path.replaceAll('{app_id}', 'console').replaceAll(/\{\w+\}/g, UNKNOWN_ID)
      for (const credential of CREDENTIALS) {
        // Ending all other sessions would leave the later rows without their credentials' session.
        const endsThings = route.method === 'DELETE' && route.path === '/v1/sessions'
        if (endsThings && credential === 'access token') continue
        const headers = headersFor(credential, route.access)
        const body = route.body ? '{}' : undefined
        const answer = await server.call(route.method, path, { headers, body })
        const title = `${route.method} ${route.path} with ${credential}: ${answer.status} ${answer.text}`
        const refusal = expected(route.access as Exclude<Access, 'public'>, credential)
        if (refusal) assert.equal(answer.body.code, refusal, title)
        else assert.ok(answer.status < 500 && !REFUSALS.has(answer.body?.code), title)
        checkChallenge(route, answer.status, answer.headers.get('www-authenticate'), credential, title)
      }
    }
  })
})

function isProtected(route: Route): boolean {
  return route.access !== 'public'
}

function checkChallenge(
  route: Route,
  status: number,
  challenge: string | null,
  credential: CredentialName,
  title: string,
) {
  if (status !== 401) return
  if (route.access === 'app') assert.match(challenge!, /^Basic realm=/, title)
  else if (credential === 'none' || credential === 'page cookie' || credential === 'app secret') {
    assert.equal(challenge, 'Bearer', title)
  } else assert.equal(challenge, 'Bearer error="invalid_token"', title)
}

describe('the Authorization header', () => {
  test('is taken in any case, once, and in one part', async t => {
    const { server, headersFor } = await openCredentials('sqlite', t)
    const token = headersFor('access token', 'owner').Authorization!.slice('Bearer '.length)
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
    const twice = `GET /v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nAuthorization: Bearer ${token}\r\n\r\n`
    assert.match(await server.raw(twice), /^HTTP\/1\.1 400 /)
  })

  test('names the scope that is missing', async t => {
    const { server, headersFor } = await openCredentials('sqlite', t)
    const answer = await server.get('/v1/me', {
      headers: headersFor('key with another scope', 'account:read'),
    })
    assert.equal(answer.status, 403)
    assert.equal(
      answer.headers.get('www-authenticate'),
      'Bearer error="insufficient_scope", scope="account:read"',
    )
  })
})

describe('a credential anywhere else', () => {
  let paths: string[]
  before(() => {
    paths = ['access_token', 'api_key', 'token', 'refresh_token', 'key']
  })

  test('never works from a URL, even beside a good one', async t => {
    const { server, headersFor } = await openCredentials('sqlite', t)
    const headers = headersFor('access token', 'owner')
    const token = headers.Authorization!.slice('Bearer '.length)
    for (const name of paths) {
      assert.equal((await server.get(`/v1/me?${name}=${token}`)).status, 400)
      assert.equal((await server.get(`/v1/me?${name}=${token}`, { headers })).status, 400)
    }
    const { key } = await server.createKey(token)
    assert.equal((await server.post(`/auth/agent-token?api_key=${key}`, { api_key: key })).status, 400)
    assert.equal((await server.post(`/auth/agent-token?api_key=${key}`, {})).status, 400)
  })

  test('never works from a cookie, another header, a form or a Basic user', async t => {
    const { server, headersFor } = await openCredentials('sqlite', t)
    const token = headersFor('access token', 'owner').Authorization!.slice('Bearer '.length)
    const { key } = await server.createKey(token)
    for (const secret of [token, key]) {
      for (const headers of [
        { Cookie: `access_token=${secret}` },
        { 'X-API-Key': secret },
        basic(secret, ''),
        basic('', secret),
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

test('no body that names another person is an identity', async t => {
  const { server, headersFor } = await openCredentials('sqlite', t)
  const bob = await server.signIn('bob@example.com')
  const names = ['user_id', 'userId', 'owner_id', 'agent_id']
  const headers = headersFor('access token', 'session')
  for (const name of names) {
    const body = {
      [name]: bob.user.id,
      id: UNKNOWN_ID,
      key: 'svc_x',
      key_hash: 'x',
      key_prefix: 'x',
      revoked_at: null,
      created_at: '2001-01-01T00:00:00Z',
    }
    assert.equal((await server.post(`/v1/api-keys?${name}=${bob.user.id}`, body)).status, 401)
    const made = await server.post(`/v1/api-keys?${name}=${bob.user.id}`, body, { headers })
    assert.equal(made.status, 201)
    assert.notEqual(made.body.user_id, bob.user.id)
    assert.notEqual(made.body.id, UNKNOWN_ID)
    assert.match(made.body.key, /^svc_[0-9A-Za-z]{32}$/)
    assert.equal(made.body.key_prefix, made.body.key.slice(0, 12))
  }
  const listed = await server.get('/v1/api-keys', { token: bob.tokens.accessToken })
  assert.deepEqual(listed.body.data, [])
})

test('a suspended owner’s key is told so, wherever it is shown', async t => {
  const { server, headersFor } = await openCredentials('sqlite', t)
  const headers = headersFor('key without scopes', 'owner')
  const { body } = await server.get('/v1/me', { headers })
  await server.users.suspend(body.user.id)
  const answer = await server.get('/v1/me', { headers })
  assert.equal(answer.status, 403)
  assert.equal(answer.body.code, 'account_suspended')
  assert.equal(
    (await server.get('/v1/me', { headers: headersFor('access token', 'owner') })).body.code,
    'invalid_token',
  )
})
