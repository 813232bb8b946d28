import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { authorizePath, newVerifier, registerShop } from '../support/authorize.ts'
import { freshPostgres, startNode } from '../support/nodes.ts'
import { ADA, createClient, SAME_ORIGIN, signedInClient } from '../support/page-client.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { startWeb, type WebServer } from '../support/web.ts'

const GERMAN_HEADERS = { 'accept-language': 'de-AT,de;q=0.9,en;q=0.1' }

test('a page is in the language that the browser asks for, and in English if there is none', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  for (const [header, lang, heading] of [
    [GERMAN_HEADERS['accept-language'], 'de', 'Bei Keyway anmelden'],
    ['en-GB', 'en', 'Sign in to Keyway'],
    ['fi', 'en', 'Sign in to Keyway'],
  ]) {
    const text = await (await client.get('/sign-in', { 'accept-language': header! })).text()
    assert.match(text, new RegExp(`<html lang="${lang}" dir="ltr">`))
    assert.match(text, new RegExp(`<h1>${heading}</h1>`))
  }
  const missingPage = await client.get('/nowhere', GERMAN_HEADERS)
  assert.equal(missingPage.status, 404)
  assert.match(await missingPage.text(), /<h1>Hier ist nichts<\/h1>/)
})

test('a refusal is shown in the language of the page, with the reason in English', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const refusal = await client.get(`/oauth/authorize?client_id=nobody`, GERMAN_HEADERS)
  assert.equal(refusal.status, 400)
  assert.match(await refusal.text(), /<h1>Diese Anmeldung kann nicht fortgesetzt werden<\/h1>/)
  const page = await client.post(
    '/sign-in',
    { filler: 'x'.repeat(40_000) },
    { ...SAME_ORIGIN, ...GERMAN_HEADERS, accept: 'text/html' },
  )
  assert.equal(page.status, 413)
  assert.match(await page.text(), /Es wurde nichts geändert. Der Grund:<\/p><p lang="en" dir="ltr">[A-Z]/)
})

test('live updates of a page are in its language', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const controller = new AbortController()
  t.after(() => controller.abort())
  await web.server.services.users.setLocale(await userIdOf(web), 'de')
  const cookie = [...client.jar].map(pair => pair.join('=')).join('; ')
  const answer = await fetch(`${web.url}/agents/events`, { headers: { cookie }, signal: controller.signal })
  const { value } = await answer.body!.getReader().read()
  assert.match(Buffer.from(value!).toString(), /Kein Agent ist verbunden/)
})

async function userIdOf(web: WebServer): Promise<string> {
  const { storage } = web.server.services
  return (await storage.store.users.findByEmail(parseEmailAddress(ADA)!))!.id
}

test('a page may not be kept by caches, since its language depends on the browser', async t => {
  const web = await startWeb(t)
  const answer = await createClient(web.url).get('/sign-in', GERMAN_HEADERS)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
})

test('the language is chosen in the foot of a page without scripts, and kept in this browser', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const signIn = await (await client.get('/sign-in?app_id=console')).text()
  const [, path = ''] = /<a href="(\/language[^"]*)">Language: English<\/a>/.exec(signIn) ?? []
  const page = await (await client.get(path)).text()
  assert.match(
    page,
    /<button class="second" name="language" value="de" lang="de" dir="ltr">Deutsch<\/button>/,
  )
  assert.match(page, /value="en" lang="en" dir="ltr" aria-current="true">English<\/button>/)
  const token = /name="form_token" value="([^"]+)"/.exec(page)![1]!
  const [, return_to = ''] = /name="return_to" value="([^"]+)"/.exec(page)!
  const fields = { form_token: token, return_to }
  const languageResponse = await client.post('/language', { ...fields, language: 'de' })
  assert.equal(languageResponse.status, 303)
  assert.equal(languageResponse.headers.get('location'), '/sign-in?app_id=console')
  assert.match(client.cookieAttributes.get('keyway_language')!, /HttpOnly.*SameSite=Lax/i)
  const englishHeaders = { 'accept-language': 'en' }
  assert.match(await (await client.get('/sign-in', englishHeaders)).text(), /Bei Keyway anmelden/)
  for (const language of ['', 'xx', '__proto__', 'toString']) {
    const answer = await client.post('/language', { ...fields, return_to: '//evil.test', language })
    assert.equal(answer.headers.get('location'), '/')
    assert.match(await (await client.get('/sign-in', englishHeaders)).text(), /Bei Keyway anmelden/)
  }
  const crossSiteResponse = await client.post(
    '/language',
    { ...fields, language: 'en' },
    { 'sec-fetch-site': 'cross-site' },
  )
  assert.equal(crossSiteResponse.status, 403)
})

