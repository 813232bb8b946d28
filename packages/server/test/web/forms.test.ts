import assert from 'node:assert/strict'
import { test } from 'node:test'
import { altered } from '../support/altered.ts'
import { ADA, createClient, SAME_ORIGIN, signedInClient } from '../support/page-client.ts'
import { startWeb } from '../support/web.ts'

test('a form is accepted only from this origin with its form token', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  const validFields = { form_token, email: ADA }
  const otherFormToken = await createClient(web.url).formToken('/sign-in')

  for (const [fields, headers] of [
    [validFields, { 'sec-fetch-site': 'cross-site' }],
    [validFields, { 'sec-fetch-site': 'same-site' }],
    [validFields, { 'sec-fetch-site': 'none' }],
    [validFields, { 'sec-fetch-site': 'cross-site', origin: web.url }],
    [validFields, { origin: 'https://evil.example' }],
    [validFields, { origin: 'null' }],
    [validFields, {}],
    [{ email: ADA }, SAME_ORIGIN],
    [{ email: ADA, form_token: 'x' }, SAME_ORIGIN],
    [{ email: ADA, form_token: otherFormToken }, SAME_ORIGIN],
  ] as [Record<string, string>, Record<string, string>][]) {
    const refusal = await client.post('/sign-in', fields, headers)
    assert.equal(refusal.status, 403, JSON.stringify([fields, headers]))
    assert.equal(client.jar.has('keyway_asked'), false)
  }
  assert.equal((await web.mails(ADA, 0)).length, 0)

  assert.equal((await client.post('/sign-in', validFields)).status, 303)
  assert.equal((await client.post('/sign-in', validFields, { origin: web.url })).status, 303)
})

test('every form that changes something needs its form token', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const id = '0190a5b8-7c3e-7abc-8def-0123456789ab'
  const paths = [
    '/verify',
    '/check-mail',
    '/device',
    '/device/decision',
    '/keys',
    '/sign-out',
    '/sessions/end-others',
    '/keys/revoke',
    '/account/name',
    '/account/email',
    '/account/email/cancel',
    '/account/email/confirm',
    '/account/delete',
    '/account/restore',
    '/account/apps/shop/withdraw',
    '/oauth/consent',
  ]
  const pathsWithId = ['rename', 'rotate', 'revoke', 'live/hello', 'live/end', 'networks', 'limits'].map(
    verb => `/keys/${id}/${verb}`,
  )
  const otherPaths = [`/sessions/${id}/end`, `/agents/${id}/test`, `/agents/${id}/disconnect`]
  for (const path of [...paths, ...pathsWithId, ...otherPaths, '/account/charging/hub/withdraw']) {
    assert.equal((await client.post(path, {})).status, 403, path)
  }
  assert.equal((await client.get('/keys')).status, 200)
})

test('a large body or one of another type is refused with an error page', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  const responseToLargeForm = await client.post('/sign-in', { form_token, email: 'a'.repeat(20_000) })
  assert.equal(responseToLargeForm.status, 413)
  const plainText = await fetch(`${web.url}/sign-in`, {
    method: 'POST',
    headers: { ...SAME_ORIGIN, 'content-type': 'text/plain' },
    body: 'email=ada@example.com',
  })
  assert.equal(plainText.status, 415)
  assert.match(plainText.headers.get('content-type')!, /^text\/html/)
})

test('the session cookie authenticates pages but not the API', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const cookie = client.jar.get('keyway_session')!
  assert.match(
    client.cookieAttributes.get('keyway_session')!,
    /Max-Age=7776000; Path=\/; HttpOnly; SameSite=Lax/,
  )

  assert.equal((await client.get('/keys')).status, 200)
  assert.equal((await client.get('/v1/me')).status, 401)
  assert.equal((await client.get('/v1/me', { authorization: `Bearer ${cookie}` })).status, 401)
  const refresh = await fetch(`${web.url}/auth/refresh`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: cookie }),
  })
  assert.equal(refresh.status, 401)
  const tamperedClient = createClient(web.url)
  tamperedClient.jar.set('keyway_session', altered(cookie))
  assert.equal((await tamperedClient.get('/keys')).headers.get('location'), '/sign-in?done=ended')
})

