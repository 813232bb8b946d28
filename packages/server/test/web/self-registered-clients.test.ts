import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import * as client from 'openid-client'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { DAY } from '../../src/clock.ts'
import {
  authorizePath,
  CALLBACK,
  consentForm,
  decideConsent,
  locationOf,
  newVerifier,
} from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { type Client, signedInClient } from '../support/page-client.ts'
import { address, refusedWith } from '../support/services.ts'
import { engineSettings, startWeb, type WebServer } from '../support/web.ts'

const LOCAL_NETWORKS_ALLOWED = { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8,::1/128' }
const insecureOptions = { execute: [client.allowInsecureRequests] }

/** Consents as the person who is signed in; returns the tokens that the client gets. */
async function signInWith(config: client.Configuration, browser: Client, web: WebServer) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const authorizationUrl = client.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: 'openid email offline_access',
    prompt: 'consent',
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  const form = await consentForm(browser, authorizationUrl.href.slice(web.url.length))
  assert.match(form.page, /Nobody checked who runs this app/)
  const callbackUrl = locationOf(await decideConsent(browser, form, 'allow'))
  return client.authorizationCodeGrant(config, callbackUrl, { pkceCodeVerifier })
}

function post(web: WebServer, body: unknown) {
  return fetch(`${web.url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

forEachEngine(engine => {
  for (const method of ['client_secret_basic', 'client_secret_post', 'none'])
    test(`openid-client registers itself with ${method}, and signs a person in`, async t => {
      const web = await startWeb(t, {
        KEYWAY_CLIENT_REGISTRATION: 'true',
        ...(await engineSettings(engine, t)),
      })
      const metadata = { redirect_uris: [CALLBACK], client_name: 'Shop', token_endpoint_auth_method: method }
      const config = await client.dynamicClientRegistration(
        new URL(web.url),
        metadata,
        method === 'none' ? client.None() : undefined,
        insecureOptions,
      )
      const browser = await signedInClient(web)
      const tokens = await signInWith(config, browser, web)
      const freshTokens = await client.refreshTokenGrant(config, tokens.refresh_token!)
      assert.equal(freshTokens.claims()!.aud, config.clientMetadata().client_id)
    })

  test('a client whose id is the URL of its metadata signs a person in, and its consent is withdrawn', async t => {
    const documents = await serveDocuments(t)
    const web = await startWeb(t, {
      KEYWAY_CLIENT_METADATA_DOCUMENTS: 'true',
      ...LOCAL_NETWORKS_ALLOWED,
      ...(await engineSettings(engine, t)),
    })
    const id = documents.add('/client.json', { client_name: 'Tool', redirect_uris: [CALLBACK] })
    const config = await client.discovery(new URL(web.url), id, undefined, client.None(), insecureOptions)
    assert.equal(config.serverMetadata().client_id_metadata_document_supported, true)
    const browser = await signedInClient(web)
    const tokens = await signInWith(config, browser, web)
    assert.equal(tokens.claims()!.aud, id)
    const freshTokens = await client.refreshTokenGrant(config, tokens.refresh_token!)
    assert.equal(documents.reads(), 1)
    const page = await (await browser.get('/account/apps')).text()
    assert.match(page, /Tool/)
    const form_token = await browser.formToken('/account')
    const withdrawalResponse = await browser.post(`/account/apps/${encodeURIComponent(id)}/withdraw`, {
      form_token,
    })
    assert.equal(withdrawalResponse.status, 303)
    await assert.rejects(client.refreshTokenGrant(config, freshTokens.refresh_token!), {
      error: 'invalid_grant',
    })
  })
})

test('a client whose id is the URL of its metadata has a page for administrators, who can remove but not change it', async t => {
  const documents = await serveDocuments(t)
  const web = await startWeb(t, { KEYWAY_CLIENT_METADATA_DOCUMENTS: 'true', ...LOCAL_NETWORKS_ALLOWED })
  const id = documents.add('/client.json', { client_name: 'Tool', redirect_uris: [CALLBACK] })
  const config = await client.discovery(new URL(web.url), id, undefined, client.None(), insecureOptions)
  const admin = await signedInClient(web, 'admin@example.com')
  const { users, apps, storage } = web.server.services
  const administrator = (await storage.store.users.findByEmail(address('admin@example.com')))!
  await users.setRole(administrator.id, 'admin', BY_COMMAND_LINE)
  const tokens = await signInWith(config, admin, web)

  const [, path] = /href="(\/admin\/apps\/http[^"]+)"/.exec(
    await (await admin.get('/admin/apps?kind=self')).text(),
  )!
  const answer = await admin.get(path!)
  assert.equal(answer.status, 200)
  const page = await answer.text()
  assert.ok(page.includes('It describes itself') && page.includes(CALLBACK))
  assert.ok(!page.includes(`${path}/change`))
  const send = async (act: string, fields: Record<string, string>) =>
    admin.post(`${path}/${act}`, { form_token: await admin.formToken('/account'), ...fields })
  assert.equal((await send('change', { name: 'Other', redirect_uris: CALLBACK })).status, 403)
  for (const change of [apps.change(id, { name: 'Other' }), apps.newSecret(id)])
    assert.equal(await refusedWith(change), 'forbidden')
  assert.equal((await apps.find(id)).name, 'Tool')
  assert.equal((await send('remove', { confirm: id })).status, 303)
  assert.equal((await admin.get(path!)).status, 404)
  await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token!), { error: 'invalid_grant' })
})

test('registration refuses what no client can be, with the reason', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
  const errorOf = async (metadata: object) => {
    const answer = await post(web, { redirect_uris: [CALLBACK], ...metadata })
    return answer.status === 201 ? 'none' : ((await answer.json()) as { error: string }).error
  }
  for (const redirect_uris of [
    [],
    undefined,
    'x',
    [1],
    ['http://shop.example.com/'],
    [`${CALLBACK}#x`],
    ['x:y'],
    Array.from({ length: 3 }, (_, at) => `${CALLBACK}/${at}${'x'.repeat(700)}`),
  ])
    assert.equal(await errorOf({ redirect_uris }), 'invalid_redirect_uri', JSON.stringify(redirect_uris))
  const invalidMetadata = [
    { token_endpoint_auth_method: 'tls_client_auth' },
    { token_endpoint_auth_method: 'private_key_jwt' },
    { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'http://shop.example.com/jwks' },
    { grant_types: ['client_credentials'] },
    { grant_types: 'authorization_code' },
    { response_types: ['token'] },
    { id_token_signed_response_alg: 'none' },
    { post_logout_redirect_uris: ['javascript:alert(1)'] },
    { backchannel_logout_uri: 'ftp://x' },
  ]
  for (const metadata of invalidMetadata)
    assert.equal(await errorOf(metadata), 'invalid_client_metadata', JSON.stringify(metadata))
  assert.equal(
    await errorOf({ client_name: 'Evil\u202e name\n', unknown: true, scope: 'admin:write' }),
    'none',
  )
})

