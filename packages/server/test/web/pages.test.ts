import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_APP_SETTINGS } from '../../src/apps/app.ts'
import { ADA, createClient, SAME_ORIGIN, signedInClient, signIn } from '../support/page-client.ts'
import { address, caller } from '../support/services.ts'
import { startWeb } from '../support/web.ts'

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" }

test('signing out ends the session itself, not only the cookie', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const sessionCookie = client.jar.get('keyway_session')!
  const form_token = await client.formToken('/keys')
  assert.equal(
    (await client.post('/sign-out', { form_token })).headers.get('location'),
    '/sign-in?done=signed_out',
  )
  assert.equal(client.jar.has('keyway_session'), false)
  client.jar.set('keyway_session', sessionCookie)
  assert.equal((await client.get('/keys')).status, 303)
})

test('the start page redirects browsers to the keys or the sign-in, and has URLs for programs', async t => {
  const web = await startWeb(t)
  assert.equal((await createClient(web.url).get('/')).headers.get('location'), '/sign-in')
  assert.equal((await (await signedInClient(web)).get('/')).headers.get('location'), '/keys')
  const document = await (await fetch(web.url)).json()
  assert.deepEqual(Object.keys(document as object), [
    'name',
    'version',
    'hub_url',
    'openapi_url',
    'docs_url',
    'inbox_url',
  ])
})

test('a sign-in returns to the page that needed it, such as one that a mail links to, and to no stream or download', async t => {
  const web = await startWeb(t)
  await signedInClient(web)
  for (const [asked, accept, after] of [
    ['/sessions?page=2', 'text/html', '/sessions?page=2'],
    ['/keys', 'text/html', '/keys'],
    ['/account/export', 'text/html', '/keys'],
    ['/sessions', 'text/event-stream', '/keys'],
    [`/sessions?${'x'.repeat(500)}`, 'text/html', '/keys'],
    ['//evil.example/keys', 'text/html', '/keys'],
  ] as const) {
    const client = createClient(web.url)
    await client.get(asked, { accept })
    const { headers } = await signIn(client, web)
    assert.equal(headers.get('location'), after, `${asked} as ${accept}`)
  }
})

test('an unknown path is an error page for browsers and a problem document for programs', async t => {
  const web = await startWeb(t)
  const page = await createClient(web.url).get('/no-such-page')
  assert.equal(page.status, 404)
  assert.match(await page.text(), /<h1>There is nothing here<\/h1>/)
  const problem = await fetch(`${web.url}/no-such-page`)
  assert.equal(problem.status, 404)
  assert.match(((await problem.json()) as { detail: string }).detail, /\/docs/)
  const client = await signedInClient(web)
  for (const path of ['/keys/not-an-id', '/keys/0190a5b8-7c3e-7abc-8def-0123456789ab', '/inbox/x']) {
    assert.equal((await client.get(path)).status, 404, path)
  }
})

test('a sign-in page after too many mails says when to try again', async t => {
  const web = await startWeb(t, { KEYWAY_MAGIC_LINK_LIMITS: '1/minute,20/hour' })
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: ADA })
  const refusal = await client.post('/sign-in', { form_token, email: ADA, again: '1' })
  assert.equal(refusal.status, 429)
  const seconds = Number(refusal.headers.get('retry-after'))
  assert.ok(seconds > 50 && seconds <= 60)
  const text = await refusal.text()
  assert.match(text, new RegExp(`data-countdown="${seconds}"`))
  assert.match(text, /KEYWAY_MAGIC_LINK_LIMITS/)
  const remoteHeaders = { ...SAME_ORIGIN, 'x-forwarded-for': '203.0.113.7' }
  const secondRequest = { form_token: await client.formToken('/sign-in'), email: ADA, again: '1' }
  const remoteAnswer = await client.post('/sign-in', secondRequest, remoteHeaders)
  assert.equal(remoteAnswer.status, 429)
  assert.doesNotMatch(
    await remoteAnswer.text(),
    /KEYWAY_/,
    'settings are named to who runs the service on this machine',
  )
})

