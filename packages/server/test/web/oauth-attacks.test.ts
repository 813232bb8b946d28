import assert from 'node:assert/strict'
import { test } from 'node:test'
import { altered } from '../support/altered.ts'
import {
  authorizePath,
  CALLBACK,
  callbackParameters,
  codeOf,
  consentForm,
  decideConsent,
  newVerifier,
  registerShop,
} from '../support/authorize.ts'
import { createClient, signedInClient } from '../support/page-client.ts'
import { startWeb, type WebServer } from '../support/web.ts'

const { verifier, challenge } = newVerifier()

/** A token request, with changes; undefined leaves a parameter out. */
async function redeem(web: WebServer, code: string, changes: Record<string, string | undefined> = {}) {
  const fields = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
    client_id: 'shop',
    ...changes,
  }
  const formFields = Object.entries(fields).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  const answer = await fetch(`${web.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams(formFields),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

test('RFC 9700 4.1 and 4.11: a redirect URI that is not exactly a registered one is answered to nobody', async t => {
  const web = await startWeb(t)
  await registerShop(web, { redirectUris: [CALLBACK, 'https://shop.example.com/other?tab=1'] })
  const client = await signedInClient(web)
  const badRedirectUris = [
    'https://evil.example.com/callback',
    'https://shop.example.com/callback/',
    'https://shop.example.com/callback?next=https://evil.example.com',
    'https://shop.example.com/callback#fragment',
    'https://shop.example.com/callback/../evil',
    'https://shop.example.com/callback%2f..%2fevil',
    'https://shop.example.com:443/callback',
    'https://SHOP.example.com/callback',
    'https://shop.example.com.evil.example.com/callback',
    'https://shop.example.com@evil.example.com/callback',
    'https://evil.example.com\\@shop.example.com/callback',
    'https://evil.example.com/https://shop.example.com/callback',
    'http://shop.example.com/callback',
    '//shop.example.com/callback',
    'https://shop.example.com/other',
    'https://shop.example.com/other?tab=1&tab=2',
    'javascript:alert(1)',
    'data:text/html,x',
    `${CALLBACK}\u0000`,
    `${CALLBACK} `,
    ' ',
    undefined,
  ]
  for (const redirect_uri of badRedirectUris) {
    for (const changes of [{}, { prompt: 'none' }, { response_type: 'token' }]) {
      const answer = await client.get(authorizePath(challenge, { ...changes, redirect_uri }))
      assert.deepEqual([answer.status, answer.headers.get('location')], [400, null], `${redirect_uri}`)
    }
  }
  const twoRedirectUris = await client.get(
    `${authorizePath(challenge)}&redirect_uri=https://evil.example.com/`,
  )
  assert.deepEqual([twoRedirectUris.status, twoRedirectUris.headers.get('location')], [400, null])
  for (const client_id of [
    'unknown',
    'SHOP',
    '../shop',
    '',
    '0190a5b8-7c3e-7abc-8def-0123456789ab',
    undefined,
  ]) {
    const answer = await client.get(authorizePath(challenge, { client_id }))
    assert.deepEqual([answer.status, answer.headers.get('location')], [400, null], `${client_id}`)
  }
})

test('RFC 9700 4.1.3: a code is redeemed only at the redirect URI of its request', async t => {
  const web = await startWeb(t)
  await registerShop(web, { isPublic: true, redirectUris: [CALLBACK, `${CALLBACK}-2`] })
  const client = await signedInClient(web)
  const code = await codeOf(client, authorizePath(challenge))
  const refusal = await redeem(web, code, { redirect_uri: `${CALLBACK}-2` })
  assert.deepEqual([refusal.status, refusal.body.error], [400, 'invalid_grant'])
  assert.equal((await redeem(web, code)).status, 200)
})

test('RFC 9700 4.2 and 4.3: the pages of a request send no referrer to other sites and are not kept', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = await signedInClient(web)
  const page = await client.get(authorizePath(challenge))
  assert.equal(page.headers.get('referrer-policy'), 'same-origin')
  assert.equal(page.headers.get('cache-control'), 'no-store')
  const consentResponse = await decideConsent(
    client,
    await consentForm(client, authorizePath(challenge)),
    'allow',
  )
  assert.equal(consentResponse.headers.get('referrer-policy'), 'same-origin')
  assert.equal(consentResponse.headers.get('cache-control'), 'no-store')
})