test('a network registers a few clients an hour, and those that nobody agreed to are removed', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
  const statuses: number[] = []
  for (let count = 0; count < 21; count++)
    statuses.push((await post(web, { redirect_uris: [CALLBACK] })).status)
  assert.deepEqual(statuses.slice(0, 20), Array(20).fill(201))
  assert.equal(statuses[20], 429)
  const { storage, clock, apps } = web.server.services
  const registeredApps = (await apps.list()).filter(app => app.id.startsWith('dyn-'))
  assert.equal(registeredApps.length, 20)
  assert.ok(registeredApps.every(app => !app.trusted && app.requirePkce && app.scopes.length === 0))
  const { registeredClients } = storage.store
  assert.equal(await registeredClients.prune(clock.now() - 7 * DAY, 100), 0)
  const browser = await signedInClient(web)
  const user = (await storage.store.users.findByEmail('ada@example.com' as never))!
  const consent = {
    id: user.id,
    userId: user.id,
    appId: registeredApps[0]!.id,
    scopes: [],
    grantedAt: clock.now(),
  }
  await storage.transaction(tx => tx.consents.grant(consent, 0))
  assert.equal(await registeredClients.prune(clock.now() + 1, 100), 19)
  assert.equal((await apps.list()).filter(app => app.id.startsWith('dyn-')).length, 1)
  assert.ok(browser)
})