test('the inbox answers only this machine', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  assert.equal((await client.get('/inbox')).status, 200)
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
    const headers = { [name]: '203.0.113.7' }
    assert.equal((await client.get('/inbox', headers)).status, 404)
    assert.equal((await client.get('/inbox/events', headers)).status, 404)
  }
  const jsonHeaders = { accept: 'application/json' }
  assert.deepEqual(await (await client.get('/inbox?to=nobody', jsonHeaders)).json(), { data: [] })
  await signedInClient(web)
  const { data } = (await (await client.get(`/inbox?to=${ADA}`, jsonHeaders)).json()) as { data: object[] }
  const fields = ['id', 'to', 'subject', 'template', 'link', 'code', 'text', 'html', 'created_at']
  assert.deepEqual(Object.keys(data[0]!).sort(), fields.sort())
})

test('pages link to the inbox only for clients that may open it, and otherwise name the inbox command', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const remoteHeaders = { 'x-forwarded-for': '203.0.113.7' }
  await client.post('/sign-in', { form_token: await client.formToken('/keys'), email: 'bob@example.com' })
  for (const path of ['/check-mail', '/keys', '/nothing']) {
    assert.match(await (await client.get(path)).text(), /href="\/inbox"/, path)
    assert.doesNotMatch(await (await client.get(path, remoteHeaders)).text(), /href="\/inbox"/, path)
  }
  assert.match(await (await createClient(web.url).get('/sign-in')).text(), /href="\/inbox"/)
  assert.doesNotMatch(await (await createClient(web.url).get('/sign-in', remoteHeaders)).text(), /\/inbox/)
  assert.match(
    await (await client.get('/check-mail', remoteHeaders)).text(),
    /<code>npx keyway inbox<\/code>/,
  )
})

test('a mail is shown in a sandboxed frame without scripts and requests', async t => {
  const web = await startWeb(t)
  await signedInClient(web)
  const [mail] = await web.mails(ADA)
  const client = createClient(web.url)
  assert.match(
    await (await client.get(`/inbox/${mail!.id}`)).text(),
    /<iframe [^>]*sandbox="allow-popups allow-popups-to-escape-sandbox"/,
  )
  const policy = (await client.get(`/inbox/${mail!.id}/html`)).headers.get('content-security-policy')!
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /sandbox allow-popups allow-popups-to-escape-sandbox(;|$)/)
  assert.doesNotMatch(policy, /script|allow-same-origin/)
})

test('the source of a mail is the message as it would be sent, and does not change', async t => {
  const web = await startWeb(t, { KEYWAY_MAIL_FROM: 'Grüße & Co <no-reply@example.com>' })
  const client = createClient(web.url)
  await client.post('/sign-in', { form_token: await client.formToken('/sign-in'), email: ADA })
  const [mail] = await web.mails(ADA)
  const readSource = async () => {
    const page = await (await client.get(`/inbox/${mail!.id}?view=source`)).text()
    const shownSource = /<pre class="source"[^>]*>(.*?)<\/pre>/s.exec(page)![1]!
    return shownSource.replace(/&(lt|gt|quot|amp|#39);/g, (_, name) => ENTITIES[name]!)
  }
  const source = await readSource()
  const head = source.slice(0, source.indexOf('\n\n'))
  for (const header of [
    /^From: =\?UTF-8\?Q\?.+ <no-reply@example\.com>$/m,
    /^To: ada@example\.com$/m,
    new RegExp(`^Message-ID: <${mail!.id}@example\\.com>$`, 'm'),
    /^Subject: .*Grüße|^Subject: =\?UTF-8\?/m,
    /^Date: .+ \+0000$/m,
    /^Auto-Submitted: auto-generated$/m,
    /^MIME-Version: 1\.0$/m,
    /^Content-Type: multipart\/alternative;/m,
  ])
    assert.match(head, header)
  const boundary = /boundary="([^"]+)"/.exec(head)![1]!
  const parts = source.split(`--${boundary}`).slice(1, -1)
  assert.deepEqual(
    parts.map(part => /Content-Type: (\S+);/.exec(part)![1]),
    ['text/plain', 'text/html'],
  )
  const { searchParams } = new URL(mail!.link!)
  for (const part of parts)
    assert.ok(part.replaceAll('=\n', '').includes(`token=3D${searchParams.get('token')}`))
  assert.equal(await readSource(), source)
  assert.equal((await client.get('/inbox/none?view=source')).status, 404)
})

