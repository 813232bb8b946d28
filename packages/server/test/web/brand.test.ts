import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { sharedBrowser } from '../support/browser.ts'
import { pngOf, svgOf } from '../support/images.ts'
import { ADA, createClient, SAME_ORIGIN, signedInClient } from '../support/page-client.ts'
import { address, caller } from '../support/services.ts'
import { newPerson, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

function brandFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-brand-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'logo.svg'), svgOf())
  writeFileSync(join(folder, 'logo-dark.svg'), svgOf('<rect width="40" height="10" fill="#fbb"/>'))
  writeFileSync(join(folder, 'logo.png'), pngOf(120, 40))
  writeFileSync(join(folder, 'mark.png'), pngOf(64, 64))
  return folder
}

/** Requests a URL without decoding the body, since fetch would decode it and hide its coding. */
function getRaw(url: string, headers: Record<string, string>) {
  return new Promise<{ status: number; headers: Record<string, string>; body: Buffer }>((resolve, reject) => {
    request(url, { headers }, answer => {
      const parts: Buffer[] = []
      answer.on('data', part => parts.push(part))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode!,
          headers: answer.headers as Record<string, string>,
          body: Buffer.concat(parts),
        }),
      )
    })
      .on('error', reject)
      .end()
  })
}

test('the logo, the icons, the colours and the links of the operator are on every page', async t => {
  const folder = brandFolder(t)
  const web = await startWeb(t, {
    KEYWAY_LOGO: join(folder, 'logo.svg'),
    KEYWAY_LOGO_DARK: join(folder, 'logo-dark.svg'),
    KEYWAY_ACCENT_COLOR: '#0b6b50',
    KEYWAY_TERMS_URL: 'https://example.com/terms',
    KEYWAY_PRIVACY_URL: 'https://example.com/privacy',
    KEYWAY_SUPPORT_URL: 'https://example.com/help',
    KEYWAY_MAIL_FROM: 'Acme <no-reply@localhost>',
  })
  const client = await signedInClient(web)
  for (const [who, path] of [
    [createClient(web.url), '/sign-in'],
    [client, '/keys'],
    [client, '/nowhere'],
  ] as const) {
    const text = await (await who.get(path)).text()
    assert.match(
      text,
      /<source srcset="\/assets\/logo-dark\.svg\?v=[\w-]{10}" media="\(prefers-color-scheme: dark\)">/,
    )
    assert.match(
      text,
      /<img class="logo" src="\/assets\/logo\.svg\?v=[\w-]{10}" width="40" height="10" alt="Acme">/,
    )
    for (const page of ['terms', 'privacy', 'help'])
      assert.match(text, new RegExp(`href="https://example.com/${page}"`))
    assert.match(
      text,
      /<meta name="theme-color" content="#[0-9a-f]{6}" media="\(prefers-color-scheme: dark\)">/,
    )
  }
  const page = await (await client.get('/keys')).text()
  const styleSheet = await (await client.get(/href="(\/assets\/style\.css[^"]+)"/.exec(page)![1]!)).text()
  assert.match(styleSheet, /--accent: light-dark\(#0b6b50, #[0-9a-f]{6}\)/)
  const touchIcon = await client.get(/rel="apple-touch-icon" href="([^"]+)"/.exec(page)![1]!)
  assert.equal(touchIcon.headers.get('content-type'), 'image/png')
  const bytes = Buffer.from(await touchIcon.arrayBuffer())
  assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], [180, 180])
})

test("the operator's SVG is served as an image that can run and load nothing", async t => {
  const web = await startWeb(t, { KEYWAY_LOGO: join(brandFolder(t), 'logo.svg') })
  const { headers } = await fetch(`${web.url}/assets/logo.svg`)
  assert.equal(headers.get('content-type'), 'image/svg+xml')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  const policy = headers.get('content-security-policy')!
  assert.match(policy, /^default-src 'none'; .*sandbox$/)
  assert.doesNotMatch(policy, /script|http/)
})