test('neither way exists unless the operator allows it', async t => {
  const web = await startWeb(t, LOCAL_NETWORKS_ALLOWED)
  const documents = await serveDocuments(t)
  const id = documents.add('/client.json', { client_name: 'Tool', redirect_uris: [CALLBACK] })
  assert.equal((await post(web, { redirect_uris: [CALLBACK] })).status, 404)
  const browser = await signedInClient(web)
  const query = new URLSearchParams({ client_id: id, redirect_uri: CALLBACK, response_type: 'code' })
  assert.equal((await browser.get(`/oauth/authorize?${query}`)).status, 400)
  assert.equal(documents.reads(), 0)
  const metadata = (await (await fetch(`${web.url}/.well-known/openid-configuration`)).json()) as object
  assert.ok(!('registration_endpoint' in metadata))
})

test('a document counts only if it names its own address, and unusual URLs are not read', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_METADATA_DOCUMENTS: 'true', ...LOCAL_NETWORKS_ALLOWED })
  const documents = await serveDocuments(t)
  const validMetadata = { client_name: 'Tool', redirect_uris: [CALLBACK] }
  const foreignDocumentUrl = documents.add('/other.json', {
    ...validMetadata,
    client_id: 'https://shop.example.com/client.json',
  })
  const urlOfDocumentWithSecret = documents.add('/secret.json', {
    ...validMetadata,
    token_endpoint_auth_method: 'client_secret_basic',
  })
  const invalidDocumentUrl = documents.add('/broken.json', { ...validMetadata, redirect_uris: [] })
  const browser = await signedInClient(web)
  const open = async (client_id: string) => {
    const query = new URLSearchParams({ client_id, redirect_uri: CALLBACK, response_type: 'code' })
    return (await browser.get(`/oauth/authorize?${query}`)).status
  }
  for (const id of [
    foreignDocumentUrl,
    urlOfDocumentWithSecret,
    invalidDocumentUrl,
    documents.url('/missing.json'),
  ])
    assert.equal(await open(id), 400, id)
  assert.equal(documents.reads(), 4)
  assert.equal(await open(foreignDocumentUrl), 400)
  assert.equal(documents.reads(), 4, 'for a minute')
  const unreadUrls = [
    documents.url('/'),
    documents.url('/a/../client.json'),
    `${documents.url('/client.json')}?x=1`,
    `${documents.url('/client.json')}#x`,
    'https://10.0.0.1/client.json',
    'https://localhost.evil.invalid/client.json',
    'ftp://shop.example.com/client.json',
  ]
  for (const id of unreadUrls) assert.equal(await open(id), 400, id)
  assert.equal(documents.reads(), 4)

  const validPath = authorizePath(newVerifier().challenge, {
    client_id: documents.add('/fine.json', validMetadata),
  })
  const { apps } = web.server.services.storage.store
  const failingFind = t.mock.method(apps, 'find', () => Promise.reject(new Error('no database for a moment')))
  assert.equal((await browser.get(validPath)).status, 500)
  failingFind.mock.restore()
  assert.equal((await browser.get(validPath)).status, 200)
})

