import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWeb, type WebServer } from '../support/web.ts'

/** A browser by hand: keeps cookies, and says of itself only what it is told to. */
function createClient(url: string) {
  const jar = new Map<string, string>()
  const attributes = new Map<string, string>()
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: 'text/html', ...(cookie ? { cookie } : {}), ...init.headers }
    const answer = await fetch(url + path, { redirect: 'manual', ...init, headers })
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      attributes.set(name, line.slice(pair.length))
      if (value && !/max-age=0/i.test(line)) jar.set(name, value)
      else jar.delete(name)
    }
    return answer
  }
  return {
    jar,
    attributes,
    get: (path: string, headers: Record<string, string> = {}) => send(path, { headers }),
    async formToken(path: string): Promise<string> {
      return /name="form_token" value="([^"]+)"/.exec(await (await send(path)).text())![1]!
    },
    post: (path: string, fields: Record<string, string>, headers: Record<string, string> = SAME_ORIGIN) =>
      send(path, { method: 'POST', body: new URLSearchParams(fields), headers }),
  }
}

const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }
const ADA = 'ada@example.com'
type Client = ReturnType<typeof createClient>

async function signedIn(web: WebServer, email = ADA): Promise<Client> {
  const client = createClient(web.url)
  const token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token: token, email })
  const [mail] = await web.mails(email)
  const { searchParams } = new URL(mail!.link!)
  const answer = await client.post('/verify', { form_token: token, token: searchParams.get('token')!, email })
  assert.equal(answer.status, 303)
  return client
}

test('a form is taken from this origin with its token, and from nowhere else', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  const wanted = { form_token, email: ADA }
  const foreign = await createClient(web.url).formToken('/sign-in')

  for (const [fields, headers] of [
    [wanted, { 'sec-fetch-site': 'cross-site' }],
    [wanted, { 'sec-fetch-site': 'same-site' }],
    [wanted, { 'sec-fetch-site': 'none' }],
    [wanted, { 'sec-fetch-site': 'cross-site', origin: web.url }],
    [wanted, { origin: 'https://evil.example' }],
    [wanted, { origin: 'null' }],
    [wanted, {}],
    [{ email: ADA }, SAME_ORIGIN],
    [{ email: ADA, form_token: 'x' }, SAME_ORIGIN],
    [{ email: ADA, form_token: foreign }, SAME_ORIGIN],
  ] as [Record<string, string>, Record<string, string>][]) {
    const refused = await client.post('/sign-in', fields, headers)
    assert.equal(refused.status, 403, JSON.stringify([fields, headers]))
    assert.equal(client.jar.has('keyway_asked'), false)
  }
  assert.equal((await web.mails(ADA, 0)).length, 0)

  assert.equal((await client.post('/sign-in', wanted)).status, 303)
  assert.equal((await client.post('/sign-in', wanted, { origin: web.url })).status, 303)
})

test('every form that changes something asks for its token', async t => {
  const web = await startWeb(t)
  const client = await signedIn(web)
  const id = '0190a5b8-7c3e-7abc-8def-0123456789ab'
  const paths = ['/verify', '/check-mail', '/keys', '/sign-out', '/sessions/end-others', '/account/name']
  const withId = ['rename', 'rotate', 'revoke'].map(verb => `/keys/${id}/${verb}`)
  const rest = [`/sessions/${id}/end`, `/agents/${id}/test`, `/agents/${id}/disconnect`]
  for (const path of [...paths, ...withId, ...rest, '/account/charging/hub/withdraw']) {
    assert.equal((await client.post(path, {})).status, 403, path)
  }
  assert.equal((await client.get('/keys')).status, 200)
})

test('what is no small form is refused with a page', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  const big = await client.post('/sign-in', { form_token, email: 'a'.repeat(20_000) })
  assert.equal(big.status, 413)
  const json = await fetch(`${web.url}/sign-in`, {
    method: 'POST',
    headers: { ...SAME_ORIGIN, 'content-type': 'text/plain' },
    body: 'email=ada@example.com',
  })
  assert.equal(json.status, 415)
  assert.match(json.headers.get('content-type')!, /^text\/html/)
})