test('mails have the colours, the links and a PNG logo of the operator, and show them in the local inbox', async t => {
  const web = await startWeb(t, {
    KEYWAY_LOGO: join(brandFolder(t), 'logo.png'),
    KEYWAY_ACCENT_COLOR: '#0b6b50',
    KEYWAY_TERMS_URL: 'https://example.com/terms',
    KEYWAY_MAIL_FROM: 'Acme <no-reply@localhost>',
  })
  const client = createClient(web.url)
  await client.post('/sign-in', { form_token: await client.formToken('/sign-in'), email: ADA })
  const [mail] = await web.mails(ADA)
  const mailFrame = await client.get(`/inbox/${mail!.id}/html`)
  const html = await mailFrame.text()
  const [image] = /<img [^>]*>/.exec(html)!
  assert.match(
    image,
    new RegExp(`src="${web.url}/assets/logo\\.png\\?v=[\\w-]{10}" width="96" height="32" alt="Acme"`),
  )
  assert.equal(
    (await fetch(/src="([^"]+)"/.exec(image)![1]!)).headers.get('cross-origin-resource-policy'),
    'cross-origin',
  )
  assert.match(html, /background-color:#0b6b50/)
  assert.match(html, /href="https:\/\/example\.com\/terms"/)
  assert.doesNotMatch(html, /3a4fcb/)
  assert.match(mailFrame.headers.get('content-security-policy')!, new RegExp(`img-src ${web.url}/assets/`))
  const { data } = (await (await client.get(`/inbox?to=${ADA}`, { accept: 'application/json' })).json()) as {
    data: { text: string }[]
  }
  assert.match(data[0]!.text, /\nTerms: https:\/\/example\.com\/terms\n/)
})

test('the names that the operator gives the first-party apps are those that people see', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const { apps, sessions, storage, clock } = web.server.services
  await apps.change('console', { name: 'Acme Console' })
  const user = (await storage.store.users.findByEmail(address(ADA)))!
  const grant = { scopes: ['account:read'], audience: null }
  const preparedSession = sessions.prepareForApp('console', grant, clock.now(), caller())
  await storage.transaction(tx => sessions.open(tx, user, preparedSession))
  assert.match(await (await client.get('/account/apps')).text(), /Acme Console/)
  assert.match(await (await client.get('/sessions')).text(), />For Acme Console</)
})

test('a chosen theme comes with the first byte of the next page, without scripts, and leads back', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const firstPage = await (await client.get('/sign-in?app_id=console&done=ended')).text()
  assert.match(firstPage, /<html lang="en" dir="ltr">/)
  assert.match(firstPage, /name="return_to" value="\/sign-in\?app_id=console"/)
  const form_token = await client.formToken('/sign-in')
  const themeResponse = await client.post('/theme', {
    form_token,
    theme: 'dark',
    return_to: '/sign-in?app_id=console',
  })
  assert.equal(themeResponse.status, 303)
  assert.equal(themeResponse.headers.get('location'), '/sign-in?app_id=console')
  const darkPage = await (await client.get('/sign-in')).text()
  assert.match(darkPage, /<html lang="en" dir="ltr" data-theme="dark">/)
  assert.match(darkPage, /<meta name="color-scheme" content="dark">/)
  assert.match(darkPage, /value="dark" aria-pressed="true"/)
  await client.post('/theme', { form_token, theme: 'system', return_to: '/sign-in' })
  assert.equal(client.jar.has('keyway_theme'), false)
})