test('cookies have the __Host- prefix over https', async t => {
  const web = await startWeb(t, {
    KEYWAY_PUBLIC_URL: 'https://keyway.example.com',
    KEYWAY_MAIL_URL: 'smtp://localhost:9',
    KEYWAY_SUPPORT_EMAIL: 'help@example.com',
    KEYWAY_MAIL_FROM: 'Example Works <no-reply@example.com>',
  })
  const client = createClient(`http://127.0.0.1:${web.server.port}`)
  const answer = await client.get('/sign-in')
  assert.match(
    answer.headers.getSetCookie()[0]!,
    /^__Host-keyway_form=.*Path=\/; HttpOnly; Secure; SameSite=Lax/,
  )
  const text = await answer.text()
  assert.equal(answer.headers.get('strict-transport-security'), 'max-age=63072000')
  assert.match(text, /Sign in to Example Works/)
  assert.doesNotMatch(text, /Keyway<|inbox/)
  assert.equal((await client.get('/inbox')).status, 404)
})

test('pages have a strict CSP and the other security headers', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  for (const path of ['/sign-in', '/inbox', '/nothing']) {
    const { headers } = await client.get(path)
    const policy = headers.get('content-security-policy')!
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /script-src 'self'; /)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|\*|data:/)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.ok(headers.get('x-request-id'))
  }
  const link = `/verify?token=${'x'.repeat(43)}&email=ada%40example.com`
  assert.equal((await client.get(link)).headers.get('referrer-policy'), 'no-referrer')
  assert.equal((await client.get('/keys')).headers.get('location'), '/sign-in')
})

test('failed links and codes on the pages count in the same limit as those of the API', async t => {
  const web = await startWeb(t, { KEYWAY_FAILURE_LIMITS: '2/minute' })
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: ADA })
  const guessedFields = { form_token, token: 'x'.repeat(43), email: ADA }
  assert.equal((await client.post('/verify', guessedFields)).status, 400)
  const apiAnswer = await fetch(`${web.url}/auth/verify-magic-link`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: 'x'.repeat(43), email: ADA }),
  })
  assert.equal(apiAnswer.status, 400)
  const limitedLink = await client.post('/verify', guessedFields)
  assert.equal(limitedLink.status, 429)
  assert.ok(Number(limitedLink.headers.get('retry-after')) > 0)

  const login_id = /name="login_id" value="([^"]+)"/.exec(await (await client.get('/check-mail')).text())![1]!
  const wrongCode = await client.post('/check-mail', { form_token, login_id, code: '00000000' })
  assert.equal(wrongCode.status, 429)
})

test('a code works only in the browser that requested it, and a wrong one is reported', async t => {
  const web = await startWeb(t)
  const requestingBrowser = createClient(web.url)
  const form_token = await requestingBrowser.formToken('/sign-in')
  await requestingBrowser.post('/sign-in', { form_token, email: ADA })
  const [mail] = await web.mails(ADA)
  const login_id = /name="login_id" value="([^"]+)"/.exec(
    await (await requestingBrowser.get('/check-mail')).text(),
  )![1]!

  const otherBrowser = createClient(web.url)
  const stolenCodeForm = { form_token: await otherBrowser.formToken('/sign-in'), login_id, code: mail!.code! }
  assert.equal((await otherBrowser.post('/check-mail', stolenCodeForm)).headers.get('location'), '/sign-in')
  otherBrowser.jar.set('keyway_asked', altered(requestingBrowser.jar.get('keyway_asked')!))
  assert.equal((await otherBrowser.post('/check-mail', stolenCodeForm)).headers.get('location'), '/sign-in')

  const wrongCode = mail!.code === '00000000' ? '11111111' : '00000000'
  const refusal = await requestingBrowser.post('/check-mail', { form_token, login_id, code: wrongCode })
  assert.equal(refusal.status, 400)
  assert.match(await refusal.text(), /That code is not right/)
  const codeWithSpace = `${mail!.code!.slice(0, 4)} ${mail!.code!.slice(4)}`
  const signInResponse = await requestingBrowser.post('/check-mail', {
    form_token,
    login_id,
    code: codeWithSpace,
  })
  assert.equal(signInResponse.headers.get('location'), '/keys?done=welcome')
})

