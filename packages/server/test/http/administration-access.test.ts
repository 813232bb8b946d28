import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SCOPES } from '@keyway/sdk/protocol'
import { MINUTE } from '../../src/clock.ts'
import type { AdministrativeAccess } from '../../src/http/administrator.ts'
import { newId } from '../../src/ids.ts'
import { REAUTHENTICATION_WINDOW } from '../../src/sessions/reauthentication.ts'
import { ADMINISTRATIVE_RIGHTS } from '../support/administrative-rights.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { type CallOptions, openServer } from '../support/http.ts'
import { openServices } from '../support/services.ts'

/** The error code for each access; null if it is accepted. */
type Refusals = Record<AdministrativeAccess, string | null>

interface Credential {
  name: string
  token: string | null
  cookie?: string
  refusals: Refusals
}

const refusalsWith = (code: string): Refusals => ({
  'admin:read': code,
  'admin:write': code,
  'admin:session': code,
})

async function open(engine: EngineName, t: TestContext) {
  // The access token outlives REAUTHENTICATION_WINDOW, so that only the sign-in is too old.
  const server = await openServer(engine, t, { lifetimes: { accessTokenSeconds: 7200 } })
  const { users, clock } = server
  const signUp = async (name: string, role: 'user' | 'support' | 'admin') => {
    const signedIn = await server.signIn(`${name}@example.com`)
    if (role !== 'user') await users.setRole(signedIn.user.id, role)
    return { ...signedIn, token: signedIn.tokens.accessToken }
  }
  const keyOf = async (token: string, scopes?: string[]) => (await server.createKey(token, { scopes })).key

  const adminWithOldSession = await signUp('old', 'admin')
  const supportWithOldSession = await signUp('old-support', 'support')
  clock.advance(REAUTHENTICATION_WINDOW)
  const refreshResult = await server.sessions.refresh(
    adminWithOldSession.tokens.refreshToken,
    null,
    server.caller(),
  )

  const admin = await signUp('admin', 'admin')
  const support = await signUp('support', 'support')
  const user = await signUp('user', 'user')
  const formerAdmin = await signUp('former', 'admin')
  const suspendedAdmin = await signUp('suspended', 'admin')
  const keys = {
    user: await keyOf(user.token),
    support: await keyOf(support.token),
    admin: await keyOf(admin.token),
    read: await keyOf(admin.token, ['admin:read']),
    write: await keyOf(admin.token, ['admin:write']),
    other: await keyOf(
      admin.token,
      Object.keys(SCOPES).filter(scope => !scope.startsWith('admin:')),
    ),
    revoked: await server.createKey(admin.token),
    former: await keyOf(formerAdmin.token),
    formerScoped: await keyOf(formerAdmin.token, ['admin:read', 'admin:write']),
    suspended: await keyOf(suspendedAdmin.token),
  }
  await server.call('DELETE', `/v1/api-keys/${keys.revoked.id}`, { token: admin.token })
  const link = await server.sendTo('admin@example.com')
  const pageSignIn = await server.magicLinks.verify(
    { token: link.token, email: 'admin@example.com' as never },
    'page',
    server.caller(),
  )
  await server.apps.register({ id: 'shop', name: 'Shop' })
  const grant = { scopes: Object.keys(SCOPES), audience: null }
  const preparedSession = server.sessions.prepareForApp('shop', grant, clock.now(), server.caller())
  const appSession = await server.storage.transaction(tx =>
    server.sessions.open(tx, admin.user, preparedSession),
  )
  const appTokens = await server.sessions.appTokens(admin.user, appSession)

  // The rights are withdrawn on another node just before the calls, so they must not be cached.
  const node = await server.opened.reopen()
  const otherNode = await openServices(engine, t, { on: { node, of: server.opened } })
  await otherNode.users.setRole(formerAdmin.user.id, 'user')
  await otherNode.users.suspend(suspendedAdmin.user.id)

  const refusalsAfterWindow = {
    'admin:read': null,
    'admin:write': 'reauthentication_required',
    'admin:session': 'reauthentication_required',
  }
  const readOnlyRefusals = { 'admin:read': null, 'admin:write': 'forbidden', 'admin:session': 'forbidden' }
  const unscopedKeyRefusals = { 'admin:read': null, 'admin:write': null, 'admin:session': 'session_required' }
  const refusalsWithoutAdminScopes = {
    ...refusalsWith('insufficient_scope'),
    'admin:session': 'session_required',
  }
  const refusalsWithoutAdminRole = { ...refusalsWith('forbidden'), 'admin:session': 'session_required' }
  const credentials: Credential[] = [
    { name: 'nothing', token: null, refusals: refusalsWith('authentication_required') },
    {
      name: 'the session of an administrator',
      token: admin.token,
      refusals: { 'admin:read': null, 'admin:write': null, 'admin:session': null },
    },
    { name: 'the session of support', token: support.token, refusals: readOnlyRefusals },
    { name: 'the old session of support', token: supportWithOldSession.token, refusals: readOnlyRefusals },
    { name: 'the session of a user', token: user.token, refusals: refusalsWith('forbidden') },
    { name: 'a session of 30 minutes', token: adminWithOldSession.token, refusals: refusalsAfterWindow },
    {
      name: 'the same, refreshed',
      token: refreshResult.tokens.accessToken,
      refusals: refusalsAfterWindow,
    },
    { name: 'a refresh token', token: admin.tokens.refreshToken, refusals: refusalsWith('invalid_token') },
    {
      name: 'a page cookie',
      token: null,
      cookie: pageSignIn.cookie,
      refusals: refusalsWith('authentication_required'),
    },
    {
      name: 'the session of a former administrator',
      token: formerAdmin.token,
      refusals: refusalsWith('forbidden'),
    },
    {
      name: 'the session of a suspended administrator',
      token: suspendedAdmin.token,
      refusals: refusalsWith('invalid_token'),
    },
    { name: "an administrator's key without scopes", token: keys.admin, refusals: unscopedKeyRefusals },
    {
      name: 'a key with admin:read',
      token: keys.read,
      refusals: { ...refusalsWithoutAdminScopes, 'admin:read': null },
    },
    {
      name: 'a key with admin:write',
      token: keys.write,
      refusals: { ...refusalsWithoutAdminScopes, 'admin:write': null },
    },
    { name: 'a key with all other scopes', token: keys.other, refusals: refusalsWithoutAdminScopes },
    { name: "a user's key without scopes", token: keys.user, refusals: refusalsWithoutAdminRole },
    { name: 'a key of support without scopes', token: keys.support, refusals: refusalsWithoutAdminRole },
    { name: 'a key of a former administrator', token: keys.former, refusals: refusalsWithoutAdminRole },
    {
      name: 'a scoped key of a former administrator',
      token: keys.formerScoped,
      refusals: refusalsWithoutAdminRole,
    },
    { name: 'a revoked key', token: keys.revoked.key, refusals: refusalsWith('api_key_revoked') },
    {
      name: 'a key of a suspended administrator',
      token: keys.suspended,
      refusals: refusalsWith('account_suspended'),
    },
    {
      name: "an app's token with every scope",
      token: appTokens.accessToken,
      refusals: refusalsWith('insufficient_scope'),
    },
  ]
  return { ...server, admin, support, user, former: formerAdmin, keys, credentials, signUp }
}