test('the key form shows the limit of creations with the wait, and keeps the typed values', async t => {
  const web = await startWeb(t, { KEYWAY_KEY_CREATION_LIMITS: '1/hour' })
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  assert.equal((await client.post('/keys', { form_token, name: 'One', access: 'all' })).status, 201)
  const [, id] = /href="\/keys\/([0-9a-f-]{36})"/.exec(await (await client.get('/keys')).text())!
  for (const refused of [
    await client.post('/keys', { form_token, name: 'Typed name', access: 'all' }),
    await client.post(`/keys/${id}/rotate`, { form_token, overlap: '0' }),
  ]) {
    assert.equal(refused.status, 429)
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds > 3500 && seconds <= 3600, `${seconds}`)
    const text = await refused.text()
    assert.match(text, /role="alert">Too many keys were made within this hour\. Try again in \d+ seconds\./)
    assert.match(text, /Typed name|One/)
    assert.doesNotMatch(text, /svc_\w{32}/)
  }
})

test('a hundred keys are listed in pages, newest first, each under 60 KB', async t => {
  const web = await startWeb(t, { KEYWAY_KEY_CREATION_LIMITS: '1000/hour' })
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  for (let made = 1; made <= 100; made++) {
    await client.post('/keys', { form_token, name: `Robot ${made}`, access: 'all', expiry: '7' })
  }
  const overLimitResponse = await client.post('/keys', { form_token, name: 'one too many', access: 'all' })
  assert.equal(overLimitResponse.status, 409)
  assert.match(await overLimitResponse.text(), /You have 100 active keys/)

  const assetBytes = await Promise.all(
    ['style.css', 'script.js'].map(
      async name => (await (await client.get(`/assets/${name}`)).arrayBuffer()).byteLength,
    ),
  )
  const names: string[] = []
  let nextPath: string | undefined = '/keys?status=active'
  while (nextPath) {
    const text: string = await (await client.get(nextPath)).text()
    const totalBytes = Buffer.byteLength(text) + assetBytes[0]! + assetBytes[1]!
    assert.ok(totalBytes < 60 * 1024, `${nextPath} weighs ${totalBytes} bytes`)
    names.push(...[...text.matchAll(/class="name" href="[^"]+"><bdi>([^<]+)</g)].map(match => match[1]!))
    nextPath = /<a href="([^"]+)">Older keys/.exec(text)?.[1]?.replaceAll('&amp;', '&')
  }
  assert.deepEqual(
    names,
    Array.from({ length: 100 }, (_, index) => `Robot ${100 - index}`),
  )
})

test('ending all other sessions signs out the other browsers and keeps this one', async t => {
  const web = await startWeb(t)
  const keptBrowser = await signedInClient(web)
  const endedBrowser = createClient(web.url)
  const token = await endedBrowser.formToken('/sign-in')
  await endedBrowser.post('/sign-in', { form_token: token, email: ADA })
  const { searchParams } = new URL((await web.mails(ADA, 2))[0]!.link!)
  await endedBrowser.post('/verify', { form_token: token, token: searchParams.get('token')!, email: ADA })
  assert.equal((await endedBrowser.get('/keys')).status, 200)
  const [, first] = (await (await keptBrowser.get('/sessions')).text()).split('<li class="item">')
  assert.match(first!, /This browser/)

  const sessionsPage = await (await keptBrowser.get('/sessions')).text()
  assert.equal(sessionsPage.match(/\/sessions\/[0-9a-f-]{36}\/end/g)?.length, 2)
  const form_token = await keptBrowser.formToken('/sessions')
  await keptBrowser.post('/sessions/end-others', { form_token })
  assert.equal((await endedBrowser.get('/keys')).headers.get('location'), '/sign-in?done=ended')
  assert.equal((await keptBrowser.get('/keys')).status, 200)
})