test('a network that names many documents uses up only its own reads, and strangers not those of known networks', async t => {
  const web = await startWeb(t, {
    KEYWAY_CLIENT_METADATA_DOCUMENTS: 'true',
    KEYWAY_TRUSTED_PROXIES: '127.0.0.1/32',
    ...LOCAL_NETWORKS_ALLOWED,
  })
  const documents = await serveDocuments(t)
  const addDocument = (() => {
    let count = 0
    return () => documents.add(`/${count++}.json`, { client_name: 'Tool', redirect_uris: [CALLBACK] })
  })()
  const open = async (client_id: string, network: string) => {
    const path = authorizePath(newVerifier().challenge, { client_id })
    const headers = { 'X-Forwarded-For': network }
    return (await fetch(web.url + path, { headers, redirect: 'manual' })).status
  }
  for (let count = 0; count < 10; count++) assert.equal(await open(addDocument(), '192.0.2.1'), 303)
  const documentOverLimit = addDocument()
  assert.equal(await open(documentOverLimit, '192.0.2.1'), 400)
  assert.equal(documents.reads(), 10)
  assert.equal(await open(documentOverLimit, '192.0.2.2'), 303, 'the refusal is not remembered')

  for (let count = 11; count < 60; count++)
    assert.equal(await open(addDocument(), `198.51.100.${count >> 2}`), 303)
  const lastDocument = addDocument()
  assert.equal(await open(lastDocument, '192.0.2.3'), 400)
  web.server.services.knownNetworks.noteUse('ada', '192.0.2.3')
  assert.equal(await open(lastDocument, '192.0.2.3'), 303)
})

test('the keys of clients that registered themselves are read within the same limits, those of other clients always', async t => {
  const web = await startWeb(t, {
    KEYWAY_CLIENT_REGISTRATION: 'true',
    KEYWAY_TRUSTED_PROXIES: '127.0.0.1/32',
    ...LOCAL_NETWORKS_ALLOWED,
  })
  const documents = await serveDocuments(t)
  let count = 0
  const addKeySet = () => documents.add(`/${count++}/jwks.json`, { keys: [] })
  const addClient = async () => {
    const metadata = {
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks_uri: addKeySet(),
    }
    const { client_id } = (await (await post(web, metadata)).json()) as { client_id: string }
    return client_id
  }
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const readsAfterAssertion = async (sub: string, network: string) => {
    const seconds = Math.floor(web.server.services.clock.now() / 1000)
    const claims = { iss: sub, sub, aud: web.url, jti: `${count++}`, iat: seconds, exp: seconds + 60 }
    const { status } = await fetch(`${web.url}/oauth/token`, {
      method: 'POST',
      headers: { 'X-Forwarded-For': network },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: `${encode({ alg: 'EdDSA' })}.${encode(claims)}.AAAA`,
      }),
    })
    assert.equal(status, 401)
    return documents.reads()
  }
  for (let n = 1; n <= 10; n++) assert.equal(await readsAfterAssertion(await addClient(), '192.0.2.1'), n)
  const lastClient = await addClient()
  assert.equal(await readsAfterAssertion(lastClient, '192.0.2.1'), 10)
  assert.equal(await readsAfterAssertion(lastClient, '192.0.2.2'), 11, 'the refusal is not remembered')
  await web.server.services.apps.register({ id: 'shop', name: 'Shop', jwksUri: addKeySet() })
  assert.equal(await readsAfterAssertion('shop', '192.0.2.1'), 12)
})

/** Serves client metadata documents on loopback, and counts the requests for them. */
async function serveDocuments(t: TestContext) {
  const documents = new Map<string, object>()
  let readCount = 0
  const server = createServer((request, response) => {
    readCount++
    const document = documents.get(request.url ?? '')
    response.writeHead(document ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(document ?? {}))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  const url = (path: string) => `http://127.0.0.1:${address.port}${path}`
  return {
    url,
    reads: () => readCount,
    add(path: string, document: object): string {
      documents.set(path, { client_id: url(path), token_endpoint_auth_method: 'none', ...document })
      return url(path)
    },
  }
}