function requestFor(
  name: string,
  ids: Record<string, string>,
): { method: string; path: string; body?: object } {
  const [method, template] = name.split(' ') as [string, string]
  const path = template.replaceAll(/\{(\w+)\}/g, (_, id: string) => ids[id] ?? newId(0))
  return { method, path, ...(method === 'POST' || method === 'PATCH' ? { body: {} } : {}) }
}

forEachEngine(engine => {
  test('every call of the admin API refuses every credential that lacks the right, also if it was withdrawn a moment before on another node', async t => {
    const { call, credentials, app } = await open(engine, t)
    const routes = app.routes.filter(({ path }) => path.startsWith('/v1/admin'))
    assert.deepEqual(
      routes.map(({ method, path }) => `${method} ${path}`).toSorted(),
      Object.keys(ADMINISTRATIVE_RIGHTS).toSorted(),
    )
    const codes = new Set(credentials.flatMap(({ refusals }) => Object.values(refusals)))
    for (const [name, access] of Object.entries(ADMINISTRATIVE_RIGHTS)) {
      for (const { name: who, token, cookie, refusals } of credentials) {
        const { method, path, body } = requestFor(name, { address: 'nobody@example.com', app_id: 'unknown' })
        const headers: Record<string, string> = cookie
          ? { Cookie: `__Host-keyway_session=${cookie}; keyway_session=${cookie}` }
          : {}
        const options: CallOptions = { headers, body, ...(token && { token }) }
        // Even an accepted credential changes nothing here: the empty body or the unknown id is refused after it.
        const answer = await call(method, path, options)
        const title = `${name} with ${who}: ${answer.status} ${answer.text}`
        const refusal = refusals[access]
        if (refusal) assert.equal(answer.body?.code, refusal, title)
        else assert.ok(answer.status < 500 && !codes.has(answer.body?.code ?? ''), title)
      }
    }
  })

  test('a sign-in suffices for changes to the last millisecond of 30 minutes, and a refresh does not renew it', async t => {
    const { call, clock, signUp, sessions, caller } = await open(engine, t)
    const { token, tokens, user } = await signUp('timed', 'admin')
    const signedInAt = clock.now()
    const rename = (by: string) =>
      call('PATCH', `/v1/admin/users/${user.id}`, { token: by, body: { name: 'x' } })
    clock.set(signedInAt + 30 * MINUTE - 1)
    const { tokens: renewed } = await sessions.refresh(tokens.refreshToken, null, caller())
    assert.equal((await rename(token)).status, 200)
    clock.advance(1)
    for (const each of [token, renewed.accessToken])
      assert.equal((await rename(each)).body.code, 'reauthentication_required')
  })

  test('an administrator makes and replaces keys that may administer only within 30 minutes of the sign-in', async t => {
    const { call, clock, signUp, createKey, sessions, caller } = await open(engine, t)
    const admin = await signUp('maker', 'admin')
    const user = await signUp('other', 'user')
    const unscopedKey = await createKey(admin.token)
    const agentOnlyKey = await createKey(admin.token, { scopes: ['agent:connect'] })
    clock.advance(30 * MINUTE)
    const { tokens } = await sessions.refresh(admin.tokens.refreshToken, null, caller())
    const createKeyAs = (token: string, body: object) => call('POST', '/v1/api-keys', { token, body })
    const rotateKey = (id: string) => call('POST', `/v1/api-keys/${id}/rotate`, { token: tokens.accessToken })
    for (const body of [{}, { scopes: [] }, { scopes: ['admin:write'] }])
      assert.equal((await createKeyAs(tokens.accessToken, body)).body.code, 'reauthentication_required')
    assert.equal((await rotateKey(unscopedKey.id)).body.code, 'reauthentication_required')
    assert.equal((await createKeyAs(tokens.accessToken, { scopes: ['agent:connect'] })).status, 201)
    assert.equal((await rotateKey(agentOnlyKey.id)).status, 201)
    assert.equal((await createKeyAs(user.token, {})).status, 201)
  })

  test('a role is given by a signed-in administrator only, and nobody promotes themselves', async t => {
    const { call, admin, support, user, keys, signUp } = await open(engine, t)
    const setRole = (token: string, id: string, role: string) =>
      call('PATCH', `/v1/admin/users/${id}`, { token, body: { role } })
    assert.equal((await setRole(keys.admin, user.user.id, 'admin')).body.code, 'session_required')
    assert.equal((await setRole(keys.write, user.user.id, 'support')).body.code, 'session_required')
    assert.equal((await setRole(support.token, support.user.id, 'admin')).body.code, 'forbidden')
    assert.equal((await setRole(user.token, user.user.id, 'admin')).body.code, 'forbidden')
    for (const token of [user.token, keys.user]) {
      const selfPromotionAnswer = await call('PATCH', '/v1/me', {
        token,
        body: { role: 'admin', status: 'active' },
      })
      assert.equal(selfPromotionAnswer.status, 200)
    }
    const me = await call('GET', '/v1/me', { token: user.token })
    assert.equal(me.body.user.role, 'user')
    const scopedKeyAnswer = await call('POST', '/v1/api-keys', {
      token: user.token,
      body: { scopes: ['admin:write'] },
    })
    assert.deepEqual([scopedKeyAnswer.status, scopedKeyAnswer.body.code], [400, 'invalid_request'])
    assert.match(scopedKeyAnswer.body.detail, /scopes: may contain admin:… for administrators only/)
    const roleChange = await setRole(admin.token, user.user.id, 'admin')
    assert.equal(roleChange.body.role, 'admin')
    assert.equal(roleChange.body.gaining_keys.length, 1)
    const thirdPerson = await signUp('third', 'user')
    assert.equal((await setRole(user.token, thirdPerson.user.id, 'support')).body.role, 'support')
  })
})