test('the language of a person is chosen in the account and read on every node', async t => {
  const smtp = await startSmtpServer(t, { startTls: false })
  const settings = {
    KEYWAY_DATABASE_URL: await freshPostgres(t),
    KEYWAY_PUBLIC_URL: 'https://keyway.test',
    KEYWAY_MAIL_URL: `smtp://127.0.0.1:${smtp.port}?tls=off`,
    KEYWAY_SUPPORT_EMAIL: 'help@keyway.test',
  }
  const [first, second] = [await startNode(t, settings), await startNode(t, settings)]
  const client = createClient(first.origin)
  const token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token: token, email: ADA }, { ...SAME_ORIGIN, ...GERMAN_HEADERS })
  await smtp.received(1)
  await client.post('/verify', { form_token: token, email: ADA, token: tokenIn(smtp.mails[0]!.text) })
  const secondNodeClient = createClient(second.origin)
  const session = [...client.jar].filter(([name]) => name.endsWith('keyway_session'))
  for (const [name, value] of session) secondNodeClient.jar.set(name, value)
  const shownLanguage = async () =>
    /<html lang="([^"]+)"/.exec(await (await secondNodeClient.get('/account')).text())?.[1]
  assert.equal(await shownLanguage(), 'de', 'a new account has the language of its sign-in')
  const accountPage = await (await client.get('/account')).text()
  assert.match(accountPage, /<option value="de" lang="de" selected>Deutsch<\/option>/)
  await client.post('/language', { form_token: await client.formToken('/account'), language: 'en' })
  assert.equal(await shownLanguage(), 'en')
  assert.match(await (await secondNodeClient.get('/account', GERMAN_HEADERS)).text(), /<h1>Account<\/h1>/)
})

test('pages of administrators are in English', async t => {
  const web = await startWeb(t, { KEYWAY_ADMIN_EMAILS: ADA })
  const client = await signedInClient(web)
  for (const path of ['/admin', '/admin/users']) {
    const page = await (await client.get(path, GERMAN_HEADERS)).text()
    assert.match(page, /<html lang="en" dir="ltr">/)
    assert.doesNotMatch(page, /"\/language/)
  }
})

test('an app asks for the language of a sign-in to it', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const answer = await client.get('/oauth/authorize?client_id=nobody&ui_locales=fi+de-AT+en')
  assert.match(await answer.text(), /<html lang="de"/)
  assert.match(await (await client.get('/sign-in')).text(), /Bei Keyway anmelden/)
  const tooManyTagsResponse = await createClient(web.url).get(
    `/oauth/authorize?client_id=nobody&ui_locales=${'fi+'.repeat(20)}de`,
  )
  assert.match(await tooManyTagsResponse.text(), /<html lang="en"/)
})

test('an app asks for it in a pushed request too, and where it signs a person out', async t => {
  const web = await startWeb(t)
  const secret = await registerShop(web)
  const requestUrl = new URL(authorizePath(newVerifier().challenge, { ui_locales: 'fi de-AT en' }), web.url)
  const authorization = `Basic ${Buffer.from(`shop:${secret}`).toString('base64')}`
  const pushResponse = await fetch(`${web.url}/oauth/par`, {
    method: 'POST',
    headers: { authorization },
    body: requestUrl.searchParams,
  })
  const { request_uri } = (await pushResponse.json()) as { request_uri: string }
  const query = new URLSearchParams({ client_id: 'shop', request_uri, ui_locales: 'fr' })
  const client = createClient(web.url)
  await client.get(`/oauth/authorize?${query}`)
  assert.match(await (await client.get('/sign-in')).text(), /Bei Keyway anmelden/, 'what was pushed counts')

  const logoutPage = await createClient(web.url).get('/oauth/logout?post_logout_redirect_uri=x&ui_locales=fr')
  assert.match(await logoutPage.text(), /<html lang="fr"/)
  const discovery = await fetch(`${web.url}/.well-known/openid-configuration`)
  const { ui_locales_supported } = (await discovery.json()) as { ui_locales_supported: string[] }
  assert.ok(['en', 'de', 'ar'].every(tag => ui_locales_supported.includes(tag)))
})

