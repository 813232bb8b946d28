import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { CALLBACK, consentForm, decideConsent, locationOf, registerShop } from '../support/authorize.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { ADA, type Client, createClient, signedInClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'
import { engineSettings, startWeb, type WebServer } from '../support/web.ts'

const SCOPE = 'openid email profile offline_access account:read'
const LOCAL_NETWORKS = '127.0.0.0/8,::1/128'
const AFTER_LOGOUT_URL = 'https://shop.example.com/bye'

async function open(engine: EngineName, t: TestContext, overrides: Parameters<typeof registerShop>[1] = {}) {
  const settings = { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: LOCAL_NETWORKS, ...(await engineSettings(engine, t)) }
  const web = await startWeb(t, settings)
  const secret = await registerShop(web, { logoutUris: [AFTER_LOGOUT_URL], ...overrides })
  const config = await client.discovery(
    new URL(web.url),
    'shop',
    secret || undefined,
    secret ? undefined : client.None(),
    { execute: [client.allowInsecureRequests] },
  )
  return { web, secret, config, browser: await signedInClient(web) }
}

/** Consents for a person who is signed in; returns the URL to which the browser is then redirected. */
async function consentAt(browser: Client, web: WebServer, authorizationUrl: URL): Promise<URL> {
  const path = authorizationUrl.href.slice(web.url.length)
  const form = await consentForm(browser, path)
  return locationOf(await decideConsent(browser, form, 'allow'))
}

async function signInWith(config: client.Configuration, browser: Client, web: WebServer, pushed = false) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const [expectedState, expectedNonce] = [client.randomState(), client.randomNonce()]
  const parameters = {
    redirect_uri: CALLBACK,
    scope: SCOPE,
    prompt: 'consent',
    state: expectedState,
    nonce: expectedNonce,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  }
  const authorizationUrl = pushed
    ? await client.buildAuthorizationUrlWithPAR(config, parameters)
    : client.buildAuthorizationUrl(config, parameters)
  const callbackUrl = await consentAt(browser, web, authorizationUrl)
  return client.authorizationCodeGrant(config, callbackUrl, {
    pkceCodeVerifier,
    expectedState,
    expectedNonce,
  })
}