test('after too many wrong codes the page refers to the button in the mail, which works', async t => {
  const web = await startWeb(t)
  const requestingBrowser = createClient(web.url)
  const { typeCode, mail } = await requestLink(web, requestingBrowser)
  for (let tries = 0; tries < 5; tries++) assert.equal((await typeCode(wrongCodeFor(mail.code!))).status, 400)
  const refusal = await typeCode(mail.code!)
  assert.equal(refusal.status, 429)
  assert.ok(Number(refusal.headers.get('retry-after')) > 0)
  assert.match(await refusal.text(), /Use the button in the mail: it works/)
  const token = new URL(mail.link!).searchParams.get('token')!
  const signInResponse = await requestingBrowser.post('/verify', {
    form_token: await requestingBrowser.formToken('/sign-in'),
    token,
    email: ADA,
  })
  assert.equal(signInResponse.headers.get('location'), '/keys?done=welcome')
})

test('wrong codes of a recognised browser are counted apart from those of strangers', async t => {
  const web = await startWeb(t)
  const recognisedBrowser = createClient(web.url)
  const firstLink = await requestLink(web, recognisedBrowser)
  assert.equal((await firstLink.typeCode(firstLink.mail.code!)).status, 303)
  await recognisedBrowser.post('/sign-out', { form_token: await recognisedBrowser.formToken('/keys') })
  const secondLink = await requestLink(web, recognisedBrowser)
  for (let tries = 0; tries < 5; tries++) await secondLink.typeCode(wrongCodeFor(secondLink.mail.code!))
  const thirdLink = await requestLink(web, recognisedBrowser)
  assert.equal((await thirdLink.typeCode(thirdLink.mail.code!)).status, 429, 'five of its own')
  const linkOfUnknownBrowser = await requestLink(web, createClient(web.url))
  assert.equal(
    (await linkOfUnknownBrowser.typeCode(linkOfUnknownBrowser.mail.code!)).status,
    303,
    'none of strangers',
  )
})

async function requestLink(
  web: Awaited<ReturnType<typeof startWeb>>,
  browser: ReturnType<typeof createClient>,
) {
  const mailCountBefore = (await web.mails(ADA, 0)).length
  const form_token = await browser.formToken('/sign-in')
  await browser.post('/sign-in', { form_token, email: ADA })
  const page = await (await browser.get('/check-mail')).text()
  const login_id = /name="login_id" value="([^"]+)"/.exec(page)![1]!
  const [mail] = await web.mails(ADA, mailCountBefore + 1)
  return {
    mail: mail!,
    typeCode: (code: string) => browser.post('/check-mail', { form_token, login_id, code }),
  }
}

function wrongCodeFor(code: string): string {
  return code === '00000000' ? '11111111' : '00000000'
}

test('typed text is escaped on the pages', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  const name = '"><script>alert(1)</script>&'
  const creationResponse = await client.post('/keys', { form_token, name, access: 'all', expiry: 'never' })
  assert.equal(creationResponse.status, 201)
  assert.equal(creationResponse.headers.get('referrer-policy'), 'no-referrer')
  await client.post('/account/name', { form_token, name })
  for (const path of [
    '/keys',
    '/account',
    '/sign-in?app_id=%22%3E%3Cscript%3E',
    '/verify?token=%3Cscript%3E&email=%3Cscript%3E',
  ]) {
    assert.doesNotMatch(await (await client.get(path)).text(), /<script>/, path)
  }
})