test('a mail by SMTP is in the chosen language of the person, else the one that was asked for', async t => {
  const smtp = await startSmtpServer(t, { startTls: false })
  const web = await startWeb(t, {
    KEYWAY_MAIL_URL: `smtp://127.0.0.1:${smtp.port}?tls=off`,
    KEYWAY_MAIL_FROM: 'Grüße <no-reply@keyway.test>',
    KEYWAY_SUPPORT_EMAIL: 'help@keyway.test',
  })
  const requestLink = (body: object, headers: Record<string, string> = {}) =>
    fetch(`${web.url}/auth/send-magic-link`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ email: ADA, ...body }),
    })
  const mailOfRequest = async (...asked: Parameters<typeof requestLink>) => {
    const mailCountBefore = smtp.mails.length
    assert.equal((await requestLink(...asked)).status, 200)
    await smtp.received(mailCountBefore + 1)
    return smtp.mails[mailCountBefore]!
  }
  const germanMail = await mailOfRequest({ locale: 'DE-at' })
  const [subject] = germanMail.headers.get('subject')!
  assert.match(subject!, /^[\x20-\x7e]+$/, 'a header is ASCII')
  assert.match(decodeHeader(subject!), /^Legen Sie Ihr Konto bei Grüße an \(\d\d:\d\d:\d\d UTC, \w\w\)$/)
  assert.match(germanMail.html, /<html lang="de" dir="ltr">/)
  const collapsedText = germanMail.text.replace(/\s+/g, ' ')
  for (const needed of ['laufen in 5 Minuten ab', 'können Sie diese E-Mail ignorieren', 'help@keyway.test'])
    assert.ok(collapsedText.includes(needed), needed)

  assert.match((await mailOfRequest({}, GERMAN_HEADERS)).html, /lang="de"/, 'as the browser asks')
  assert.match(
    (await mailOfRequest({ locale: 'fi' }, GERMAN_HEADERS)).html,
    /lang="en"/,
    'there is no Finnish',
  )
  for (const malformed of ['de_AT', '', 5, 'x'.repeat(100)]) {
    const refusal = await requestLink({ locale: malformed })
    assert.equal(refusal.status, 400)
    assert.deepEqual(((await refusal.json()) as { errors: { field: string }[] }).errors[0]!.field, 'locale')
  }

  const { services } = web.server
  const email = parseEmailAddress(ADA)!
  const mailCountBefore = smtp.mails.length
  const { user } = await services.magicLinks.verify({ token: tokenIn(germanMail.text), email }, 'api', CALLER)
  assert.equal(user.locale, 'de-AT')
  await smtp.received(mailCountBefore + 1)
  assert.match(smtp.mails[mailCountBefore]!.html, /Willkommen bei Grüße/)
  assert.match((await mailOfRequest({ locale: 'en' })).html, /lang="de"/, 'what the person chose comes first')
  await services.users.setLocale(user.id, null)
  assert.match((await mailOfRequest({ locale: 'en' })).html, /lang="en"/)
})

test('the API reads and changes the language of an account', async t => {
  const web = await startWeb(t)
  const { services } = web.server
  const email = parseEmailAddress(ADA)!
  await services.magicLinks.send({ email, appId: 'console' }, CALLER)
  const [mail] = await web.mails(ADA)
  const token = new URL(mail!.link!).searchParams.get('token')!
  const { tokens } = await services.magicLinks.verify({ token, email }, 'api', CALLER)
  const localeOfAccount = async (change?: object) => {
    const answer = await fetch(`${web.url}/v1/me`, {
      headers: { authorization: `Bearer ${tokens.accessToken}`, 'content-type': 'application/json' },
      ...(change && { method: 'PATCH', body: JSON.stringify(change) }),
    })
    const { user } = (await answer.json()) as { user?: { locale: string | null; name: string | null } }
    return user ? user.locale : answer.status
  }
  assert.equal(await localeOfAccount(), null)
  assert.equal(await localeOfAccount({ locale: 'pt-br' }), 'pt-BR')
  assert.equal(await localeOfAccount({ name: 'Ada' }), 'pt-BR')
  assert.equal(await localeOfAccount({ locale: 'deutsch!' }), 400)
  assert.equal(await localeOfAccount({ locale: '' }), null)
})

const CALLER = { address: '127.0.0.1', network: '127.0.0.1', client: null }

function tokenIn(text: string): string {
  return /[?&]token=([\w-]{43})/.exec(text)![1]!
}

/** Decodes the encoded words (RFC 2047) of a header. */
function decodeHeader(header: string): string {
  return header
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([qb])\?([^?]*)\?=/gi, (_, encoding: string, text: string) =>
      encoding.toLowerCase() === 'b'
        ? Buffer.from(text, 'base64').toString()
        : decodeURIComponent(text.replaceAll('_', ' ').replaceAll('%', '%25').replaceAll('=', '%')),
    )
}