forEachEngine(engine => {
  test('openid-client signs a person in with code and PKCE, reads userinfo, refreshes and logs out', async t => {
    const { web, config, browser } = await open(engine, t)
    const tokens = await signInWith(config, browser, web)
    const { sub, email, email_verified, aud, amr, auth_time, sid } = tokens.claims()!
    assert.deepEqual([email, email_verified, aud, amr], [ADA, true, 'shop', ['otp']])
    assert.equal(typeof auth_time, 'number')
    const person = await client.fetchUserInfo(config, tokens.access_token, sub)
    assert.deepEqual(person, { sub, email: ADA, email_verified: true, locale: 'en' })
    assert.equal(tokens.scope, SCOPE)

    const jwks = createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri!))
    const verifiedToken = await jwtVerify(tokens.access_token, jwks, { issuer: web.url, audience: web.url })
    assert.equal(verifiedToken.payload.client_id, 'shop')
    const verifiedIdToken = await jwtVerify(tokens.id_token!, jwks, { issuer: web.url, audience: 'shop' })
    assert.equal(verifiedIdToken.protectedHeader.alg, 'RS256')

    const freshTokens = await client.refreshTokenGrant(config, tokens.refresh_token!)
    assert.notEqual(freshTokens.refresh_token, tokens.refresh_token)
    assert.equal(freshTokens.claims()!.sid, sid)
    const narrowedTokens = await client.refreshTokenGrant(config, freshTokens.refresh_token!, {
      scope: 'openid',
    })
    assert.equal(narrowedTokens.scope, 'openid')
    assert.deepEqual(await client.fetchUserInfo(config, narrowedTokens.access_token, sub), { sub })
    const me = await fetch(`${web.url}/v1/me`, {
      headers: { authorization: `Bearer ${narrowedTokens.access_token}` },
    })
    assert.equal(me.status, 403, 'a narrowed token does not act with the scopes of its session')

    const endSessionUrl = client.buildEndSessionUrl(config, {
      post_logout_redirect_uri: AFTER_LOGOUT_URL,
      id_token_hint: narrowedTokens.id_token!,
      state: 'after',
    })
    const logoutResponse = await browser.get(endSessionUrl.href.slice(web.url.length))
    assert.equal(logoutResponse.headers.get('location'), `${AFTER_LOGOUT_URL}?state=after`)
    assert.equal((await browser.get('/keys')).status, 303, 'the person is signed out here too')
    await assert.rejects(client.refreshTokenGrant(config, narrowedTokens.refresh_token!), {
      error: 'invalid_grant',
    })
    const pendingUserinfo = fetch(`${web.url}/oauth/userinfo`, {
      headers: { authorization: `Bearer ${freshTokens.access_token}` },
    })
    assert.equal((await pendingUserinfo).status, 401)
    assert.match((await pendingUserinfo).headers.get('www-authenticate')!, /invalid_token/)
  })

  test('openid-client signs a person in to a public client, by a pushed request', async t => {
    const { web, config, browser } = await open(engine, t, { isPublic: true })
    const tokens = await signInWith(config, browser, web, true)
    assert.equal(tokens.claims()!.email, ADA)
    const freshTokens = await client.refreshTokenGrant(config, tokens.refresh_token!)
    await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token!), { error: 'invalid_grant' })
    await assert.rejects(client.refreshTokenGrant(config, freshTokens.refresh_token!), {
      error: 'invalid_grant',
    })
  })

  test('oauth4webapi completes code and PKCE, with the issuer in the answer, and revokes', async t => {
    const { web, secret, browser } = await open(engine, t)
    const insecureOptions = { [oauth.allowInsecureRequests]: true }
    const issuer = new URL(web.url)
    const discoveryResponse = await oauth.discoveryRequest(issuer, {
      algorithm: 'oauth2',
      ...insecureOptions,
    })
    const server = await oauth.processDiscoveryResponse(issuer, discoveryResponse)
    assert.equal(server.authorization_response_iss_parameter_supported, true)
    const verifier = oauth.generateRandomCodeVerifier()
    const authorizationUrl = new URL(server.authorization_endpoint!)
    authorizationUrl.search = new URLSearchParams({
      client_id: 'shop',
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: SCOPE,
      prompt: 'consent',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString()
    const app: oauth.Client = { client_id: 'shop' }
    const clientAuthentication = oauth.ClientSecretPost(secret)
    const params = oauth.validateAuthResponse(server, app, await consentAt(browser, web, authorizationUrl))
    const answer = await oauth.authorizationCodeGrantRequest(
      server,
      app,
      clientAuthentication,
      params,
      CALLBACK,
      verifier,
      insecureOptions,
    )
    const tokens = await oauth.processAuthorizationCodeResponse(server, app, answer)
    assert.ok(tokens.refresh_token && tokens.id_token)
    const revocationResponse = await oauth.revocationRequest(
      server,
      app,
      clientAuthentication,
      tokens.refresh_token,
      insecureOptions,
    )
    await oauth.processRevocationResponse(revocationResponse)
    const refusal = await oauth.refreshTokenGrantRequest(
      server,
      app,
      clientAuthentication,
      tokens.refresh_token,
      insecureOptions,
    )
    assert.equal(refusal.status, 400)
  })

  test('an app is told by back-channel logout when its session ends, and again if it did not answer', async t => {
    const receivedBodies: string[] = []
    const relyingParty = createServer((request, response) => {
      let body = ''
      request.on('data', chunk => {
        body += chunk
      })
      request.on('end', () => {
        receivedBodies.push(body)
        response.writeHead(receivedBodies.length === 1 ? 503 : 200).end()
      })
    })
    await new Promise<void>(resolve => relyingParty.listen(0, '127.0.0.1', resolve))
    t.after(() => relyingParty.close())
    const address = relyingParty.address()
    assert.ok(address && typeof address === 'object')
    const backchannelLogoutUri = `http://127.0.0.1:${address.port}/logout`
    const { web, config, browser } = await open(engine, t, { backchannelLogoutUri })
    const offlineTokens = await signInWith(config, browser, web)
    const form_token = await browser.formToken('/account')
    const { consents, sessions, storage, clock } = web.server.services
    const { sub, sid } = offlineTokens.claims()!
    await browser.post('/sign-out', { form_token })
    const caller = { address: '192.0.2.1', network: '192.0.2.1', client: null }
    assert.equal(receivedBodies.length, 0, 'offline access outlives the sign-out')
    await consents.withdraw(sub, 'shop', caller)
    await until('the first call', async () => receivedBodies.length > 0 || undefined)
    // The retry is due in some seconds. Leasing it until a time that has passed makes it due at once.
    await until('the failed call is recorded', async () => {
      const dueNotices = await storage.store.logoutNotices.lease(clock.now() + 60_000, clock.now() - 1, 10)
      return dueNotices.some(({ attempts }) => attempts === 1) || undefined
    })
    await until('the second call', async () => receivedBodies.length > 1 || undefined, 20_000)
    const token = new URLSearchParams(receivedBodies[1]).get('logout_token')!
    const jwks = createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri!))
    const { payload, protectedHeader } = await jwtVerify(token, jwks, { issuer: web.url, audience: 'shop' })
    assert.equal(protectedHeader.typ, 'logout+jwt')
    assert.deepEqual([payload.sub, payload.sid, payload.nonce], [sub, sid, undefined])
    assert.deepEqual(payload.events, { 'http://schemas.openid.net/event/backchannel-logout': {} })
    assert.ok(sessions)
  })

  test('signing out ends what apps got in this browser without offline access, and nothing else', async t => {
    const { web, config, browser } = await open(engine, t)
    const offlineTokens = await signInWith(config, browser, web)
    const otherBrowser = await signedInClient(web)
    const otherSession = await signInWith(config, otherBrowser, web)
    const { verifier, challenge } = await newPkcePair()
    const authorizationUrl = client.buildAuthorizationUrl(config, {
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    })
    const callbackUrl = locationOf(await browser.get(authorizationUrl.href.slice(web.url.length)))
    const onlineTokens = await client.authorizationCodeGrant(config, callbackUrl, {
      pkceCodeVerifier: verifier,
    })
    assert.equal(onlineTokens.refresh_token, undefined)
    const userInfoStatus = async ({ access_token }: { access_token: string }) =>
      (await fetch(`${web.url}/oauth/userinfo`, { headers: { authorization: `Bearer ${access_token}` } }))
        .status
    assert.deepEqual(
      await Promise.all([onlineTokens, offlineTokens, otherSession].map(userInfoStatus)),
      [200, 200, 200],
    )
    const form_token = await browser.formToken('/account')
    await browser.post('/sign-out', { form_token })
    assert.deepEqual(
      await Promise.all([onlineTokens, offlineTokens, otherSession].map(userInfoStatus)),
      [401, 200, 200],
    )
  })
})