test('RFC 9700 4.4: every answer names its issuer, so that a client of two servers detects a mix-up', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = await signedInClient(web)
  const failureResponse = await client.get(authorizePath(challenge, { scope: 'admin:read' }))
  const denialResponse = await decideConsent(
    client,
    await consentForm(client, authorizePath(challenge)),
    'deny',
  )
  const consentResponse = await decideConsent(
    client,
    await consentForm(client, authorizePath(challenge)),
    'allow',
  )
  for (const answer of [failureResponse, denialResponse, consentResponse]) {
    const { iss, state } = callbackParameters(answer)
    assert.deepEqual([iss, state], [web.url, 'a state'])
  }
  assert.equal(callbackParameters(failureResponse).error, 'invalid_scope')
})

test('RFC 9700 4.5: an injected code is useless without the verifier of its request, and to every other client', async t => {
  const web = await startWeb(t)
  await registerShop(web, { isPublic: true })
  const { secret } = await web.server.services.apps.register({
    id: 'thief',
    name: 'Thief',
    redirectUris: [CALLBACK],
  })
  const code = await codeOf(await signedInClient(web), authorizePath(challenge))
  const attacks = [
    { code_verifier: newVerifier().verifier },
    { code_verifier: undefined },
    { code_verifier: challenge },
    { code_verifier: 'short' },
    { client_id: 'thief', client_secret: secret! },
  ]
  for (const changes of attacks) {
    const refusal = await redeem(web, code, changes)
    assert.deepEqual([refusal.status, refusal.body.error], [400, 'invalid_grant'], JSON.stringify(changes))
  }
  assert.equal((await redeem(web, code, { client_id: 'thief' })).body.error, 'invalid_client')
  assert.equal((await redeem(web, code)).status, 200)
})

test('RFC 9700 4.6 and 4.9: tokens are for one audience: id tokens, and access tokens for others, open nothing here', async t => {
  const web = await startWeb(t)
  const audience = 'https://files.example.com'
  await web.server.services.apps.register({ id: 'files', name: 'Files', audience })
  await registerShop(web, { isPublic: true })
  const client = await signedInClient(web)
  const code = await codeOf(
    client,
    authorizePath(challenge, { resource: audience, scope: 'openid account:read' }),
  )
  assert.equal(
    (await redeem(web, code, { resource: 'https://other.example.com' })).body.error,
    'invalid_target',
  )
  const { body } = await redeem(web, code, { resource: audience })
  for (const token of [body.id_token, body.access_token]) {
    for (const path of ['/v1/me', '/oauth/userinfo']) {
      const refusal = await fetch(web.url + path, { headers: { authorization: `Bearer ${token}` } })
      assert.equal(refusal.status, 401)
    }
  }
  const unknownResourceResponse = await client.get(
    authorizePath(challenge, { resource: 'https://unknown.example.com' }),
  )
  assert.equal(callbackParameters(unknownResourceResponse).error, 'invalid_target')
})

test('RFC 9700 4.7: consent is given only by the form that this person was shown in this browser', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const [ada, eve] = [await signedInClient(web), await signedInClient(web, 'eve@example.com')]
  const form = await consentForm(ada, authorizePath(challenge))
  const eveForm = await consentForm(eve, authorizePath(challenge))
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }])
    assert.equal((await decideConsent(ada, form, 'allow', headers)).status, 403)
  assert.equal((await decideConsent(ada, form, 'allow', { origin: 'https://evil.test' })).status, 403)
  assert.equal((await decideConsent(ada, { ...form, form_token: eveForm.form_token }, 'allow')).status, 403)
  assert.equal((await decideConsent(ada, { ...form, form_token: '' }, 'allow')).status, 403)
  assert.equal((await decideConsent(ada, { ...form, request: eveForm.request }, 'allow')).status, 410)
  // Another person has signed in meanwhile: that person is asked, and nothing is granted.
  const responseForOther = await decideConsent(ada, { ...form, user: eveForm.user }, 'allow')
  assert.equal(responseForOther.status, 200)
  assert.match(await responseForOther.text(), /The Shop asks for access/)
  const { data } = await consents(web, ada)
  assert.deepEqual(data, [])
})

async function consents(web: WebServer, _client: unknown) {
  const { store } = web.server.services.storage
  const user = (await store.users.findByEmail('ada@example.com' as never))!
  const { rows } = await store.consents.list(user.id, { limit: 10, after: null })
  return { data: rows }
}

