import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  authorizePath,
  CALLBACK,
  callbackParameters,
  codeOf,
  consentForm,
  decideConsent,
  locationOf,
  newVerifier,
  registerShop,
} from '../support/authorize.ts'
import { ADA, createClient, signedInClient } from '../support/page-client.ts'
import { startWeb } from '../support/web.ts'

const { challenge } = newVerifier()

test('a person who is not signed in signs in first, agrees once, and the app gets a code', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = createClient(web.url)
  const signInRedirect = await client.get(authorizePath(challenge, { login_hint: ADA }))
  assert.equal(locationOf(signInRedirect).pathname, '/sign-in')
  const page = await (await client.get('/sign-in')).text()
  assert.match(page, /to continue to The Shop/)
  assert.match(page, /value="ada@example\.com"/)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: ADA })
  const [mail] = await web.mails(ADA)
  const token = new URL(mail!.link!).searchParams.get('token')!
  const signedInResponse = await client.post('/verify', { form_token, token, email: ADA })
  const path = signedInResponse.headers.get('location')!
  assert.match(path, /^\/oauth\/consent\?request=/)

  const form = await consentForm(client, path)
  for (const text of ['The Shop asks', ADA, 'see your e-mail address', 'see your name', 'shop.example.com'])
    assert.ok(form.page.includes(text), text)
  const consentResponse = await decideConsent(client, form, 'allow')
  assert.equal(consentResponse.status, 303)
  assert.ok(consentResponse.headers.get('location')!.startsWith(`${CALLBACK}?code=svo_`))
  const { state, iss } = callbackParameters(consentResponse)
  assert.deepEqual([state, iss], ['a state', web.url])

  // Neither the sign-in nor the consent is asked for again.
  const secondRequest = await client.get(authorizePath(challenge))
  assert.ok(secondRequest.headers.get('location')!.startsWith(`${CALLBACK}?code=svo_`))
  assert.equal((await client.get(path)).status, 410)
})

test('an app that asks for more scopes later asks for consent again, and a person may refuse', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = await signedInClient(web)
  await codeOf(client, authorizePath(challenge))
  const requestWithMore = authorizePath(challenge, { scope: 'openid account:read' })
  const form = await consentForm(client, requestWithMore)
  assert.match(form.page, /see your profile, balance and ledger/)
  const denial = await decideConsent(client, form, 'deny')
  const { error, state, iss } = callbackParameters(denial)
  assert.deepEqual([error, state, iss], ['access_denied', 'a state', web.url])
  await consentForm(client, requestWithMore)
  await codeOf(client, requestWithMore)
  assert.equal(
    (await client.get(authorizePath(challenge, { scope: 'openid email account:read' }))).status,
    303,
  )
})

test('first-party and trusted apps ask for no consent', async t => {
  const web = await startWeb(t)
  const { apps } = web.server.services
  await registerShop(web, { trusted: true })
  await apps.change('console', { redirectUris: ['https://console.example.com/'] })
  const client = await signedInClient(web)
  const trustedAppAnswer = await client.get(authorizePath(challenge))
  const firstPartyAppAnswer = await client.get(
    authorizePath(challenge, { client_id: 'console', redirect_uri: 'https://console.example.com/' }),
  )
  for (const answer of [trustedAppAnswer, firstPartyAppAnswer])
    assert.match(answer.headers.get('location')!, /\?code=svo_/)
  const responseWithoutPrompt = await client.get(authorizePath(challenge, { prompt: 'none' }))
  assert.match(responseWithoutPrompt.headers.get('location')!, /\?code=svo_/)
})

test('with prompt=none nothing is shown: the app learns what would be asked', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const path = authorizePath(challenge, { prompt: 'none' })
  const strangersClient = createClient(web.url)
  assert.equal(callbackParameters(await strangersClient.get(path)).error, 'login_required')
  const client = await signedInClient(web)
  assert.equal(callbackParameters(await client.get(path)).error, 'consent_required')
  await codeOf(client, authorizePath(challenge))
  assert.ok(callbackParameters(await client.get(path)).code)
})

test('prompt=login, prompt=select_account and an exceeded max_age ask a signed-in person to sign in again', async t => {
  const web = await startWeb(t)
  await registerShop(web, { trusted: true })
  const client = await signedInClient(web)
  assert.ok(callbackParameters(await client.get(authorizePath(challenge, { max_age: '3600' }))).code)
  for (const changes of [{ prompt: 'login' }, { prompt: 'select_account' }, { max_age: '0' }]) {
    const redirectResponse = await client.get(authorizePath(challenge, changes))
    assert.equal(redirectResponse.headers.get('location'), '/sign-in?again=1')
    const form_token = await client.formToken('/sign-in?again=1')
    const mailCountBefore = (await web.mails(ADA)).length
    await client.post('/sign-in', { form_token, email: ADA })
    assert.equal((await client.get('/check-mail')).status, 200, 'the old session is not enough')
    const [mail] = await web.mails(ADA, mailCountBefore + 1)
    const token = new URL(mail!.link!).searchParams.get('token')!
    const answer = await client.post('/verify', { form_token, token, email: ADA })
    assert.ok(callbackParameters(await client.get(answer.headers.get('location')!)).code)
  }
  const responseWithoutPrompt = await client.get(authorizePath(challenge, { prompt: 'none', max_age: '0' }))
  assert.equal(callbackParameters(responseWithoutPrompt).error, 'login_required')
})

