import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { AppGrant } from '../../src/sessions/session.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { caller, openServices, PUBLIC_URL, refusedWith, type Services } from '../support/services.ts'

const AUDIENCE = 'https://shop.example.com'
const API_GRANT: AppGrant = { scopes: ['openid', 'account:read'], audience: null }

async function openApp(services: Services, grant: AppGrant, appId = 'shop') {
  const { user } = await services.signIn('ada@example.com')
  const preparedSession = services.sessions.prepareForApp(appId, grant, services.clock.now() - 5000, caller())
  const session = await services.storage.transaction(tx => services.sessions.open(tx, user, preparedSession))
  return { user, session, tokens: await services.sessions.appTokens(user, session) }
}

forEachEngine(engine => {
  test('access tokens of an app carry client, audience and scope, and are signed with its algorithm', async t => {
    const services = await openServices(engine, t)
    await services.apps.register({ id: 'shop', name: 'Shop', tokenAlg: 'ES256' })
    await services.apps.register({ id: 'files', name: 'Files', audience: AUDIENCE, tokenAlg: 'RS256' })
    const { user, session, tokens } = await openApp(services, { ...API_GRANT, scopes: [] })
    assert.deepEqual(decodeProtectedHeader(tokens.accessToken).alg, 'ES256')
    const { iat, exp, jti, ...claims } = decodeJwt(tokens.accessToken)
    assert.deepEqual(claims, {
      type: 'access',
      iss: PUBLIC_URL,
      aud: PUBLIC_URL,
      sub: user.id,
      client_id: 'shop',
      scope: '',
      sid: session.id,
      role: 'user',
    })
    assert.deepEqual([exp! - iat!, typeof jti], [900, 'string'])
    const filesApp = await openApp(services, { scopes: ['orders:read'], audience: AUDIENCE })
    const header = decodeProtectedHeader(filesApp.tokens.accessToken)
    assert.deepEqual([header.alg, header.typ], ['RS256', 'at+jwt'])
    assert.equal(decodeJwt(filesApp.tokens.accessToken).aud, AUDIENCE)
    const storedSession = await services.store.sessions.find(session.id)
    assert.deepEqual(
      [storedSession?.grant, storedSession?.authTime],
      [{ ...API_GRANT, scopes: [] }, services.clock.now() - 5000],
    )
    const listedSessions = await services.sessions.list(user.id, { limit: 10, after: null })
    assert.ok(listedSessions.rows.some(({ id }) => id === session.id))
  })

  test('an app acts on /v1 within its scopes only, and not with a token for another audience', async t => {
    const server = await openServer(engine, t)
    const services = server
    await services.apps.register({ id: 'shop', name: 'Shop', audience: AUDIENCE })
    const { user, session, tokens } = await openApp(services, API_GRANT)
    const token = tokens.accessToken
    const signInToken = (await services.signIn('ada@example.com')).tokens.accessToken
    const { body: listed } = await server.get('/v1/sessions', { token: signInToken })
    const sessionOfApp = listed.data.find(({ id }: { id: string }) => id === session.id)
    assert.deepEqual([sessionOfApp.app_id, sessionOfApp.current], ['shop', false])
    assert.equal((await server.get('/v1/me', { token })).body.user.id, user.id)
    const refusalWithoutScope = await server.get('/v1/api-keys', { token })
    assert.deepEqual([refusalWithoutScope.status, refusalWithoutScope.body.code], [403, 'insufficient_scope'])
    assert.match(
      refusalWithoutScope.headers.get('www-authenticate')!,
      /insufficient_scope.*scope="keys:read"/,
    )
    assert.equal((await server.get('/v1/sessions', { token })).body.code, 'insufficient_scope')
    assert.equal((await server.post('/v1/api-keys', {}, { token })).body.code, 'session_required')
    const grantRefusal = await server.call('PUT', '/v1/me/charge-authorizations/shop', { token, body: {} })
    assert.equal(grantRefusal.body.code, 'insufficient_scope')
    for (const scopes of [[], ['account:read']]) {
      const sessionForOtherAudience = await openApp(services, { scopes, audience: AUDIENCE })
      const refusal = await server.get('/v1/me', { token: sessionForOtherAudience.tokens.accessToken })
      assert.deepEqual([refusal.status, refusal.body.code], [401, 'invalid_token'])
    }
    const sessionWithNoScopes = await openApp(services, { scopes: [], audience: null })
    const answer = await server.get('/v1/me', { token: sessionWithNoScopes.tokens.accessToken })
    assert.equal(answer.body.code, 'insufficient_scope', 'no scopes do not mean all rights')
  })

  test('a scope counts only while the operator gives it, and only as far as the person granted it', async t => {
    const services = await openServices(engine, t)
    await services.apps.register({ id: 'shop', name: 'Shop', scopes: ['keys:read'] })
    const { tokens } = await openApp(services, { scopes: ['keys:read', 'keys:write'], audience: null })
    const currentScopes = async () => (await services.sessions.authenticate(tokens.accessToken)).scopes
    assert.deepEqual(await currentScopes(), ['keys:read'])
    await services.apps.change('shop', { scopes: ['account:write'] })
    assert.deepEqual(await currentScopes(), [])
  })

  test('the tokens of an app end with its session, its person and the app itself', async t => {
    const services = await openServices(engine, t)
    await services.apps.register({ id: 'shop', name: 'Shop' })
    const refusalOf = (token: string) => refusedWith(services.sessions.authenticate(token))
    const endedSession = await openApp(services, API_GRANT)
    assert.equal(await refusalOf(endedSession.tokens.accessToken), 'none')
    await services.sessions.end(endedSession.user.id, endedSession.session.id, caller())
    assert.equal(await refusalOf(endedSession.tokens.accessToken), 'invalid_token')
    const sessionOfRemovedApp = await openApp(services, API_GRANT)
    services.clock.advance(1)
    await services.apps.remove('shop')
    services.clock.advance(1)
    await services.apps.register({ id: 'shop', name: 'Shop' })
    assert.equal(await refusalOf(sessionOfRemovedApp.tokens.accessToken), 'invalid_token')
    assert.equal(
      await refusedWith(services.sessions.appTokens(sessionOfRemovedApp.user, sessionOfRemovedApp.session)),
      'invalid_refresh_token',
    )
    await services.apps.register({ id: 'files', name: 'Files', audience: AUDIENCE })
    const sessionForFiles = await openApp(services, { scopes: [], audience: AUDIENCE })
    await services.apps.remove('files')
    assert.equal(
      await refusedWith(services.sessions.appTokens(sessionForFiles.user, sessionForFiles.session)),
      'invalid_refresh_token',
    )
    const sessionOfSuspendedPerson = await openApp(services, API_GRANT)
    await services.users.suspend(sessionOfSuspendedPerson.user.id)
    assert.equal(await refusalOf(sessionOfSuspendedPerson.tokens.accessToken), 'invalid_token')
  })

  test('refresh tokens of an app rotate like all others, and only for that app', async t => {
    const services = await openServices(engine, t)
    for (const id of ['shop', 'thief']) await services.apps.register({ id, name: id })
    const { sessions } = services
    const { tokens, session } = await openApp(services, API_GRANT)
    const refresh = (token: string, app = 'shop', retryKey: string | null = null) =>
      sessions.refreshForApp(token, app, retryKey, caller())
    assert.equal(await refusedWith(refresh(tokens.refreshToken, 'thief')), 'invalid_refresh_token')
    assert.equal(
      await refusedWith(sessions.refresh(tokens.refreshToken, null, caller())),
      'invalid_refresh_token',
    )
    assert.equal((await services.store.sessions.find(session.id))?.counter, 0)

    const firstRefresh = await refresh(tokens.refreshToken, 'shop', 'a-retry-key-0123456789')
    const newTokens = await sessions.appTokens(firstRefresh.user, firstRefresh.session)
    assert.notEqual(newTokens.refreshToken, tokens.refreshToken)
    const repeatedRefresh = await refresh(tokens.refreshToken, 'shop', 'a-retry-key-0123456789')
    assert.equal(
      (await sessions.appTokens(repeatedRefresh.user, repeatedRefresh.session)).refreshToken,
      newTokens.refreshToken,
    )
    assert.equal(await refusedWith(refresh(tokens.refreshToken, 'thief')), 'invalid_refresh_token')
    assert.equal((await services.store.sessions.find(session.id))?.endedAt, null)
    assert.equal(await refusedWith(refresh(tokens.refreshToken)), 'refresh_token_reused')
    assert.equal(await refusedWith(refresh(newTokens.refreshToken)), 'invalid_refresh_token')
    assert.equal(await refusedWith(sessions.authenticate(newTokens.accessToken)), 'invalid_token')
  })

  test('the refresh token of a sign-in is not accepted from an app', async t => {
    const services = await openServices(engine, t)
    const { tokens } = await services.signIn('ada@example.com')
    const call = services.sessions.refreshForApp(tokens.refreshToken, 'console', null, caller())
    assert.equal(await refusedWith(call), 'invalid_refresh_token')
  })

  test('introspection shows client, audience and scope of an app’s token', async t => {
    const server = await openServer(engine, t)
    const services = server
    const { secret } = await services.apps.register({ id: 'shop', name: 'Shop', audience: AUDIENCE })
    const headers = { Authorization: `Basic ${Buffer.from(`shop:${secret}`).toString('base64')}` }
    for (const audience of [null, AUDIENCE]) {
      const { tokens, session } = await openApp(services, { scopes: ['openid', 'admin:write'], audience })
      const { body } = await server.post('/auth/introspect', { token: tokens.accessToken }, { headers })
      assert.deepEqual(
        [body.active, body.aud, body.client_id, body.scope, body.sid],
        [true, audience ?? PUBLIC_URL, 'shop', 'openid', session.id],
      )
    }
  })
})