test('RFC 9700 4.8: a request without PKCE is no way around it', async t => {
  const web = await startWeb(t)
  const secret = await registerShop(web, { trusted: true })
  const client = await signedInClient(web)
  const errorOf = async (changes: Record<string, string | undefined>) =>
    callbackParameters(await client.get(authorizePath(challenge, changes))).error
  const withoutPkce = { code_challenge: undefined, code_challenge_method: undefined }
  assert.equal(await errorOf({ code_challenge_method: 'plain' }), 'invalid_request')
  assert.equal(await errorOf({ code_challenge_method: undefined }), 'invalid_request')
  assert.equal(await errorOf({ code_challenge: undefined }), 'invalid_request')
  assert.equal(await errorOf({ code_challenge: verifier.slice(1) }), 'invalid_request')
  assert.equal(await errorOf({ ...withoutPkce, nonce: undefined }), 'invalid_request')
  assert.equal(
    await errorOf({ ...withoutPkce, scope: 'email' }),
    'invalid_request',
    'no id token has the nonce',
  )

  const codeWithoutPkce = callbackParameters(await client.get(authorizePath(challenge, withoutPkce))).code!
  const downgradeAnswer = await redeem(web, codeWithoutPkce, { client_secret: secret })
  assert.deepEqual([downgradeAnswer.status, downgradeAnswer.body.error], [400, 'invalid_grant'])
  assert.equal(
    (await redeem(web, codeWithoutPkce, { client_secret: secret, code_verifier: undefined })).status,
    200,
  )

  await web.server.services.apps.change('shop', { requirePkce: true })
  assert.equal(await errorOf(withoutPkce), 'invalid_request')
  await web.server.services.apps.change('shop', { requirePkce: false, isPublic: true })
  assert.equal(await errorOf(withoutPkce), 'invalid_request')
})

test('RFC 9700 4.12: a form that was posted is never posted on to the app', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = await signedInClient(web)
  for (const decision of ['deny', 'allow']) {
    const consentResponse = await decideConsent(
      client,
      await consentForm(client, authorizePath(challenge)),
      decision,
    )
    assert.equal(consentResponse.status, 303)
  }
  assert.equal((await client.post('/oauth/authorize', { client_id: 'shop' })).status, 303)
})

test('RFC 9700 4.14: a refresh token works for its client only, and its reuse ends the session', async t => {
  const web = await startWeb(t)
  await registerShop(web, { isPublic: true })
  const { apps } = web.server.services
  await apps.register({ id: 'thief', name: 'Thief', isPublic: true, redirectUris: [CALLBACK] })
  const client = await signedInClient(web)
  const scope = 'openid offline_access'
  const code = await codeOf(client, authorizePath(challenge, { scope, prompt: 'consent' }))
  const { body } = await redeem(web, code)
  const refresh = async (refresh_token: string, client_id = 'shop', key?: string) => {
    const answer = await fetch(`${web.url}/oauth/token`, {
      method: 'POST',
      headers: key ? { 'idempotency-key': key } : {},
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token, client_id }),
    })
    return (await answer.json()) as Record<string, string>
  }
  assert.equal((await refresh(body.refresh_token!, 'thief')).error, 'invalid_grant')
  const refreshAnswer = await fetch(`${web.url}/auth/refresh`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: body.refresh_token }),
  })
  assert.equal(refreshAnswer.status, 401, 'nor outside of its client')

  const key = 'an-honest-retry-0123456789'
  const freshTokens = await refresh(body.refresh_token!, 'shop', key)
  const repeatedTokens = await refresh(body.refresh_token!, 'shop', key)
  assert.equal(repeatedTokens.refresh_token, freshTokens.refresh_token)
  assert.equal((await refresh(body.refresh_token!)).error, 'invalid_grant')
  assert.equal((await refresh(freshTokens.refresh_token!)).error, 'invalid_grant')
})

test('RFC 9700 4.15: no app can have the id of a person', async t => {
  const web = await startWeb(t)
  await signedInClient(web)
  const { store } = web.server.services.storage
  const user = (await store.users.findByEmail('ada@example.com' as never))!
  await assert.rejects(web.server.services.apps.register({ id: user.id, name: 'Ada' }), {
    code: 'invalid_request',
  })
})

test('RFC 9700 4.16: no page of a request can be framed', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const strangersClient = createClient(web.url)
  await strangersClient.get(authorizePath(challenge))
  const client = await signedInClient(web)
  const pages = [
    await client.get(authorizePath(challenge)),
    await strangersClient.get('/sign-in'),
    await client.get('/oauth/logout'),
    await client.get('/oauth/authorize'),
  ]
  for (const page of pages) {
    assert.match(page.headers.get('content-security-policy')!, /frame-ancestors 'none'/)
    assert.equal(page.headers.get('x-frame-options'), 'DENY')
  }
  const consentPolicy = pages[0]!.headers.get('content-security-policy')!
  assert.match(consentPolicy, /form-action 'self' https:;/, 'the form may lead on to the app')
})

