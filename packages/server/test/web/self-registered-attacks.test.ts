import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  answerOf,
  CALLBACK,
  consentForm,
  decideConsent,
  newVerifier,
  registerShop,
  requestOf,
} from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { createClient, signedIn } from '../support/page-client.ts'
import { engineSettings, startWeb, type WebServer } from '../support/web.ts'

const AUDIENCE = 'https://files.example.com'

/** Registers a client as anybody may: it gets an id and a secret. */
async function registerEvil(web: WebServer, redirect = CALLBACK, method = 'client_secret_post', more = {}) {
  const answer = await fetch(`${web.url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirect], token_endpoint_auth_method: method, ...more }),
  })
  assert.equal(answer.status, 201)
  return (await answer.json()) as { client_id: string; client_secret: string }
}

forEachEngine(engine => {
  const start = async (t: TestContext) =>
    startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true', ...(await engineSettings(engine, t)) })

  test('a client that registered itself has none of the rights of an app that the operator registered', async t => {
    const web = await start(t)
    await registerShop(web, { id: 'files', audience: AUDIENCE })
    const { client_id, client_secret } = await registerEvil(web)
    const authorization = `Basic ${btoa(`${client_id}:${client_secret}`)}`
    assert.equal((await fetch(`${web.url}/v1/revocations`, { headers: { authorization } })).status, 401)
    const json = { authorization, 'content-type': 'application/json' }
    for (const path of ['/auth/introspect', '/auth/introspections', '/v1/charges'])
      assert.equal(
        (await fetch(web.url + path, { method: 'POST', headers: json, body: '{"token":"x"}' })).status,
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
    const web = await start(t)
    await registerShop(web, { id: 'files', audience: AUDIENCE })
    const { client_id } = await registerEvil(web, CALLBACK, 'none')
    const browser = await signedIn(web)
    const ask = (changes: Record<string, string> = {}) =>
      requestOf(newVerifier().challenge, { client_id, scope: 'openid', ...changes })
    const plain = await consentForm(browser, ask())
    assert.doesNotMatch(plain.page, /act as you at/)
    assert.ok(answerOf(await decideConsent(browser, plain, 'allow')).code)
    assert.ok(answerOf(await browser.get(ask({ prompt: 'none' }))).code)
    const silent = await browser.get(ask({ prompt: 'none', resource: AUDIENCE }))
    assert.equal(answerOf(silent).error, 'consent_required')
    const asked = await consentForm(browser, ask({ resource: AUDIENCE }))
    assert.match(asked.page, /act as you at <code>https:\/\/files\.example\.com<\/code>/)
    assert.ok(answerOf(await decideConsent(browser, asked, 'allow')).code)
  })

  test('RFC 9700 4.11.2: no link leads on to a client that registered itself whom the person never agreed to', async t => {
    const web = await start(t)
    const { client_id } = await registerEvil(web, CALLBACK, 'none', { post_logout_redirect_uris: [CALLBACK] })
    const ask = (changes: Record<string, string> = {}) =>
      requestOf(newVerifier().challenge, { client_id, scope: 'openid', ...changes })
    const ofNobody = [
      ask({ response_type: 'token' }),
      ask({ prompt: 'none' }),
      ask({ scope: 'admin:write' }),
      ask({ resource: 'https://unknown.example.com' }),
    ]
    const logout = `/oauth/logout?${new URLSearchParams({ client_id, post_logout_redirect_uri: CALLBACK })}`
    const stranger = createClient(web.url)
    const browser = await signedIn(web)
    for (const client of [stranger, browser])
      for (const path of ofNobody) {
        const shown = await client.get(path)
        assert.deepEqual([shown.status, shown.headers.get('location')], [400, null], path)
        assert.match(await shown.text(), /This sign-in cannot go on/)
      }
    assert.equal((await stranger.get(logout)).headers.get('location'), '/sign-in?done=signed_out')
    // An app of a single page asks so in a frame, whose address nobody sees.
    const framed = await stranger.get(ask({ prompt: 'none' }), { 'sec-fetch-dest': 'iframe' })
    assert.equal(answerOf(framed).error, 'login_required')
    assert.ok(answerOf(await decideConsent(browser, await consentForm(browser, ask()), 'allow')).code)
    const agreed = await browser.get(ask({ prompt: 'none', max_age: '0' }))
    assert.equal(answerOf(agreed).error, 'login_required')
    const left = await browser.post(logout.replace(/\?.*/, ''), {
      form_token: await browser.formToken('/account'),
      client_id,
      post_logout_redirect_uri: CALLBACK,
    })
    assert.equal(left.headers.get('location'), CALLBACK)
  })
})

test('the page of a consent shows no host for a scheme of an app’s own', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
  const redirect_uri = 'com.evil.app://accounts.example.com/callback'
  const { client_id } = await registerEvil(web, redirect_uri, 'none')
  const browser = await signedIn(web)
  const { page } = await consentForm(browser, requestOf(newVerifier().challenge, { client_id, redirect_uri }))
  assert.match(page, /Then you go on to <code>com\.evil\.app:<\/code>/)
})

test('all networks together register a bounded number of clients an hour', async t => {
  const web = await startWeb(t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
  const register = await web.server.services.clients.registration!()
  const metadata = { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' }
  const from = (at: number) => {
    const address = `192.0.${at >> 8}.${at & 255}`
    return { address, network: address, client: null }
  }
  for (let at = 0; at < 500; at++) await register(metadata, from(at))
  await assert.rejects(register(metadata, from(500)), { code: 'rate_limited' })
})