test('a form that is submitted twice without scripts creates one key', async t => {
  const web = await startWeb(t)
  const ada = await signedInClient(web)
  const bob = await signedInClient(web, 'bob@example.com')
  const form = await (await ada.get('/keys')).text()
  const newKeyId = /name="once" value="([^"]+)"/.exec(form)![1]!
  const fields = { form_token: await ada.formToken('/keys'), once: newKeyId, name: 'hers', access: 'all' }
  const submissions = await Promise.all(Array.from({ length: 5 }, () => ada.post('/keys', fields)))
  assert.deepEqual(submissions.map(({ status }) => status).sort(), [201, 303, 303, 303, 303])
  const resubmission = await ada.post('/keys', { ...fields, name: 'again' })
  assert.match(resubmission.headers.get('location')!, /^\/keys\/[0-9a-f-]{36}\?done=made_before$/)
  const resubmittedPage = await (await ada.get(resubmission.headers.get('location')!)).text()
  assert.match(resubmittedPage, /That key was created already/)
  const listPage = await (await ada.get('/keys')).text()
  assert.equal(listPage.match(/class="key active"/g)?.length, 1)

  // The hidden key id is bound to its user, and cannot be replaced.
  const bobsFields = { ...fields, form_token: await bob.formToken('/keys') }
  assert.equal((await bob.post('/keys', bobsFields)).status, 201)
  const forgedId = newKeyId.replace(/^.{8}/, '01234567')
  assert.equal((await ada.post('/keys', { ...fields, once: forgedId })).status, 201)
  assert.ok(!(await (await ada.get('/keys')).text()).includes('/keys/01234567'))
})

test('a user cannot read or change keys and sessions of another user', async t => {
  const web = await startWeb(t)
  const ada = await signedInClient(web)
  const bob = await signedInClient(web, 'bob@example.com')
  await ada.post('/keys', { form_token: await ada.formToken('/keys'), name: 'hers', access: 'all' })
  const id = /\/keys\/([0-9a-f-]{36})"/.exec(await (await ada.get('/keys')).text())![1]!
  const session = /\/sessions\/([0-9a-f-]{36})\/end/.exec(await (await ada.get('/sessions')).text())![1]!
  const form_token = await bob.formToken('/keys')
  assert.equal((await bob.get(`/keys/${id}`)).status, 404)
  assert.equal((await bob.get(`/keys/${id}/revoke`)).status, 404)
  for (const path of [
    `/keys/${id}/revoke`,
    `/keys/${id}/rotate`,
    `/keys/${id}/rename`,
    `/sessions/${session}/end`,
  ]) {
    assert.equal((await bob.post(path, { form_token })).status, 404, path)
  }
  assert.match(await (await ada.get(`/keys/${id}`)).text(), /class="tag active"/)
})

test('no input to a page is answered with 5xx', async t => {
  const web = await startWeb(t, { KEYWAY_FAILURE_LIMITS: '100000/minute' })
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  const id = '0190a5b8-7c3e-7abc-8def-0123456789ab'
  const getPaths = [
    '/keys?cursor=%00&status=%00',
    '/account/balance?cursor=zzz',
    '/keys/%00',
    '/keys/%ff',
    '/inbox/%00',
  ]
  for (const path of [
    ...getPaths,
    '/inbox?to=%00',
    '/verify?token=%00&email=a%40b.c',
    '/keys/..%2f',
    '/%00',
  ]) {
    assert.ok((await client.get(path)).status < 500, path)
  }
  const keyPaths = ['rename', 'rotate', 'revoke'].map(verb => `/keys/${id}/${verb}`)
  const agentPaths = ['/agents/%00/disconnect', `/agents/${id}/test`]
  const otherPaths = [
    '/sessions/x/end',
    `/sessions/${id}/end`,
    '/account/name',
    '/account/charging/%00/grant',
  ]
  const fields = [
    'email',
    'app_id',
    'token',
    'code',
    'login_id',
    'name',
    'access',
    'scope',
    'expiry',
    'again',
  ]
  const rareFields = ['expiry_date', 'own_scopes', 'networks', 'overlap', 'once']
  for (const value of ['\0', '\ud800', 'x'.repeat(300), '’"<', '-1', '1e9', '9999-99-99', 'date', '::/0']) {
    const invalidFields = Object.fromEntries([...fields, ...rareFields].map(name => [name, value]))
    for (const path of [
      '/sign-in',
      '/check-mail',
      '/verify',
      '/keys',
      ...keyPaths,
      ...agentPaths,
      ...otherPaths,
    ]) {
      const answer = await client.post(path, { ...invalidFields, form_token })
      assert.ok(answer.status < 500, `${path} ${JSON.stringify(value)}: ${answer.status}`)
    }
  }
})
