import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import type { NewApiKey } from '../../src/api-keys/api-keys.ts'
import { createApps } from '../../src/apps/apps.ts'
import { SECOND } from '../../src/clock.ts'
import { altered } from '../support/altered.ts'
import { forEachEngine } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { caller, openServices, PUBLIC_URL, refusedWith, type Services } from '../support/services.ts'

const HUB = `${PUBLIC_URL}/hub`

async function withKey(services: Services, change: Partial<NewApiKey> = {}) {
  const { user } = await services.signIn('ada@example.com')
  const newKey = {
    name: null,
    scopes: null,
    expiresAt: null,
    appId: 'service-sdk',
    allowedNetworks: [],
    ...change,
  }
  return { userId: user.id, ...(await services.apiKeys.create(user.id, newKey, caller())) }
}

forEachEngine(engine => {
  test('EXC-01: a key is exchanged for a 900-second token with exactly the promised claims', async t => {
    const services = await openServices(engine, t)
    const { userId, key, apiKey } = await withKey(services, { scopes: ['agent:connect', 'own:thing'] })
    services.clock.advance(123)
    const { token, agentId, expiresIn } = await services.agentTokens.exchange(key, undefined, caller())
    assert.deepEqual([agentId, expiresIn], [userId, 900])
    const { payload, protectedHeader } = await jwtVerify(
      token,
      createLocalJWKSet(services.signingKeys.jwks()),
      {
        currentDate: new Date(services.clock.now()),
      },
    )
    const { kid, ...header } = protectedHeader
    assert.deepEqual(header, { alg: 'EdDSA', typ: 'agent_ws' })
    assert.equal(kid, services.signingKeys.jwks().keys[0]!.kid)
    const { iat, nbf, exp, jti, ...claims } = payload
    assert.deepEqual(claims, {
      type: 'agent_ws',
      iss: PUBLIC_URL,
      aud: HUB,
      sub: userId,
      agent_id: userId,
      app_id: 'service-sdk',
      key_id: apiKey.id,
      scope: 'agent:connect own:thing',
    })
    assert.equal(iat, Math.floor(services.clock.now() / 1000))
    assert.deepEqual([nbf, exp], [iat, iat! + 900])
    assert.match(jti!, /^[0-9a-f-]{36}$/)
  })

  test('tokens that a second thread signs and verifies under load are those of any exchange', async t => {
    const services = await openServices(engine, t)
    t.after(() => services.signer.close())
    const { key } = await withKey(services)
    services.signer.allowThread()
    const { secretKey } = services.signingKeys.current()
    await until('the thread runs', async () => {
      for (let turn = 0; turn < 50; turn++) {
        for (let n = 0; n < 8; n++) services.signer.sign('load', secretKey)
        await nextTurn()
      }
      return services.signer.hasThread
    })
    const calls = Array.from({ length: 20 }, () => services.agentTokens.exchange(key, undefined, caller()))
    const tokens = (await Promise.all(calls)).map(({ token }) => token)
    const keySet = createLocalJWKSet(services.signingKeys.jwks())
    const currentDate = new Date(services.clock.now())
    for (const token of tokens)
      await jwtVerify(token, keySet, { audience: HUB, typ: 'agent_ws', currentDate })
    const forgedTokens = tokens.map(token => altered(token))
    const verifiedClaims = await Promise.all(
      [...tokens, ...forgedTokens].map(token => services.agentTokens.verify(token)),
    )
    assert.deepEqual(
      verifiedClaims.map(claims => claims !== null),
      [...tokens.map(() => true), ...forgedTokens.map(() => false)],
    )
  })

  test('a token of an unrestricted key has no scope claim, and is verified as unrestricted', async t => {
    const services = await openServices(engine, t)
    const { userId, key, apiKey } = await withKey(services)
    const { token } = await services.agentTokens.exchange(key, undefined, caller())
    assert.ok(!('scope' in decodeJwt(token)))
    const claims = await services.agentTokens.verify(token)
    assert.deepEqual([claims?.agentId, claims?.keyId, claims?.scopes], [userId, apiKey.id, null])
    assert.equal(claims!.expiresAt - claims!.issuedAt, 900 * SECOND)
  })

  test('KEY-17: a key with scopes but without agent:connect is not exchanged', async t => {
    const services = await openServices(engine, t)
    const { key } = await withKey(services, { scopes: ['agents:send', 'agents:read', 'account:read'] })
    assert.equal(
      await refusedWith(services.agentTokens.exchange(key, undefined, caller())),
      'insufficient_scope',
    )
  })

  test('a token has the scopes that were asked for, if its key has them all', async t => {
    const services = await openServices(engine, t)
    const audience = 'https://shop.example.com'
    await createApps(services).register({ id: 'shop', name: 'Shop', audience, verifyUrl: null })
    const { userId, key } = await withKey(services, { scopes: ['agent:connect', 'own:a', 'own:b'] })
    const unrestrictedKey = await services.apiKeys.create(
      userId,
      { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] },
      caller(),
    )
    const exchangeFor = (scopes: string[], to: string | undefined, from = key) =>
      services.agentTokens.exchange(from, to, caller(), { scopes })
    for (const from of [key, unrestrictedKey.key]) {
      const { token, scopes } = await exchangeFor(['own:b', 'agent:connect'], undefined, from)
      assert.equal(decodeJwt(token).scope, 'own:b agent:connect')
      assert.deepEqual(scopes, ['own:b', 'agent:connect'])
    }
    assert.equal(decodeJwt((await exchangeFor(['own:b'], audience)).token).scope, 'own:b')
    for (const to of [undefined, audience])
      await assert.rejects(exchangeFor(['agent:connect', 'own:c'], to), {
        code: 'insufficient_scope',
        message: 'This API key lacks the scope own:c. Ask for scopes that it has.',
        extras: { scope: 'own:c' },
      })
    for (const to of [undefined, HUB])
      await assert.rejects(exchangeFor(['own:a'], to), {
        code: 'insufficient_scope',
        message: /^A token for the hub needs the scope agent:connect\./,
        extras: { scope: 'agent:connect' },
      })
  })

  test('a token for a registered app’s audience is issued, and the hub refuses it', async t => {
    const services = await openServices(engine, t)
    const audience = 'https://shop.example.com'
    await createApps(services).register({ id: 'shop', name: 'Shop', audience, verifyUrl: null })
    const { key } = await withKey(services)
    const { token } = await services.agentTokens.exchange(key, audience, caller())
    assert.equal(decodeJwt(token).aud, audience)
    assert.equal(await services.agentTokens.verify(token), null)
    assert.ok(await services.agentTokens.verify(token, audience))
    for (const unknown of [`${audience}/`, '', PUBLIC_URL, 'shop']) {
      assert.equal(
        await refusedWith(services.agentTokens.exchange(key, unknown, caller())),
        'invalid_request',
      )
    }
    assert.equal(decodeJwt((await services.agentTokens.exchange(key, HUB, caller())).token).aud, HUB)
  })

  test('an audience that no app has is refused, with the name of the field', async t => {
    const services = await openServices(engine, t)
    const { key } = await withKey(services)
    for (const audience of ['https://unknown.test', '', PUBLIC_URL])
      await assert.rejects(services.agentTokens.exchange(key, audience, caller()), {
        code: 'invalid_request',
        message: /^audience: must be the audience of a registered app/,
      })
    assert.equal(await refusedWith(services.agentTokens.exchange(key, HUB, caller())), 'none')
  })

  test('a token that the service signed is an agent token only if each of its claims is one that an exchange writes', async t => {
    const services = await openServices(engine, t)
    const now = Math.floor(services.clock.now() / 1000)
    const validClaims = {
      type: 'agent_ws',
      iss: PUBLIC_URL,
      aud: HUB,
      sub: 'owner',
      agent_id: 'owner',
      app_id: 'service-sdk',
      key_id: 'key',
      scope: 'agent:connect own:thing',
      iat: now,
      nbf: now,
      exp: now + 900,
      jti: 'token',
    }
    const verify = (change: Record<string, unknown>) =>
      services.agentTokens.verify(services.jwt.sign('agent_ws', { ...validClaims, ...change }))
    assert.deepEqual(await verify({}), {
      agentId: 'owner',
      appId: 'service-sdk',
      keyId: 'key',
      scopes: ['agent:connect', 'own:thing'],
      tokenId: 'token',
      issuedAt: now * SECOND,
      expiresAt: (now + 900) * SECOND,
    })
    assert.equal((await verify({ scope: undefined }))?.scopes, null)
    for (const claim of ['app_id', 'key_id', 'sub', 'jti', 'iat', 'exp', 'type'])
      for (const value of [undefined, null, 7.5, {}])
        assert.equal(await verify({ [claim]: value }), null, `${claim}: ${JSON.stringify(value)}`)
    for (const change of [{ type: 'access' }, { scope: '' }, { scope: 7 }, { scope: null }])
      assert.equal(await verify(change), null, JSON.stringify(change))
  })

  test('a key is exchanged until its last millisecond, for a token that expires in the same second', async t => {
    const services = await openServices(engine, t)
    const startTime = services.clock.now()
    const expiresAt = startTime + 10_500
    const { key } = await withKey(services, { expiresAt })
    for (let now = startTime; now < expiresAt; now += 100) {
      services.clock.set(now)
      const { token, expiresIn } = await services.agentTokens.exchange(key, undefined, caller())
      const { exp, iat } = decodeJwt(token) as { exp: number; iat: number }
      assert.equal(exp, Math.ceil(expiresAt / SECOND))
      assert.ok(exp > iat)
      assert.equal(expiresIn, Math.max(1, Math.floor((expiresAt - now) / SECOND)))
    }
    services.clock.set(expiresAt)
    assert.equal(
      await refusedWith(services.agentTokens.exchange(key, undefined, caller())),
      'api_key_expired',
    )
  })

  test('a key with n whole seconds left gives a token of n seconds', async t => {
    const services = await openServices(engine, t)
    const { key } = await withKey(services, { expiresAt: services.clock.now() + 60 * SECOND })
    assert.equal((await services.agentTokens.exchange(key, undefined, caller())).expiresIn, 60)
    services.clock.advance(59 * SECOND)
    assert.equal((await services.agentTokens.exchange(key, undefined, caller())).expiresIn, 1)
  })

  test('a token of a key that ends within its last second has the whole lifetime', async t => {
    const services = await openServices(engine, t)
    const secondStart = Math.ceil(services.clock.now() / SECOND) * SECOND
    services.clock.set(secondStart)
    const { key } = await withKey(services, { expiresAt: secondStart + 899 * SECOND + 1 })
    const { token, expiresIn } = await services.agentTokens.exchange(key, undefined, caller())
    assert.equal(expiresIn, 900)
    assert.equal(decodeJwt(token).exp, secondStart / SECOND + 900)
  })

  test('EXC-03: an agent token, an access token and a key are not accepted in place of one another', async t => {
    const services = await openServices(engine, t)
    const { key } = await withKey(services)
    const { tokens } = await services.signIn('ada@example.com')
    const { token } = await services.agentTokens.exchange(key, undefined, caller())
    assert.equal(await services.agentTokens.verify(tokens.accessToken), null)
    assert.equal(await services.agentTokens.verify(key), null)
    assert.equal(await refusedWith(services.sessions.authenticate(token)), 'invalid_token')
    for (const other of [token, tokens.accessToken, tokens.refreshToken]) {
      assert.equal(
        await refusedWith(services.agentTokens.exchange(other, undefined, caller())),
        'invalid_api_key',
      )
    }
  })

  test('EXC-05: a suspended owner’s key is not exchanged', async t => {
    const services = await openServices(engine, t)
    const { userId, key } = await withKey(services)
    await services.users.suspend(userId)
    assert.equal(
      await refusedWith(services.agentTokens.exchange(key, undefined, caller())),
      'account_suspended',
    )
  })
})