test('the session cookie opens pages alone, never the API', async t => {
  const web = await startWeb(t)
  const client = await signedIn(web)
  const cookie = client.jar.get('keyway_session')!
  assert.match(client.attributes.get('keyway_session')!, /Max-Age=7776000; Path=\/; HttpOnly; SameSite=Lax/)

  assert.equal((await client.get('/keys')).status, 200)
  assert.equal((await client.get('/v1/me')).status, 401)
  assert.equal((await client.get('/v1/me', { authorization: `Bearer ${cookie}` })).status, 401)
  const refresh = await fetch(`${web.url}/auth/refresh`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: cookie }),
  })
  assert.equal(refresh.status, 401)
  const tampered = createClient(web.url)
  tampered.jar.set('keyway_session', `${cookie.slice(0, -2)}AA`)
  assert.equal((await tampered.get('/keys')).headers.get('location'), '/sign-in?done=ended')
})

test('over https the cookies are tied to their host', async t => {
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
  assert.match(text, /Sign in to Example Works/)
  assert.doesNotMatch(text, /Keyway<|inbox/)
  assert.equal((await client.get('/inbox')).status, 404)
})

test('signing out ends the session itself, not only the cookie', async t => {
  const web = await startWeb(t)
  const client = await signedIn(web)
  const kept = client.jar.get('keyway_session')!
  const form_token = await client.formToken('/keys')
  assert.equal(
    (await client.post('/sign-out', { form_token })).headers.get('location'),
    '/sign-in?done=signed_out',
  )
  assert.equal(client.jar.has('keyway_session'), false)
  client.jar.set('keyway_session', kept)
  assert.equal((await client.get('/keys')).status, 303)
})

test('the start page leads browsers to where they belong and tells programs what is here', async t => {
  const web = await startWeb(t)
  assert.equal((await createClient(web.url).get('/')).headers.get('location'), '/sign-in')
  assert.equal((await (await signedIn(web)).get('/')).headers.get('location'), '/keys')
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

test('an address that nobody knows is a page for browsers and a problem for programs', async t => {
  const web = await startWeb(t)
  const page = await createClient(web.url).get('/no-such-page')
  assert.equal(page.status, 404)
  assert.match(await page.text(), /<h1>There is nothing here<\/h1>/)
  const problem = await fetch(`${web.url}/no-such-page`)
  assert.equal(problem.status, 404)
  assert.match(((await problem.json()) as { detail: string }).detail, /\/docs/)
  const client = await signedIn(web)
  for (const path of ['/keys/not-an-id', '/keys/0190a5b8-7c3e-7abc-8def-0123456789ab', '/inbox/x']) {
    assert.equal((await client.get(path)).status, 404, path)
  }
})

test('pages are strict about what a browser may do with them', async t => {
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

test('the page asks nothing of the mail limits and says when one may try again', async t => {
  const web = await startWeb(t, { KEYWAY_MAGIC_LINK_LIMITS: '1/minute,20/hour' })
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: ADA })
  const refused = await client.post('/sign-in', { form_token, email: ADA, again: '1' })
  assert.equal(refused.status, 429)
  const seconds = Number(refused.headers.get('retry-after'))
  assert.ok(seconds > 50 && seconds <= 60)
  const text = await refused.text()
  assert.match(text, new RegExp(`data-countdown="${seconds}"`))
  assert.match(text, /KEYWAY_MAGIC_LINK_LIMITS/)
})

test('guessing at links and codes on the pages is slowed down as in the API, with one count', async t => {
  const web = await startWeb(t, { KEYWAY_FAILURE_LIMITS: '2/minute' })
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: ADA })
  const guess = { form_token, token: 'x'.repeat(43), email: ADA }
  assert.equal((await client.post('/verify', guess)).status, 400)
  const api = await fetch(`${web.url}/auth/verify-magic-link`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: 'x'.repeat(43), email: ADA }),
  })
  assert.equal(api.status, 400)
  const slowed = await client.post('/verify', guess)
  assert.equal(slowed.status, 429)
  assert.ok(Number(slowed.headers.get('retry-after')) > 0)

  const login_id = /name="login_id" value="([^"]+)"/.exec(await (await client.get('/check-mail')).text())![1]!
  const wrong = await client.post('/check-mail', { form_token, login_id, code: '00000000' })
  assert.equal(wrong.status, 429)
})