test('a theme form leads nowhere else, and is refused from other sites and without its token', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  for (const return_to of [
    '//evil.example',
    '/\\evil.example',
    '/.//evil.example',
    'https://evil.example',
    'x',
    '',
  ])
    assert.equal(
      (await client.post('/theme', { form_token, theme: 'dark', return_to })).headers.get('location'),
      '/',
      return_to,
    )
  const fields = { form_token, theme: 'light', return_to: '/sign-in' }
  assert.equal((await client.post('/theme', fields, { 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.equal((await client.post('/theme', { ...fields, form_token: 'x' }, SAME_ORIGIN)).status, 403)
})

test("a page's colours follow the chosen theme whatever the system says", async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, { colorScheme: 'light', javaScriptEnabled: false })
  const backgroundColor = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
  await page.goto(`${web.url}/sign-in`)
  const lightBackground = await backgroundColor()
  await page.getByRole('button', { name: 'Dark', exact: true }).click()
  await page.waitForURL(`${web.url}/sign-in`)
  const darkBackground = await backgroundColor()
  assert.notEqual(darkBackground, lightBackground)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.getByRole('button', { name: 'Light', exact: true }).click()
  await page.waitForURL(`${web.url}/sign-in`)
  assert.equal(await backgroundColor(), lightBackground)
})

test('what is static is compressed as the client asks, with a tag for each coding', async t => {
  const web = await startWeb(t)
  const url = `${web.url}/assets/style.css`
  const uncompressed = await getRaw(url, {})
  assert.equal(uncompressed.headers['content-encoding'], undefined)
  const tags = new Set([uncompressed.headers.etag])
  for (const [accepted, coding, decode] of [
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['gzip;q=1.0, br;q=0.5', 'gzip', gunzipSync],
    ['br;q=0, *', 'gzip', gunzipSync],
    ['identity, gzip;q=0', undefined, (body: Buffer) => body],
  ] as const) {
    const answer = await getRaw(url, { 'accept-encoding': accepted })
    assert.equal(answer.headers['content-encoding'], coding, accepted)
    assert.equal(answer.headers.vary, 'Accept-Encoding')
    assert.ok(decode(answer.body).equals(uncompressed.body), accepted)
    if (coding) assert.ok(answer.body.length < uncompressed.body.length / 3)
    tags.add(answer.headers.etag)
    const notModifiedAnswer = await getRaw(url, {
      'accept-encoding': accepted,
      'if-none-match': `"x", W/${answer.headers.etag}`,
    })
    assert.equal(notModifiedAnswer.status, 304)
    assert.equal(notModifiedAnswer.body.length, 0)
    assert.equal(notModifiedAnswer.headers.etag, answer.headers.etag)
  }
  assert.equal(tags.size, 3)
  assert.equal(
    (await getRaw(`${web.url}/openapi.json`, { 'accept-encoding': 'br' })).headers['content-encoding'],
    'br',
  )
})

test('nothing with a secret is compressed: no page, and no answer of the API', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const cookie = [...client.jar].map(([name, value]) => `${name}=${value}`).join('; ')
  for (const path of [
    '/keys',
    '/sign-in',
    '/keys/new',
    '/account',
    '/inbox',
    '/nowhere',
    '/.well-known/jwks.json',
  ]) {
    const { headers } = await getRaw(web.url + path, {
      accept: 'text/html',
      cookie,
      'accept-encoding': 'br, gzip',
    })
    assert.equal(headers['content-encoding'], undefined, path)
  }
})

test('the page of an internal error shows the request id and the support contact', async t => {
  const web = await startWeb(t, { KEYWAY_LOG_LEVEL: 'silent', KEYWAY_SUPPORT_EMAIL: 'help@example.com' })
  const client = await signedInClient(web)
  const { accounts } = web.server.services
  const failingGet = t.mock.method(accounts, 'get', () => {
    throw new TypeError('broken')
  })
  const answer = await client.get('/account/balance')
  assert.ok(failingGet.mock.callCount() > 0)
  assert.equal(answer.status, 500)
  const text = await answer.text()
  assert.match(text, new RegExp(`<code>${answer.headers.get('x-request-id')}</code>`))
  assert.match(text, /href="mailto:help@example\.com\?subject=[0-9a-f-]{36}"/)
  assert.doesNotMatch(text, /broken|TypeError/)
})