test('a repeated, too long or unsupported parameter is refused with a reason', async t => {
  const web = await startWeb(t)
  await registerShop(web, { trusted: true })
  const client = await signedInClient(web)
  const errorOf = async (changes: Record<string, string | undefined>) =>
    callbackParameters(await client.get(authorizePath(challenge, changes))).error
  assert.equal(await errorOf({ response_type: 'token' }), 'unsupported_response_type')
  assert.equal(await errorOf({ response_type: 'code id_token' }), 'unsupported_response_type')
  assert.equal(await errorOf({ response_type: undefined }), 'invalid_request')
  assert.equal(await errorOf({ response_mode: 'fragment' }), 'invalid_request')
  assert.equal(await errorOf({ request: 'a.b.c' }), 'request_not_supported')
  assert.equal(await errorOf({ request_uri: 'https://shop.example.com/r' }), 'request_uri_not_supported')
  assert.equal(await errorOf({ prompt: 'none login' }), 'invalid_request')
  assert.equal(await errorOf({ prompt: 'surprise' }), 'invalid_request')
  assert.equal(await errorOf({ max_age: '-1' }), 'invalid_request')
  for (const scope of ['admin:read', 'account:write', 'keys:create', 'own:scope', 'openid\u00e9'])
    assert.equal(await errorOf({ scope }), 'invalid_scope', scope)
  assert.equal((await client.get(authorizePath(challenge, { state: 'x'.repeat(2049) }))).status, 400)
  const longPath = authorizePath(challenge, { state: 'x'.repeat(1500), nonce: 'y'.repeat(1500) })
  assert.equal((await client.get(longPath)).status, 400)
  assert.equal((await client.get(`${authorizePath(challenge)}&state=again`)).status, 400)
  const consentRedirect = await client.get(authorizePath(challenge, { scope: 'openid address phone email' }))
  assert.ok(callbackParameters(consentRedirect).code, 'scopes of claims that no account has are left out')
})

test('a pushed request is that of its client, and is good for one code', async t => {
  const web = await startWeb(t)
  const secret = await registerShop(web, { trusted: true })
  const otherApp = await web.server.services.apps.register({
    id: 'other',
    name: 'Other',
    redirectUris: [CALLBACK],
    trusted: true,
  })
  const push = async (changes: Record<string, string> = {}, id = 'shop', given = secret) => {
    const fields = Object.fromEntries(new URL(web.url + authorizePath(challenge)).searchParams)
    const answer = await fetch(`${web.url}/oauth/par`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${id}:${given}`)}` },
      body: new URLSearchParams({ ...fields, client_id: id, ...changes }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, string> }
  }
  assert.equal((await push({}, 'shop', 'wrong')).body.error, 'invalid_client')
  assert.equal((await push({ client_id: 'other' })).body.error, 'invalid_request')
  assert.equal((await push({ redirect_uri: 'https://evil.example.com' })).body.error, 'invalid_request')
  assert.equal((await push({ request_uri: 'urn:x' })).body.error, 'invalid_request')
  const refusal = await push({ scope: 'admin:read' })
  assert.deepEqual(
    [refusal.body.error, refusal.body.error_description],
    ['invalid_scope', "The app may not ask for the scope 'admin:read'."],
  )
  const tooManyScopesAnswer = await push({
    scope: Array.from({ length: 33 }, (_, n) => `orders:${n}`).join(' '),
  })
  assert.deepEqual(
    [tooManyScopesAnswer.body.error, tooManyScopesAnswer.body.error_description],
    ['invalid_scope', 'An app may ask for at most 32 scopes at once.'],
  )
  const secretAsScopeAnswer = await push({ scope: `sva_${'x'.repeat(20)}Y` })
  assert.equal(secretAsScopeAnswer.body.error_description, 'The app may not ask for this scope.')
  assert.equal((await push({ code_challenge_method: 'plain' })).body.error, 'invalid_request')
  const { status, body } = await push()
  assert.equal(status, 201)
  const authorizePathOf = (client_id: string, request_uri = body.request_uri!) =>
    `/oauth/authorize?${new URLSearchParams({ client_id, request_uri })}`
  const client = await signedInClient(web)
  assert.equal((await client.get(authorizePathOf('other'))).status, 400)
  assert.equal((await client.get(authorizePathOf('shop', altered(body.request_uri!)))).status, 400)
  assert.equal(
    (await client.get(`${authorizePathOf('shop')}&redirect_uri=https://evil.example.com`)).status,
    303,
  )
  assert.equal((await client.get(authorizePathOf('shop'))).status, 410, 'once')
  assert.ok(otherApp.secret)
})
