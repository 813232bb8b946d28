import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { SIGNING_ALGS } from '../../src/signing-keys/signing-key.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { caller } from '../support/services.ts'
import { engineSettings, startWeb, type WebServer } from '../support/web.ts'

const INSECURE = { execute: [client.allowInsecureRequests] }
const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const API_KEY_TYPE = 'urn:keyway:token-type:api-key'

async function openService(engine: EngineName, t: TestContext) {
  const web = await startWeb(t, await engineSettings(engine, t))
  const { apps, apiKeys } = web.server.services
  const person = await signInPerson(web)
  const newKey = { name: 'made', scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }
  const { key, apiKey } = await apiKeys.create(person, newKey, caller())
  for (const tokenAlg of SIGNING_ALGS) {
    const id = tokenAlg.toLowerCase()
    await apps.register({ id, name: id, audience: `https://${id}.example.com`, tokenAlg })
  }
  const { secret } = await apps.register({ id: 'shop', name: 'Shop', scopes: ['orders:read'] })
  const discover = (id: string, authentication: client.ClientAuth) =>
    client.discovery(new URL(web.url), id, undefined, authentication, INSECURE)
  const keys = createRemoteJWKSet(new URL(`${web.url}/.well-known/jwks.json`))
  const claimsOf = async (token: string, audience: string) =>
    (await jwtVerify(token, keys, { issuer: web.url, audience })).payload
  return { web, key, keyId: apiKey.id, person, secret: secret!, discover, claimsOf }
}

/** Signs in once by a mailed link, over HTTP. */
async function signInPerson(web: WebServer): Promise<string> {
  const email = 'ada@example.com'
  const post = async (path: string, body: object) => {
    const headers = { 'Content-Type': 'application/json' }
    return (await fetch(web.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  }
  await post('/auth/send-magic-link', { email })
  const [mail] = await web.mails(email)
  const token = new URL(mail!.link!).searchParams.get('token')
  const { user } = (await post('/auth/verify-magic-link', { token, email })) as { user: { id: string } }
  return user.id
}

const expectError = (call: Promise<unknown>, error: string) =>
  assert.rejects(call, (thrown: { error?: string }) => thrown.error === error)

/**
 * Expects the 401 for an unknown client (RFC 6749 section 5.2). The library throws an error with the status, and with
 * the challenge of `WWW-Authenticate` as its cause.
 */
const expectUnknownClient = (call: Promise<unknown>) =>
  assert.rejects(call, (thrown: { status?: number; cause?: { scheme: string }[] }) => {
    assert.deepEqual([thrown.status, thrown.cause?.[0]?.scheme], [401, 'basic'])
    return true
  })

forEachEngine(engine => {
  test('openid-client gets tokens with a key, by Basic and by form, in each algorithm', async t => {
    const { web, key, keyId, person, discover, claimsOf } = await openService(engine, t)
    for (const authentication of [client.ClientSecretBasic(key), client.ClientSecretPost(key)]) {
      const config = await discover(keyId, authentication)
      const hubToken = await client.clientCredentialsGrant(config, { scope: 'agent:connect' })
      assert.deepEqual(
        [hubToken.token_type, hubToken.expires_in, hubToken.scope],
        ['bearer', 900, 'agent:connect'],
      )
      const claims = await claimsOf(hubToken.access_token, `${web.url}/hub`)
      assert.deepEqual([claims.sub, claims.key_id, claims.scope], [person, keyId, 'agent:connect'])
      for (const alg of SIGNING_ALGS) {
        const resource = `https://${alg.toLowerCase()}.example.com`
        const { access_token } = await client.clientCredentialsGrant(config, { resource })
        assert.equal((await claimsOf(access_token, resource)).aud, resource)
      }
      await expectError(
        client.clientCredentialsGrant(config, { resource: 'https://x.example' }),
        'invalid_target',
      )
    }
    const unknownKeyConfig = await discover(keyId, client.ClientSecretBasic(`svc_${'0'.repeat(32)}`))
    await expectUnknownClient(client.clientCredentialsGrant(unknownKeyConfig))
  })

  test('openid-client exchanges a key for an agent token, without authentication', async t => {
    const { web, key, keyId, discover, claimsOf } = await openService(engine, t)
    const config = await discover('anything', client.None())
    const parameters = { subject_token: key, subject_token_type: API_KEY_TYPE }
    const tokenAnswer = await client.genericGrantRequest(config, EXCHANGE_GRANT, parameters)
    assert.equal(tokenAnswer.issued_token_type, 'urn:ietf:params:oauth:token-type:jwt')
    assert.equal((await claimsOf(tokenAnswer.access_token, `${web.url}/hub`)).key_id, keyId)
  })

  test('openid-client gets, introspects and revokes tokens as an app', async t => {
    const { key, keyId, person, secret, discover, claimsOf } = await openService(engine, t)
    const resource = 'https://es256.example.com'
    const config = await discover('shop', client.ClientSecretBasic(secret))
    const appToken = await client.clientCredentialsGrant(config, { resource, scope: 'orders:read' })
    const claims = await claimsOf(appToken.access_token, resource)
    assert.deepEqual([claims.type, claims.sub, claims.scope], ['app', 'shop', 'orders:read'])
    assert.equal((await client.tokenIntrospection(config, appToken.access_token)).active, true)
    const introspectedKey = await client.tokenIntrospection(config, key)
    assert.deepEqual(
      [introspectedKey.active, introspectedKey.sub, introspectedKey.key_id],
      [true, person, keyId],
    )
    await client.tokenRevocation(config, key)
    assert.equal((await client.tokenIntrospection(config, key)).active, false)
    const revokedKeyConfig = await discover(keyId, client.ClientSecretBasic(key))
    await expectUnknownClient(client.clientCredentialsGrant(revokedKeyConfig))
  })

  test('oauth4webapi gets a token with a key by the discovery of RFC 8414', async t => {
    const { web, key, keyId, claimsOf } = await openService(engine, t)
    const issuer = new URL(web.url)
    const options = { [oauth.allowInsecureRequests]: true }
    const discoveryAnswer = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...options })
    const server = await oauth.processDiscoveryResponse(issuer, discoveryAnswer)
    const oauthClient = { client_id: keyId }
    const answer = await oauth.clientCredentialsGrantRequest(
      server,
      oauthClient,
      oauth.ClientSecretBasic(key),
      {},
      options,
    )
    const tokenAnswer = await oauth.processClientCredentialsResponse(server, oauthClient, answer)
    assert.equal((await claimsOf(tokenAnswer.access_token, `${web.url}/hub`)).key_id, keyId)
  })
})