test('the sessions page names a client that describes itself under its URL', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const { sessions, storage, clock } = web.server.services
  const id = 'https://editor.example.com/client.json'
  const createdAt = clock.now()
  await storage.store.apps.insert({
    ...DEFAULT_APP_SETTINGS,
    id,
    name: 'Editor',
    firstParty: false,
    createdAt,
    coversFrom: createdAt,
  })
  const user = (await storage.store.users.findByEmail(address(ADA)))!
  const grant = { scopes: ['account:read'], audience: null }
  await storage.transaction(tx =>
    sessions.open(tx, user, sessions.prepareForApp(id, grant, clock.now(), caller())),
  )
  const answer = await client.get('/sessions')
  assert.equal(answer.status, 200)
  assert.match(await answer.text(), />For Editor</)
})

test('the sessions page names the app for which a session was opened, and ends it', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const { apps, sessions, storage, clock } = web.server.services
  await apps.register({ id: 'shop', name: 'Shop' })
  const user = (await storage.store.users.findByEmail(address(ADA)))!
  const grant = { scopes: ['account:read'], audience: null }
  const preparedSession = sessions.prepareForApp('shop', grant, clock.now(), caller())
  const { id } = await storage.transaction(tx => sessions.open(tx, user, preparedSession))
  assert.match(await (await client.get('/sessions')).text(), />For Shop</)
  const form_token = await client.formToken('/sessions')
  await client.post(`/sessions/${id}/end`, { form_token })
  assert.doesNotMatch(await (await client.get('/sessions')).text(), /For Shop/)
  assert.equal((await storage.store.sessions.find(id))?.endedBy, 'revoked')
})

test('the pages of the account withdraw and grant an authorisation to charge, and change the name', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/account')
  await client.post('/account/charging/hub/withdraw', { form_token })
  assert.match(await (await client.get('/account/apps')).text(), /action="\/account\/charging\/hub\/grant"/)
  await client.post('/account/charging/hub/grant', { form_token })
  assert.match(
    await (await client.get('/account/apps')).text(),
    /action="\/account\/charging\/hub\/withdraw"/,
  )
  assert.equal((await client.post('/account/charging/no%00app/grant', { form_token })).status, 404)
  assert.equal((await client.post('/account/charging/unheard-of/grant', { form_token })).status, 404)

  const renameResponse = await client.post('/account/name', { form_token, name: '  Ada\u0000 Lovelace ' })
  const confirmationPage = await (await client.get(renameResponse.headers.get('location')!)).text()
  assert.match(confirmationPage, /role="status">Your name was changed\./)
  assert.match(await (await client.get('/account')).text(), /value="Ada {2}Lovelace"/)
})

test('a link requested for an app opens the verify page of that app', async t => {
  const web = await startWeb(t)
  const { apps } = web.server.services
  await apps.register({
    id: 'shop',
    name: 'Shop',
    audience: null,
    verifyUrl: 'https://shop.example/in?from=mail',
  })
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in?app_id=shop')
  await client.post('/sign-in', { form_token, email: ADA, app_id: 'shop' })
  const [mail] = await web.mails(ADA)
  assert.match(
    mail!.link!,
    /^https:\/\/shop\.example\/in\?from=mail&token=[\w-]{43}&email=ada%40example\.com&app_id=shop$/,
  )
})