test('prompt=consent asks again for what was granted', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = await signedInClient(web)
  await codeOf(client, authorizePath(challenge))
  await consentForm(client, authorizePath(challenge, { prompt: 'consent' }))
})

test('a request goes on only in the browser where it began: a link opened elsewhere signs in there and nothing more', async t => {
  const web = await startWeb(t)
  await registerShop(web, { trusted: true })
  const firstBrowser = createClient(web.url)
  await firstBrowser.get(authorizePath(challenge))
  const form_token = await firstBrowser.formToken('/sign-in')
  await firstBrowser.post('/sign-in', { form_token, email: ADA })
  const [mail] = await web.mails(ADA)
  const token = new URL(mail!.link!).searchParams.get('token')!

  const phone = createClient(web.url)
  const phoneToken = await phone.formToken(new URL(mail!.link!).pathname + new URL(mail!.link!).search)
  const phoneResponse = await phone.post('/verify', { form_token: phoneToken, token, email: ADA })
  assert.match(phoneResponse.headers.get('location')!, /^\/keys/)
  const destinationCookie = firstBrowser.jar.get('keyway_destination')!
  assert.ok(destinationCookie, 'the first browser still waits')

  // The first browser signs in by the code of another mail, and continues its request.
  await firstBrowser.post('/sign-in', { form_token, email: ADA, again: '1' })
  const [second] = await web.mails(ADA, 2)
  const page = await (await firstBrowser.get('/check-mail')).text()
  const login_id = /name="login_id" value="([^"]+)"/.exec(page)![1]!
  const codeResponse = await firstBrowser.post('/check-mail', { form_token, login_id, code: second!.code! })
  assert.ok(callbackParameters(await firstBrowser.get(codeResponse.headers.get('location')!)).code)
})

test('a request of another browser, a forged cookie and an old id lead to a page that says so', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const [ada, eve] = [await signedInClient(web), await signedInClient(web, 'eve@example.com')]
  const form = await consentForm(ada, authorizePath(challenge))
  assert.equal((await eve.get(`/oauth/consent?request=${form.request}`)).status, 410)
  eve.jar.set('keyway_requests', 'forged.cookie')
  assert.equal((await eve.get(`/oauth/consent?request=${form.request}`)).status, 410)
  assert.equal((await ada.get('/oauth/consent?request=unknown')).status, 410)
  assert.equal((await ada.get('/oauth/consent')).status, 410)
})

test('a form of another site at the authorization endpoint becomes a navigation with the same parameters', async t => {
  const web = await startWeb(t)
  await registerShop(web, { trusted: true })
  const client = await signedInClient(web)
  const fields = Object.fromEntries(new URL(web.url + authorizePath(challenge)).searchParams)
  const postResponse = await client.post('/oauth/authorize', fields, { 'sec-fetch-site': 'cross-site' })
  assert.equal(postResponse.status, 303)
  assert.ok(callbackParameters(await client.get(postResponse.headers.get('location')!)).code)
  const tooLongResponse = await client.post('/oauth/authorize', { ...fields, state: 'x'.repeat(9000) })
  assert.equal(tooLongResponse.status, 413)
})

test('the account lists the apps with access and withdraws it', async t => {
  const web = await startWeb(t)
  await registerShop(web)
  const client = await signedInClient(web)
  assert.match(await (await client.get('/account/apps')).text(), /No app has access/)
  await codeOf(client, authorizePath(challenge))
  const page = await (await client.get('/account/apps')).text()
  assert.doesNotMatch(page, /No app has access/)
  assert.match(page, /The Shop/)
  const form_token = await client.formToken('/account')
  const withdrawalResponse = await client.post('/account/apps/shop/withdraw', { form_token })
  assert.equal(withdrawalResponse.headers.get('location'), '/account/apps?done=consent_withdrawn')
  assert.match(await (await client.get('/account/apps')).text(), /No app has access/)
  assert.equal((await client.post('/account/apps/shop/withdraw', { form_token })).status, 404)
  assert.equal((await client.post('/account/apps/%00/withdraw', { form_token })).status, 404)
  await consentForm(client, authorizePath(challenge))
})