for (const idTokenAlg of ['EdDSA', 'ES256'] as const)
  test(`id tokens are signed with ${idTokenAlg} for an app that says so`, async t => {
    const { web, config, browser } = await open('sqlite', t, { idTokenAlg })
    const tokens = await signInWith(config, browser, web)
    const jwks = createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri!))
    const { protectedHeader } = await jwtVerify(tokens.id_token!, jwks, { issuer: web.url, audience: 'shop' })
    assert.equal(protectedHeader.alg, idTokenAlg)
    const endSessionUrl = client.buildEndSessionUrl(config, { id_token_hint: tokens.id_token! })
    const logoutResponse = await browser.get(endSessionUrl.href.slice(web.url.length))
    assert.equal(logoutResponse.headers.get('location'), '/sign-in?done=signed_out')
  })

async function newPkcePair() {
  const verifier = client.randomPKCECodeVerifier()
  return { verifier, challenge: await client.calculatePKCECodeChallenge(verifier) }
}

test('a request to sign out is confirmed unless it brings the id token of the person who is signed in', async t => {
  const { web, config, browser } = await open('sqlite', t)
  const tokens = await signInWith(config, browser, web)
  const eve = await signedInClient(web, 'eve@example.com')
  const responseWithoutHint = await browser.get('/oauth/logout')
  assert.equal(responseWithoutHint.status, 200)
  assert.match(await responseWithoutHint.text(), /Do you want to sign out\?/)
  const hint = new URLSearchParams({ id_token_hint: tokens.id_token! })
  assert.equal((await eve.get(`/oauth/logout?${hint}`)).status, 200, 'another person is asked')
  for (const signedInBrowser of [browser, eve]) assert.equal((await signedInBrowser.get('/keys')).status, 200)
  const query = new URLSearchParams({
    client_id: 'shop',
    post_logout_redirect_uri: AFTER_LOGOUT_URL,
    state: 's',
  })
  const confirmationPage = await (await browser.get(`/oauth/logout?${query}`)).text()
  assert.match(confirmationPage, /The Shop asks you to sign out/)
  const form_token = /name="form_token" value="([^"]+)"/.exec(confirmationPage)![1]!
  const fields = { ...Object.fromEntries(query), form_token }
  const crossSiteResponse = await browser.post('/oauth/logout', fields, { 'sec-fetch-site': 'cross-site' })
  assert.equal(crossSiteResponse.status, 403)
  const forwardedResponse = await browser.post(
    '/oauth/logout',
    { client_id: 'shop' },
    { 'sec-fetch-site': 'cross-site' },
  )
  assert.equal(forwardedResponse.headers.get('location'), '/oauth/logout?client_id=shop')
  const confirmationResponse = await browser.post('/oauth/logout', fields)
  assert.equal(confirmationResponse.headers.get('location'), `${AFTER_LOGOUT_URL}?state=s`)
  assert.equal((await browser.get('/keys')).status, 303)
})

test('after a sign-out the browser goes only to an address that is registered for the app', async t => {
  const { web } = await open('sqlite', t)
  const browser = createClient(web.url)
  for (const changes of [
    { post_logout_redirect_uri: 'https://evil.example.com/' },
    { post_logout_redirect_uri: `${AFTER_LOGOUT_URL}/more` },
    { post_logout_redirect_uri: AFTER_LOGOUT_URL, client_id: 'hub' },
    { post_logout_redirect_uri: AFTER_LOGOUT_URL, client_id: '' },
    { post_logout_redirect_uri: CALLBACK },
  ]) {
    const query = new URLSearchParams({ client_id: 'shop', ...changes })
    assert.equal((await browser.get(`/oauth/logout?${query}`)).status, 400, query.toString())
  }
})
