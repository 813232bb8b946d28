import assert from 'node:assert/strict'
import { exec, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type { GrantDeps } from '../../src/oauth/grant.ts'
import { toOAuthRefusal } from '../../src/oauth/oauth-error.ts'
import { createSessionAnswer } from '../../src/oauth/session-answer.ts'
import { API_KEY_TOKEN_TYPE } from '../../src/oauth/token-exchange.ts'
import { CALLBACK, newVerifier } from '../support/authorize.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, type CallAnswer, openServer, type ServerOverrides } from '../support/http.ts'
import { skipWithout } from '../support/missing-servers.ts'
import { caller, PUBLIC_URL } from '../support/services.ts'

const HUB = `${PUBLIC_URL}/hub`
const AUDIENCE = 'https://files.example.com'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const UNKNOWN_ID = '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11'
const UNKNOWN_KEY = `svc_${'0'.repeat(32)}`

/** A server with a user, an app with a secret, a public app, and an app whose audience may be requested. */
async function openWorld(engine: EngineName, t: TestContext, overrides: ServerOverrides = {}) {
  const server = await openServer(engine, t, overrides)
  const { tokens, user } = await server.signIn('ada@example.com')
  const makeKey = (body: object = {}) => server.createKey(tokens.accessToken, body)
  const secret = (await server.apps.register({ id: 'shop', name: 'Shop', scopes: ['orders:read'] })).secret!
  await server.apps.register({ id: 'files', name: 'Files', audience: AUDIENCE, tokenAlg: 'ES256' })
  const redirectUris = ['https://spa.example.com/callback', 'com.example.spa:/callback']
  await server.apps.register({ id: 'spa', name: 'Page', isPublic: true, redirectUris })
  const requestToken = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
    server.form('/oauth/token', fields, headers)
  const tokenForKey = ({ id, key }: { id: string; key: string }, fields: Record<string, string> = {}) =>
    requestToken({ grant_type: 'client_credentials', client_id: id, client_secret: key, ...fields })
  const exchangeKey = (key: string, fields: Record<string, string> = {}) =>
    requestToken({
      grant_type: EXCHANGE,
      subject_token: key,
      subject_token_type: API_KEY_TOKEN_TYPE,
      ...fields,
    })
  const claimsOf = async (jwt: string) => {
    const options = { currentDate: new Date(server.clock.now()) }
    return (await jwtVerify(jwt, createLocalJWKSet(server.signingKeys.jwks()), options)).payload
  }
  /** A session of an app, as a person's grant opens it. */
  const openSession = async (appId: string, audience: string | null = null) => {
    const grant = { scopes: ['account:read'], audience }
    const preparedSession = server.sessions.prepareForApp(appId, grant, server.clock.now(), caller())
    const session = await server.storage.transaction(tx => server.sessions.open(tx, user, preparedSession))
    return { session, tokens: await server.sessions.appTokens(user, session) }
  }
  return {
    server,
    user,
    tokens,
    makeKey,
    secret,
    requestToken,
    tokenForKey,
    exchangeKey,
    claimsOf,
    openSession,
  }
}

const errorOf = ({ status, body }: CallAnswer) => [status, body.error]

forEachEngine(engine => {
  test('a key gets the agent token of its exchange as an OAuth client, by Basic and by form', async t => {
    const { server, user, makeKey, requestToken, tokenForKey, claimsOf } = await openWorld(engine, t)
    const key = await makeKey({ scopes: ['agent:connect', 'orders:read'] })
    const answerByBasic = await requestToken(
      { grant_type: 'client_credentials' },
      basicAuthorization(key.id, key.key),
    )
    for (const answer of [
      answerByBasic,
      await tokenForKey(key),
      await tokenForKey(key, { client_id: key.id.toUpperCase() }),
    ]) {
      assert.equal(answer.status, 200)
      const { access_token, ...rest } = answer.body
      assert.deepEqual(rest, { token_type: 'Bearer', expires_in: 900, scope: 'agent:connect orders:read' })
      const claims = await claimsOf(access_token)
      assert.deepEqual(
        [claims.type, claims.aud, claims.sub, claims.key_id],
        ['agent_ws', HUB, user.id, key.id],
      )
      assert.equal(answer.headers.get('cache-control'), 'no-store')
    }
    const unrestrictedAnswer = await tokenForKey(await makeKey())
    assert.equal(unrestrictedAnswer.body.scope, undefined)
    assert.ok(await server.agentTokens.verify(unrestrictedAnswer.body.access_token))
  })

  test('scope narrows a token of a key, and resource names the audience of an app', async t => {
    const { makeKey, tokenForKey, exchangeKey, claimsOf } = await openWorld(engine, t)
    const key = await makeKey({ scopes: ['agent:connect', 'orders:read'] })
    const unrestrictedKey = await makeKey()
    const narrowedAnswer = await tokenForKey(key, { scope: 'orders:read', resource: AUDIENCE })
    const claims = await claimsOf(narrowedAnswer.body.access_token)
    assert.deepEqual(
      [claims.aud, claims.scope, narrowedAnswer.body.scope],
      [AUDIENCE, 'orders:read', 'orders:read'],
    )
    assert.equal((await tokenForKey(unrestrictedKey, { scope: 'agent:connect' })).body.scope, 'agent:connect')
    assert.equal(
      (await exchangeKey(unrestrictedKey.key, { audience: AUDIENCE, resource: AUDIENCE })).status,
      200,
    )
    for (const [fields, error] of [
      [{ scope: 'agent:connect agents:send' }, 'invalid_scope'],
      [{ scope: 'orders:read' }, 'invalid_scope'],
      [{ scope: 'agent:connect  orders:read' }, 'invalid_scope'],
      [{ scope: 'a"b' }, 'invalid_scope'],
      [{ resource: 'https://unknown.example.com' }, 'invalid_target'],
      [{ resource: PUBLIC_URL }, 'invalid_target'],
      [{ resource: AUDIENCE, audience: HUB }, 'invalid_target'],
    ] as [Record<string, string>, string][]) {
      assert.deepEqual(errorOf(await tokenForKey(key, fields)), [400, error], JSON.stringify(fields))
      assert.deepEqual(errorOf(await exchangeKey(key.key, fields)), [400, error], JSON.stringify(fields))
    }
    const keyWithoutScope = await makeKey({ scopes: ['agents:read'] })
    assert.deepEqual(errorOf(await tokenForKey(keyWithoutScope)), [400, 'invalid_scope'])
  })

  test('RFC 8693: a key is exchanged without client authentication', async t => {
    const { makeKey, exchangeKey, requestToken, claimsOf } = await openWorld(engine, t)
    const { id, key } = await makeKey()
    const { body } = await exchangeKey(key)
    const { access_token, ...rest } = body
    const tokenType = 'urn:ietf:params:oauth:token-type:jwt'
    assert.deepEqual(rest, { token_type: 'Bearer', expires_in: 900, issued_token_type: tokenType })
    assert.equal((await claimsOf(access_token)).key_id, id)
    for (const [fields, error] of [
      [{ subject_token: UNKNOWN_KEY }, 'invalid_grant'],
      [{ subject_token: access_token }, 'invalid_grant'],
      [{ subject_token: '' }, 'invalid_request'],
      [{ subject_token_type: tokenType }, 'invalid_request'],
      [{ requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' }, 'invalid_request'],
      [{ actor_token: key }, 'invalid_request'],
    ] as [Record<string, string>, string][])
      assert.deepEqual(errorOf(await exchangeKey(key, fields)), [400, error], JSON.stringify(fields))
    assert.deepEqual(errorOf(await requestToken({ grant_type: EXCHANGE })), [400, 'invalid_request'])
  })

  test('an unknown key, a wrong one, and one with the id of another are refused alike', async t => {
    const { server, makeKey, tokenForKey } = await openWorld(engine, t)
    const [firstKey, secondKey] = [await makeKey(), await makeKey()]
    const bob = await server.createKey((await server.signIn('bob@example.com')).tokens.accessToken)
    const refusals = [
      { id: UNKNOWN_ID, key: UNKNOWN_KEY },
      { id: firstKey.id, key: UNKNOWN_KEY },
      { id: firstKey.id, key: secondKey.key },
      { id: firstKey.id, key: bob.key },
      { id: UNKNOWN_ID, key: firstKey.key },
      { id: firstKey.id, key: 'not a key' },
      { id: firstKey.id, key: firstKey.key.slice(0, 12) },
    ]
    const answers = await Promise.all(refusals.map(pair => tokenForKey(pair)))
    for (const answer of answers) {
      assert.deepEqual(errorOf(answer), [401, 'invalid_client'])
      assert.equal(answer.text, answers[0]!.text)
      assert.match(answer.headers.get('www-authenticate')!, /^Basic /)
    }
  })

  test('a revoked key is invalid_client as a client, and invalid_grant as a token', async t => {
    const { server, tokens, makeKey, tokenForKey, exchangeKey, user } = await openWorld(engine, t)
    const revokedKey = await makeKey()
    const expiredKey = await makeKey({ expires_at: new Date(server.clock.now() + 1000).toISOString() })
    const otherNetworkKey = await makeKey({ allowed_networks: ['203.0.113.0/24'] })
    const activeKey = await makeKey()
    await server.call('DELETE', `/v1/api-keys/${revokedKey.id}`, { token: tokens.accessToken })
    server.clock.advance(1000)
    const assertBothRefused = async (key: { id: string; key: string }) => {
      assert.deepEqual(errorOf(await tokenForKey(key)), [401, 'invalid_client'])
      assert.deepEqual(errorOf(await exchangeKey(key.key)), [400, 'invalid_grant'])
    }
    for (const key of [revokedKey, expiredKey, otherNetworkKey]) await assertBothRefused(key)
    await server.users.suspend(user.id)
    await assertBothRefused(activeKey)
    // With a wrong id, a revoked key is answered like an unknown one.
    const unknownKeyAnswer = await tokenForKey({ id: UNKNOWN_ID, key: UNKNOWN_KEY })
    assert.equal((await tokenForKey({ id: UNKNOWN_ID, key: revokedKey.key })).text, unknownKeyAnswer.text)
  })

  test('an app gets a token of its own for a registered audience, which grants nothing here', async t => {
    const { server, secret, requestToken, claimsOf } = await openWorld(engine, t)
    const grant = { grant_type: 'client_credentials' }
    const header = basicAuthorization('shop', secret)
    const { status, body } = await requestToken(
      { ...grant, resource: AUDIENCE, scope: 'orders:read' },
      header,
    )
    assert.equal(status, 200)
    const { iat, exp, jti, ...claims } = await claimsOf(body.access_token)
    assert.deepEqual(claims, {
      type: 'app',
      iss: PUBLIC_URL,
      aud: AUDIENCE,
      sub: 'shop',
      client_id: 'shop',
      scope: 'orders:read',
    })
    assert.deepEqual([exp! - iat!, typeof jti], [900, 'string'])
    const answerByForm = await requestToken({
      ...grant,
      client_id: 'shop',
      client_secret: secret,
      audience: AUDIENCE,
    })
    assert.equal(answerByForm.body.scope, '')
    assert.equal((await server.get('/v1/me', { token: body.access_token })).status, 401)
    for (const [fields, error] of [
      [{}, 'invalid_target'],
      [{ resource: HUB }, 'invalid_target'],
      [{ resource: PUBLIC_URL }, 'invalid_target'],
      [{ resource: 'https://unknown.example.com' }, 'invalid_target'],
      [{ resource: AUDIENCE, scope: 'account:read' }, 'invalid_scope'],
      [{ resource: AUDIENCE, scope: 'orders:write' }, 'invalid_scope'],
    ] as [Record<string, string>, string][])
      assert.deepEqual(errorOf(await requestToken({ ...grant, ...fields }, header)), [400, error])

    const introspect = async () =>
      (await server.form('/oauth/introspect', { token: body.access_token }, header)).body
    const { active, type, sub, aud, scope } = await introspect()
    assert.deepEqual([active, type, sub, aud, scope], [true, 'app', 'shop', AUDIENCE, 'orders:read'])
  })

  test('RFC 6749: what is not a token request is refused with its error', async t => {
    const { server, secret, requestToken } = await openWorld(engine, t)
    const grant = { grant_type: 'client_credentials', resource: AUDIENCE }
    const wrongSecretAnswer = await requestToken(grant, basicAuthorization('shop', 'wrong'))
    for (const answer of [
      await requestToken(grant, basicAuthorization('nobody', 'wrong')),
      await requestToken({ ...grant, client_id: 'shop', client_secret: 'wrong' }),
    ])
      assert.equal(answer.text, wrongSecretAnswer.text)
    for (const [answer, status, error] of [
      [wrongSecretAnswer, 401, 'invalid_client'],
      [await requestToken({}), 400, 'invalid_request'],
      [await requestToken({ grant_type: 'password' }), 400, 'unsupported_grant_type'],
      [await requestToken({ grant_type: '__proto__' }), 400, 'unsupported_grant_type'],
      [await requestToken(grant), 401, 'invalid_client'],
      [await requestToken({ ...grant, client_id: 'shop' }), 401, 'invalid_client'],
      [await requestToken({ ...grant, client_id: 'spa' }), 401, 'invalid_client'],
      [await requestToken({ ...grant, client_id: 'spa', client_secret: 'x' }), 401, 'invalid_client'],
      [await requestToken(grant, { Authorization: `Bearer ${secret}` }), 401, 'invalid_client'],
      [await requestToken(grant, { Authorization: 'Basic %%%' }), 401, 'invalid_client'],
      [
        await requestToken({ ...grant, client_secret: secret }, basicAuthorization('shop', secret)),
        400,
        'invalid_request',
      ],
      [
        await requestToken({ ...grant, client_id: 'files' }, basicAuthorization('shop', secret)),
        400,
        'invalid_request',
      ],
      [
        await requestToken({ ...grant, scope: '\ufffd' }, basicAuthorization('shop', secret)),
        400,
        'invalid_request',
      ],
    ] as [CallAnswer, number, string][])
      assert.deepEqual(errorOf(answer), [status, error], answer.text)
    const postRaw = (body: string, type = 'application/x-www-form-urlencoded') =>
      server.call('POST', '/oauth/token', { body, headers: { 'Content-Type': type } })
    assert.deepEqual(errorOf(await postRaw('grant_type=a&grant_type=a')), [400, 'invalid_request'])
    assert.deepEqual(errorOf(await postRaw('grant_type=a&scope=&scope=')), [400, 'invalid_request'])
    assert.deepEqual(errorOf(await postRaw('resource=a&resource=b')), [400, 'invalid_target'])
    assert.deepEqual(errorOf(await postRaw('grant_type=%ff')), [400, 'invalid_request'])
    assert.deepEqual(errorOf(await postRaw('grant_type=%00')), [400, 'invalid_request'])
    assert.deepEqual(errorOf(await postRaw(`${'a=b&c=d&'.repeat(40)}`)), [400, 'invalid_request'])
    const manyParameters = Array.from({ length: 65 }, (_, at) => `p${at}=1`).join('&')
    assert.deepEqual(errorOf(await postRaw(manyParameters)), [400, 'invalid_request'])
    assert.deepEqual(errorOf(await postRaw('x'.repeat(17_000))), [413, 'invalid_request'])
    assert.deepEqual(errorOf(await postRaw('{"grant_type":"x"}', 'application/json')), [
      415,
      'invalid_request',
    ])
    assert.equal((await server.call('GET', '/oauth/token')).status, 405)
    assert.equal((await server.form('/oauth/token?api_key=x', grant)).body.error, 'invalid_request')
  })

  test('section 2.3.1: id and secret in the header are form-encoded', async t => {
    const { server, secret, requestToken } = await openWorld(engine, t)
    await server.apps.register({ id: 'a.b-c_d', name: 'Dots' })
    const encodedSecret = [...secret].map(char => `%${char.charCodeAt(0).toString(16)}`).join('')
    const answer = await requestToken(
      { grant_type: 'client_credentials', resource: AUDIENCE },
      basicAuthorization('%73hop', encodedSecret),
    )
    assert.equal(answer.status, 200, answer.text)
    const malformedHeaderAnswer = await requestToken(
      { grant_type: 'client_credentials' },
      basicAuthorization('shop', '%zz'),
    )
    assert.deepEqual(errorOf(malformedHeaderAnswer), [401, 'invalid_client'])
  })

  test('failures count in the limits of their network, and good clients are served beyond them', async t => {
    const failureLimits = [{ window: 'minute', limit: 3 }] as const
    const { makeKey, tokenForKey, exchangeKey, requestToken, secret } = await openWorld(engine, t, {
      failureLimits,
    })
    const key = await makeKey()
    assert.deepEqual(errorOf(await tokenForKey({ id: key.id, key: UNKNOWN_KEY })), [401, 'invalid_client'])
    assert.deepEqual(errorOf(await exchangeKey(UNKNOWN_KEY)), [400, 'invalid_grant'])
    const grant = { grant_type: 'client_credentials', resource: AUDIENCE }
    assert.deepEqual(errorOf(await requestToken(grant, basicAuthorization('shop', 'wrong'))), [
      401,
      'invalid_client',
    ])
    for (const answer of [
      await tokenForKey({ id: key.id, key: UNKNOWN_KEY }),
      await exchangeKey(UNKNOWN_KEY),
      await requestToken(grant, basicAuthorization('shop', 'wrong')),
    ]) {
      assert.deepEqual(errorOf(answer), [429, 'temporarily_unavailable'])
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    assert.equal((await tokenForKey(key)).status, 200)
    assert.equal((await requestToken(grant, basicAuthorization('shop', secret))).status, 200)
  })

  test('exchanges of a key count towards its limits, whichever endpoint makes them', async t => {
    const { server, makeKey, tokenForKey, exchangeKey } = await openWorld(engine, t)
    const key = await makeKey({ limits: { requests: [{ limit: 3, per: 'minute' }] } })
    assert.equal((await server.post('/auth/agent-token', { api_key: key.key })).status, 200)
    assert.match((await tokenForKey(key)).headers.get('ratelimit')!, /"minute";r=1;/)
    assert.equal((await exchangeKey(key.key)).status, 200)
    const refusal = await tokenForKey(key)
    assert.deepEqual(errorOf(refusal), [429, 'temporarily_unavailable'])
    assert.ok(refusal.headers.get('retry-after') && refusal.headers.get('ratelimit'))
  })

  test('an app gets as many tokens for itself as a key, and is told how long to wait', async t => {
    const exchangeLimits = [{ window: 'minute', limit: 2 }] as const
    const { server, secret, requestToken } = await openWorld(engine, t, {
      exchangeLimits: [...exchangeLimits],
    })
    const requestAsShop = () =>
      requestToken(
        { grant_type: 'client_credentials', resource: AUDIENCE },
        basicAuthorization('shop', secret),
      )
    assert.deepEqual([(await requestAsShop()).status, (await requestAsShop()).status], [200, 200])
    const refusal = await requestAsShop()
    assert.deepEqual(errorOf(refusal), [429, 'temporarily_unavailable'])
    const waitSeconds = Number(refusal.headers.get('retry-after'))
    assert.ok(waitSeconds > 0 && waitSeconds <= 66, String(waitSeconds))
    server.clock.advance(waitSeconds * 1000)
    assert.equal((await requestAsShop()).status, 200)
  })

  test('RFC 7662: introspection takes forms and JSON, on both addresses', async t => {
    const { server, secret, makeKey, user } = await openWorld(engine, t)
    const key = await makeKey({ app_id: 'shop', limits: { requests: [{ limit: 9, per: 'minute' }] } })
    const header = basicAuthorization('shop', secret)
    const formAnswer = await server.form('/auth/introspect', { token: key.key, token_type_hint: 'x' }, header)
    assert.deepEqual([formAnswer.status, formAnswer.body.active, formAnswer.body.sub], [200, true, user.id])
    const jsonAnswer = await server.post('/auth/introspect', { token: key.key }, { headers: header })
    assert.deepEqual(jsonAnswer.body, formAnswer.body)
    for (const answer of [
      await server.form('/oauth/introspect', { token: key.key }, header),
      await server.form('/oauth/introspect', { token: key.key, client_id: 'shop', client_secret: secret }),
      await server.post('/oauth/introspect', { token: key.key }, { headers: header }),
    ])
      assert.deepEqual(answer.body, formAnswer.body)
    const consumeAnswer = await server.form('/oauth/introspect', { token: key.key, consume: '2' }, header)
    assert.equal(consumeAnswer.body.limits.requests[0].remaining, 7)
    assert.deepEqual((await server.form('/oauth/introspect', { token: 'x' }, header)).body, { active: false })
    const invalidAnswer = await server.form('/oauth/introspect', { token: key.key, consume: '1.5' }, header)
    assert.deepEqual(errorOf(invalidAnswer), [400, 'invalid_request'])
    for (const answer of [
      await server.form('/oauth/introspect', { token: key.key }),
      await server.form('/oauth/introspect', { token: key.key }, basicAuthorization('shop', 'wrong')),
      await server.form('/oauth/introspect', { token: key.key, client_id: 'spa' }),
    ])
      assert.deepEqual(errorOf(answer), [401, 'invalid_client'])
    const problemAnswer = await server.form('/auth/introspect', { token: key.key })
    assert.deepEqual([problemAnswer.status, problemAnswer.body.code], [401, 'authentication_required'])
  })

  test('RFC 7009: revocation ends keys and sessions of apps, and unknown tokens are no error', async t => {
    const { server, secret, makeKey, openSession, tokens } = await openWorld(engine, t)
    const revoke = (fields: Record<string, string>, headers = {}) =>
      server.form('/oauth/revoke', fields, headers)
    const isAccepted = async (token: string) => (await server.get('/v1/me', { token })).status === 200
    for (const token of ['unknown', UNKNOWN_KEY, `svr_${'A'.repeat(72)}`]) {
      const { status, text } = await revoke({ token })
      assert.deepEqual([status, text], [200, ''])
    }
    const key = await makeKey()
    assert.equal((await revoke({ token: key.key, token_type_hint: 'access_token' })).status, 200)
    assert.equal((await server.post('/auth/agent-token', { api_key: key.key })).body.code, 'api_key_revoked')
    const ownKey = await makeKey()
    assert.equal((await revoke({ token: ownKey.key }, basicAuthorization(ownKey.id, ownKey.key))).status, 200)

    const shopSession = await openSession('shop')
    const foreignRevocation = await revoke({ token: shopSession.tokens.refreshToken, client_id: 'spa' })
    assert.deepEqual(errorOf(foreignRevocation), [400, 'invalid_grant'])
    assert.deepEqual(errorOf(await revoke({ token: shopSession.tokens.accessToken, client_id: 'spa' })), [
      400,
      'invalid_grant',
    ])
    assert.ok(await isAccepted(shopSession.tokens.accessToken))
    assert.equal(
      (await revoke({ token: shopSession.tokens.refreshToken }, basicAuthorization('shop', secret))).status,
      200,
    )
    assert.ok(!(await isAccepted(shopSession.tokens.accessToken)))
    const spaSession = await openSession('spa')
    assert.equal((await revoke({ token: spaSession.tokens.accessToken, client_id: 'spa' })).status, 200)
    assert.ok(!(await isAccepted(spaSession.tokens.accessToken)))
    const wrongSecretAnswer = await revoke({ token: 'unknown' }, basicAuthorization('shop', 'wrong'))
    assert.deepEqual(errorOf(wrongSecretAnswer), [401, 'invalid_client'])

    const personTokenAnswer = await revoke({ token: tokens.accessToken })
    assert.deepEqual(errorOf(personTokenAnswer), [400, 'unsupported_token_type'])
    assert.ok(await isAccepted(tokens.accessToken))
    const otherSession = await openSession('shop')
    assert.equal((await server.form('/auth/revoke', { token: otherSession.tokens.refreshToken })).status, 204)
    assert.ok(!(await isAccepted(otherSession.tokens.accessToken)))
    assert.equal((await server.post('/oauth/revoke', { token: tokens.refreshToken })).status, 200)
    assert.ok(!(await isAccepted(tokens.accessToken)))
  })

  test('an app is the client of sign-ins under its id, of those before its registration only if it adopts them', async t => {
    const { server, user } = await openWorld(engine, t)
    const signInUnder = async (appId: string) => {
      const wanted = server.sessions.prepare(appId, 'api', caller())
      const session = await server.storage.transaction(tx => server.sessions.open(tx, user, wanted))
      return server.sessions.credentials('api', user, session).tokens.refreshToken
    }
    for (const adopt of [false, true]) {
      const id = adopt ? 'adopting' : 'plain'
      const olderToken = await signInUnder(id)
      server.clock.advance(1)
      const { secret } = await server.apps.register({ id, name: 'Label', adopt })
      const revokeAsApp = async (token: string) => {
        const { status, body } = await server.form(
          '/oauth/revoke',
          { token },
          basicAuthorization(id, secret!),
        )
        return body?.error ?? status
      }
      assert.equal(await revokeAsApp(olderToken), adopt ? 200 : 'invalid_grant')
      const isEnded = (await server.post('/auth/refresh', { refresh_token: olderToken })).status === 401
      assert.equal(isEnded, adopt)
      assert.equal(await revokeAsApp(await signInUnder(id)), 200)
    }
  })

  test('RFC 6749: a grant whose app or audience was removed meanwhile is invalid_client or invalid_grant', async t => {
    const { server, user, secret, requestToken, openSession } = await openWorld(engine, t)
    const wanted = server.sessions.prepare('console', 'page', caller())
    const pageSession = await server.storage.transaction(tx => server.sessions.open(tx, user, wanted))
    await server.apps.change('shop', { redirectUris: [CALLBACK] })
    const { verifier, challenge } = newVerifier()
    const parameters = {
      client_id: 'shop',
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'openid',
      resource: AUDIENCE,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    }
    const authorizations = await server.authorizations()
    const checkedRequest = await authorizations.resume(parameters, null, '192.0.2.1')
    assert.ok('request' in checkedRequest)
    const request = { ...checkedRequest, firstSentAt: server.clock.now() }
    const uri = await authorizations.issue(request, { user, session: pageSession }, ['openid'], caller())
    const code = new URL(uri!).searchParams.get('code')!
    const shopSession = await openSession('shop')
    server.clock.advance(1)
    await server.apps.remove('files')
    const answer = await requestToken(
      { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: verifier },
      basicAuthorization('shop', secret),
    )
    assert.deepEqual(errorOf(answer), [400, 'invalid_grant'])

    await server.apps.remove('shop')
    const answerOf = createSessionAnswer(server as unknown as GrantDeps)
    const refusal = await answerOf({ user, session: shopSession.session }, null).catch(error => error)
    const { status, body } = toOAuthRefusal(refusal)
    assert.deepEqual([status, body.error], [401, 'invalid_client'])
  })

  test('an app that is removed gets no more tokens, on any node', async t => {
    const { server, secret, requestToken } = await openWorld(engine, t)
    const fields = { grant_type: 'client_credentials', resource: AUDIENCE }
    const { body } = await requestToken(fields, basicAuthorization('shop', secret))
    const readerHeaders = basicAuthorization('files', (await server.apps.newSecret('files')).secret)
    const isActive = async () =>
      (await server.form('/oauth/introspect', { token: body.access_token }, readerHeaders)).body.active
    assert.equal(await isActive(), true)
    const { createApps } = await import('../../src/apps/apps.ts')
    const node = await server.opened.reopen()
    await createApps({ storage: node, clock: server.clock }).remove('shop')
    assert.equal(await isActive(), false)
    assert.deepEqual(errorOf(await requestToken(fields, basicAuthorization('shop', secret))), [
      401,
      'invalid_client',
    ])
    await createApps({ storage: node, clock: server.clock }).remove('files')
    const answerToRemovedApp = await server.form('/oauth/introspect', { token: 'x' }, readerHeaders)
    assert.deepEqual(errorOf(answerToRemovedApp), [401, 'invalid_client'])
  })
})

test('discovery names what the token endpoint does, in both documents', async t => {
  const { server, requestToken } = await openWorld('sqlite', t)
  const { body, headers } = await server.get('/.well-known/oauth-authorization-server')
  assert.deepEqual((await server.get('/.well-known/openid-configuration')).body, body)
  assert.equal(headers.get('cache-control'), 'public, max-age=300')
  assert.equal(body.issuer, PUBLIC_URL)
  for (const type of body.grant_types_supported)
    assert.notEqual((await requestToken({ grant_type: type })).body.error, 'unsupported_grant_type', type)
  const pages = ['/oauth/authorize', '/oauth/logout']
  const paths = [...pages, ...server.app.routes.map(({ path }) => path)].map(path => PUBLIC_URL + path)
  for (const [name, value] of Object.entries(body))
    if (/_endpoint$|_uri$/.test(name)) assert.ok(paths.includes(String(value)), name)
})

const GUIDE = join(import.meta.dirname, '../../../../docs/oauth.md')

test('docs/oauth.md names every grant and endpoint of the discovery document', async t => {
  const server = await openServer('sqlite', t)
  const { body } = await server.get('/.well-known/oauth-authorization-server')
  const text = await readFile(GUIDE, 'utf8')
  const endpoints = Object.entries(body).filter(([name]) => /_endpoint$|jwks_uri/.test(name))
  const paths = endpoints.map(([, address]) => new URL(String(address)).pathname)
  for (const name of [...body.grant_types_supported, ...paths]) assert.ok(text.includes(`${name}\``), name)
})

const curlMissing = skipWithout(spawnSync('curl', ['--version']).status === 0, 'curl is not installed here')

test('the commands of docs/oauth.md work as printed', { skip: curlMissing }, async t => {
  const { server, secret, makeKey } = await openWorld('sqlite', t)
  const text = await readFile(GUIDE, 'utf8')
  const { id, key } = await makeKey()
  const env = { ...process.env, KEYWAY: server.url, KEY_ID: id, API_KEY: key, SECRET: secret }
  const commands = [...text.matchAll(/```sh\n(curl [^`]+)```/g)].map(([, command]) => command!)
  assert.equal(commands.length, 3)
  for (const command of commands) {
    const { stdout } = await promisify(exec)(command.replace('curl', 'curl -sS'), { env })
    assert.equal(JSON.parse(stdout).token_type, 'Bearer', command)
  }
})

test('pages of public clients may call the token endpoints, and any page may read discovery and keys', async t => {
  const { server, requestToken } = await openWorld('sqlite', t)
  const allowedOrigin = async (method: string, path: string, Origin: string) => {
    const answer = await server.call(method, path, { headers: { Origin } })
    assert.equal(answer.headers.get('access-control-allow-credentials'), null)
    return answer.headers.get('access-control-allow-origin')
  }
  const spaOrigin = 'https://spa.example.com'
  for (const path of ['/oauth/token', '/oauth/revoke']) {
    for (const method of ['POST', 'OPTIONS']) {
      assert.equal(await allowedOrigin(method, path, spaOrigin), spaOrigin)
      for (const other of ['https://evil.example', 'https://files.example.com', 'null'])
        assert.equal(await allowedOrigin(method, path, other), null)
    }
  }
  const preflightAnswer = await server.call('OPTIONS', '/oauth/token', { headers: { Origin: spaOrigin } })
  assert.match(preflightAnswer.headers.get('access-control-allow-methods')!, /POST/)
  assert.match(preflightAnswer.headers.get('vary')!, /Origin/)
  for (const path of [
    '/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server',
    '/.well-known/jwks.json',
  ])
    assert.equal(await allowedOrigin('GET', path, 'https://anyone.example'), '*')
  for (const path of ['/oauth/introspect', '/auth/agent-token', '/v1/me'])
    assert.equal(await allowedOrigin('POST', path, spaOrigin), null)
  const refusal = await requestToken({ grant_type: 'x' }, { Origin: spaOrigin })
  assert.equal(
    refusal.headers.get('access-control-allow-origin'),
    spaOrigin,
    'a page may read why it was refused',
  )
})
