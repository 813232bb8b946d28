import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import * as client from 'openid-client'
import { MINUTE, SECOND } from '../../src/clock.ts'
import { altered } from '../support/altered.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { startWeb } from '../support/web.ts'

const AUDIENCE = 'https://files.example.com'
const LOCAL_NETWORKS = '127.0.0.0/8,::1/128'
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Serves a client's key set on loopback; `reads` returns how often it was fetched. */
async function serveKeys(t: TestContext) {
  const keys: object[] = []
  let reads = 0
  const server = createServer((_request, response) => {
    reads++
    response.end(JSON.stringify({ keys }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  return {
    url: `http://127.0.0.1:${address.port}/jwks.json`,
    reads: () => reads,
    put: (jwk: object) => keys.push(jwk),
    async add(alg: string, kid: string): Promise<CryptoKey> {
      const { privateKey, publicKey } = await generateKeyPair(alg)
      keys.push({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })
      return privateKey
    },
  }
}

for (const alg of ['EdDSA', 'ES256', 'RS256'])
  test(`openid-client authenticates with a key of its own for ${alg}, without a secret`, async t => {
    const web = await startWeb(t, { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: LOCAL_NETWORKS })
    const keys = await serveKeys(t)
    const { apps } = web.server.services
    await apps.register({ id: 'files', name: 'Files', audience: AUDIENCE })
    const { secret } = await apps.register({ id: 'shop', name: 'Shop', jwksUri: keys.url })
    assert.equal(secret, null)
    const clientAuthentication = client.PrivateKeyJwt({ key: await keys.add(alg, 'one'), kid: 'one' })
    const config = await client.discovery(new URL(web.url), 'shop', undefined, clientAuthentication, {
      execute: [client.allowInsecureRequests],
    })
    const firstTokens = await client.clientCredentialsGrant(config, { resource: AUDIENCE })
    assert.ok(firstTokens.access_token)
    // The second grant verifies with the cached key set.
    await client.clientCredentialsGrant(config, { resource: AUDIENCE })
    assert.equal(keys.reads(), 1)
  })

forEachEngine(engine => {
  test('an assertion authenticates its own client, for this service, for minutes, and once', async t => {
    const server = await openServer(engine, t, { webhookPrivateNetworks: LOCAL_NETWORKS.split(',') })
    const keys = await serveKeys(t)
    await server.apps.register({ id: 'files', name: 'Files', audience: AUDIENCE })
    await server.apps.register({ id: 'shop', name: 'Shop', jwksUri: keys.url })
    await server.apps.register({ id: 'other', name: 'Other' })
    const key = await keys.add('ES256', 'one')
    const nowSeconds = () => Math.floor(server.clock.now() / SECOND)
    let count = 0
    const claims = () => ({
      iss: 'shop',
      sub: 'shop',
      aud: server.publicUrl as string | string[],
      iat: nowSeconds(),
      exp: (nowSeconds() + 60) as number | undefined,
      jti: `jti ${count++}` as string | undefined,
    })
    const sign = (changes: object = {}, header: object = {}, by = key) =>
      new SignJWT({ ...claims(), ...changes })
        .setProtectedHeader({ alg: 'ES256', kid: 'one', ...header })
        .sign(by)
    const requestToken = async (client_assertion: string, fields: Record<string, string> = {}) =>
      (
        await server.form('/oauth/token', {
          grant_type: 'client_credentials',
          resource: AUDIENCE,
          client_assertion_type: ASSERTION_TYPE,
          client_assertion,
          ...fields,
        })
      ).body.error ?? 'none'

    const validAssertion = await sign()
    assert.equal(await requestToken(validAssertion, { client_id: 'shop' }), 'none')
    assert.equal(await requestToken(validAssertion), 'invalid_client', 'once')
    assert.equal(
      await requestToken(await sign({ aud: ['https://x.test', `${server.publicUrl}/oauth/token`] })),
      'none',
    )
    const otherKeyPair = await generateKeyPair('ES256')
    const invalidAssertions = [
      await sign({ iss: 'other' }),
      await sign({ iss: 'other', sub: 'other' }),
      await sign({ iss: 'unknown', sub: 'unknown' }),
      await sign({ aud: 'https://another.example.com' }),
      await sign({ aud: undefined }),
      await sign({ exp: undefined }),
      await sign({ exp: nowSeconds() }),
      await sign({ exp: nowSeconds() + (11 * MINUTE) / SECOND }),
      await sign({ nbf: nowSeconds() + 60 }),
      await sign({ jti: undefined }),
      await sign({ jti: '' }),
      await sign({}, { kid: 'two' }),
      await sign({}, {}, otherKeyPair.privateKey),
      altered(await sign()),
      unsignedToken(claims()),
      'not.a.jwt',
      'x'.repeat(5000),
    ]
    for (const [at, assertion] of invalidAssertions.entries())
      assert.equal(await requestToken(assertion), 'invalid_client', `wrong ${at}`)
    assert.equal(await requestToken(await sign(), { client_id: 'other' }), 'invalid_client')
    assert.equal(
      await requestToken(await sign(), { client_secret: 'sva_x', client_id: 'shop' }),
      'invalid_request',
    )
    assert.equal(await requestToken(await sign(), { client_assertion_type: 'other' }), 'invalid_request')

    const reads = keys.reads()
    const secondKey = await keys.add('ES256', 'two')
    assert.equal(
      await requestToken(await sign({}, { kid: 'two' }, secondKey)),
      'invalid_client',
      'the set was just read',
    )
    server.clock.advance(31 * SECOND)
    assert.equal(await requestToken(await sign({}, { kid: 'two' }, secondKey)), 'none')
    assert.equal(keys.reads(), reads + 1)

    const sharedAssertion = await sign()
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => requestToken(sharedAssertion)))
    assert.equal(outcomes.filter(outcome => outcome === 'none').length, 1)
  })
})

test('an RSA key whose signatures take long to check authenticates nobody', async t => {
  const web = await startWeb(t, { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: LOCAL_NETWORKS })
  const keys = await serveKeys(t)
  const { apps } = web.server.services
  await apps.register({ id: 'files', name: 'Files', audience: AUDIENCE })
  await apps.register({ id: 'shop', name: 'Shop', jwksUri: keys.url })
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const { n, e, p, q } = await exportJWK(privateKey)
  // This huge exponent verifies the same signatures, with as many multiplications as signing takes.
  const slowExponent = numberOf(e!) + (numberOf(p!) - 1n) * (numberOf(q!) - 1n)
  keys.put({ kty: 'RSA', kid: 'slow', n, e: Buffer.from(hexOf(slowExponent), 'hex').toString('base64url') })
  keys.put({ kty: 'RSA', kid: 'usual', n, e })
  const requestToken = async (kid: string) => {
    const client_assertion = await new SignJWT({ iss: 'shop', sub: 'shop', aud: web.url, jti: kid })
      .setExpirationTime('1m')
      .setProtectedHeader({ alg: 'RS256', kid })
      .sign(privateKey)
    const fields = { grant_type: 'client_credentials', resource: AUDIENCE, client_assertion }
    const body = new URLSearchParams({ ...fields, client_assertion_type: ASSERTION_TYPE })
    return (await fetch(`${web.url}/oauth/token`, { method: 'POST', body })).status
  }
  assert.equal(await requestToken('slow'), 401)
  assert.equal(await requestToken('usual'), 200)
})

function numberOf(base64url: string): bigint {
  return BigInt(`0x${Buffer.from(base64url, 'base64url').toString('hex')}`)
}

function hexOf(number: bigint): string {
  const hex = number.toString(16)
  return hex.length % 2 === 0 ? hex : `0${hex}`
}

function unsignedToken(claims: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${encode({ alg: 'none' })}.${encode(claims)}.`
}
