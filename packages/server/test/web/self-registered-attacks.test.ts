import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  authorizePath,
  CALLBACK,
  callbackParameters,
  consentForm,
  decideConsent,
  newVerifier,
  registerShop,
} from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { createClient, signedInClient } from '../support/page-client.ts'
import { engineSettings, startWeb, type WebServer } from '../support/web.ts'

const AUDIENCE = 'https://files.example.com'

/** Registers a client as anybody may: it gets an id and a secret. */
async function registerEvil(
  web: WebServer,
  redirect = CALLBACK,
  method = 'client_secret_post',
  metadata = {},
) {
  const answer = await fetch(`${web.url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirect], token_endpoint_auth_method: method, ...metadata }),
  })
  assert.equal(answer.status, 201)
  return (await answer.json()) as { client_id: string; client_secret: string }
}

forEachEngine(engine => {
  const startWithRegistration = async (t: TestContext) =>
    startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true', ...(await engineSettings(engine, t)) })

  test('a client that registered itself has none of the rights of an app that the operator registered', async t => {
    const web = await startWithRegistration(t)
    await registerShop(web, { id: 'files', audience: AUDIENCE })
    const { client_id, client_secret } = await registerEvil(web)
    const authorization = `Basic ${btoa(`${client_id}:${client_secret}`)}`
    assert.equal((await fetch(`${web.url}/v1/revocations`, { headers: { authorization } })).status, 401)
    const jsonHeaders = { authorization, 'content-type': 'application/json' }
    for (const path of ['/auth/introspect', '/auth/introspections', '/v1/charges'])
      assert.equal(
        (await fetch(web.url + path, { method: 'POST', headers: jsonHeaders, body: '{"token":"x"}' })).status,
        401,
        path,
      )
    const errorOf = async (path: string, fields: Record<string, string>) => {
      const body = new URLSearchParams({ client_id, client_secret, ...fields })
      const answer = await fetch(web.url + path, { method: 'POST', body })
      return ((await answer.json()) as { error?: string }).error
    }
    assert.equal(await errorOf('/oauth/introspect', { token: 'x' }), 'invalid_client')
    const grant = { grant_type: 'client_credentials', resource: AUDIENCE }
    assert.equal(await errorOf('/oauth/token', grant), 'unauthorized_client')
  })

  test('a client that registered itself gets a token for the service of another app only from who was shown that service', async t => {
    const web = await startWithRegistration(t)
    await registerShop(web, { id: 'files', audience: AUDIENCE })
    const { client_id } = await registerEvil(web, CALLBACK, 'none')
    const browser = await signedInClient(web)
    const authorizeUrl = (changes: Record<string, string> = {}) =>
      authorizePath(newVerifier().challenge, { client_id, scope: 'openid', ...changes })
    const formWithoutResource = await consentForm(browser, authorizeUrl())
    assert.doesNotMatch(formWithoutResource.page, /act as you at/)
    assert.ok(callbackParameters(await decideConsent(browser, formWithoutResource, 'allow')).code)
    assert.ok(callbackParameters(await browser.get(authorizeUrl({ prompt: 'none' }))).code)
    const responseWithoutPrompt = await browser.get(authorizeUrl({ prompt: 'none', resource: AUDIENCE }))
    assert.equal(callbackParameters(responseWithoutPrompt).error, 'consent_required')
    const formWithResource = await consentForm(browser, authorizeUrl({ resource: AUDIENCE }))
    assert.match(formWithResource.page, /act as you at <code>https:\/\/files\.example\.com<\/code>/)
    assert.ok(callbackParameters(await decideConsent(browser, formWithResource, 'allow')).code)
  })

  test('RFC 9700 4.11.2: no link leads on to a client that registered itself whom the person never agreed to', async t => {
    const web = await startWithRegistration(t)
    const { client_id } = await registerEvil(web, CALLBACK, 'none', { post_logout_redirect_uris: [CALLBACK] })
    const authorizeUrl = (changes: Record<string, string> = {}) =>
      authorizePath(newVerifier().challenge, { client_id, scope: 'openid', ...changes })
    const errorPaths = [
      authorizeUrl({ response_type: 'token' }),
      authorizeUrl({ prompt: 'none' }),
      authorizeUrl({ scope: 'admin:write' }),
      authorizeUrl({ resource: 'https://unknown.example.com' }),
    ]
    const logoutPath = `/oauth/logout?${new URLSearchParams({ client_id, post_logout_redirect_uri: CALLBACK })}`
    const strangersClient = createClient(web.url)
    const browser = await signedInClient(web)
    for (const client of [strangersClient, browser])
      for (const path of errorPaths) {
        const shownResponse = await client.get(path)
        assert.deepEqual([shownResponse.status, shownResponse.headers.get('location')], [400, null], path)
        assert.match(await shownResponse.text(), /This sign-in cannot go on/)
      }
    assert.equal((await strangersClient.get(logoutPath)).headers.get('location'), '/sign-in?done=signed_out')
    // A single-page app makes this request in a frame, whose address no person sees: the redirect misleads nobody.
    const frameResponse = await strangersClient.get(authorizeUrl({ prompt: 'none' }), {
      'sec-fetch-dest': 'iframe',
    })
    assert.equal(callbackParameters(frameResponse).error, 'login_required')
    assert.ok(
      callbackParameters(await decideConsent(browser, await consentForm(browser, authorizeUrl()), 'allow'))
        .code,
    )
    const responseAfterConsent = await browser.get(authorizeUrl({ prompt: 'none', max_age: '0' }))
    assert.equal(callbackParameters(responseAfterConsent).error, 'login_required')
    const logoutResponse = await browser.post(logoutPath.replace(/\?.*/, ''), {
      form_token: await browser.formToken('/account'),
      client_id,
      post_logout_redirect_uri: CALLBACK,
    })
    assert.equal(logoutResponse.headers.get('location'), CALLBACK)
  })
})

test('the page of a consent shows no host for a scheme of an app’s own', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
  const redirect_uri = 'com.evil.app://accounts.example.com/callback'
  const { client_id } = await registerEvil(web, redirect_uri, 'none')
  const browser = await signedInClient(web)
  const { page } = await consentForm(
    browser,
    authorizePath(newVerifier().challenge, { client_id, redirect_uri }),
  )
  assert.match(page, /Then you go on to <code>com\.evil\.app:<\/code>/)
})

test('all networks together register a bounded number of clients an hour', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
  const register = await web.server.services.clients.registration!()
  const metadata = { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' }
  const callerNumber = (at: number) => {
    const address = `192.0.${at >> 8}.${at & 255}`
    return { address, network: address, client: null }
  }
  for (let at = 0; at < 500; at++) await register(metadata, callerNumber(at))
  await assert.rejects(register(metadata, callerNumber(500)), { code: 'rate_limited' })
})