test('a code works only in the browser that asked, and a wrong one says so', async t => {
  const web = await startWeb(t)
  const asker = createClient(web.url)
  const form_token = await asker.formToken('/sign-in')
  await asker.post('/sign-in', { form_token, email: ADA })
  const [mail] = await web.mails(ADA)
  const login_id = /name="login_id" value="([^"]+)"/.exec(await (await asker.get('/check-mail')).text())![1]!

  const thief = createClient(web.url)
  const stolen = { form_token: await thief.formToken('/sign-in'), login_id, code: mail!.code! }
  assert.equal((await thief.post('/check-mail', stolen)).headers.get('location'), '/sign-in')
  thief.jar.set('keyway_asked', `${asker.jar.get('keyway_asked')!.slice(0, -3)}AAA`)
  assert.equal((await thief.post('/check-mail', stolen)).headers.get('location'), '/sign-in')

  const wrong = mail!.code === '00000000' ? '11111111' : '00000000'
  const refused = await asker.post('/check-mail', { form_token, login_id, code: wrong })
  assert.equal(refused.status, 400)
  assert.match(await refused.text(), /That code is not right/)
  const spaced = `${mail!.code!.slice(0, 4)} ${mail!.code!.slice(4)}`
  const entered = await asker.post('/check-mail', { form_token, login_id, code: spaced })
  assert.equal(entered.headers.get('location'), '/keys?done=welcome')
})

test('what people type comes back as text, never as markup', async t => {
  const web = await startWeb(t)
  const client = await signedIn(web)
  const form_token = await client.formToken('/keys')
  const name = '"><script>alert(1)</script>&'
  const created = await client.post('/keys', { form_token, name, access: 'all', expiry: 'never' })
  assert.equal(created.status, 201)
  assert.equal(created.headers.get('referrer-policy'), 'no-referrer')
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

test('one person never sees or touches the keys and sessions of another', async t => {
  const web = await startWeb(t)
  const ada = await signedIn(web)
  const bob = await signedIn(web, 'bob@example.com')
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

test('the inbox answers to this machine alone', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  assert.equal((await client.get('/inbox')).status, 200)
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
    const headers = { [name]: '203.0.113.7' }
    assert.equal((await client.get('/inbox', headers)).status, 404)
    assert.equal((await client.get('/inbox/events', headers)).status, 404)
  }
  const json = { accept: 'application/json' }
  assert.deepEqual(await (await client.get('/inbox?to=nobody', json)).json(), { data: [] })
  await signedIn(web)
  const { data } = (await (await client.get(`/inbox?to=${ADA}`, json)).json()) as { data: object[] }
  const fields = ['id', 'to', 'subject', 'template', 'link', 'code', 'text', 'html', 'created_at']
  assert.deepEqual(Object.keys(data[0]!).sort(), fields.sort())
})

test('a mail is shown in a frame that can run and send nothing', async t => {
  const web = await startWeb(t)
  await signedIn(web)
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

test('a hundred keys are leafed through, newest first, each page under 60 KB in all', async t => {
  const web = await startWeb(t)
  const client = await signedIn(web)
  const form_token = await client.formToken('/keys')
  for (let made = 1; made <= 100; made++) {
    await client.post('/keys', { form_token, name: `Robot ${made}`, access: 'all', expiry: '7' })
  }
  const full = await client.post('/keys', { form_token, name: 'one too many', access: 'all' })
  assert.equal(full.status, 409)
  assert.match(await full.text(), /You have 100 active keys/)

  const assets = await Promise.all(
    ['style.css', 'script.js'].map(
      async name => (await (await client.get(`/assets/${name}`)).arrayBuffer()).byteLength,
    ),
  )
  const names: string[] = []
  let next: string | undefined = '/keys?status=active'
  while (next) {
    const text: string = await (await client.get(next)).text()
    const total = Buffer.byteLength(text) + assets[0]! + assets[1]!
    assert.ok(total < 60 * 1024, `${next} weighs ${total} bytes`)
    names.push(...[...text.matchAll(/class="name" href="[^"]+">([^<]+)</g)].map(match => match[1]!))
    next = /<a href="([^"]+)">Older keys/.exec(text)?.[1]?.replaceAll('&amp;', '&')
  }
  assert.deepEqual(
    names,
    Array.from({ length: 100 }, (_, index) => `Robot ${100 - index}`),
  )
})
