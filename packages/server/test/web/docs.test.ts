import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Keyway } from '@keyway/sdk'
import { ERROR_CODES } from '@keyway/sdk/protocol'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { SDK_METHODS, snakeCase } from '../../src/web/docs/examples.ts'
import { highlight } from '../../src/web/docs/highlight.ts'
import { GUIDES } from '../../src/web/docs/library.ts'
import { renderMarkdown } from '../../src/web/docs/markdown.ts'
import { root } from '../structure/source.ts'
import { sharedBrowser } from '../support/browser.ts'
import { ADA, type Client, createClient, signedInClient } from '../support/page-client.ts'
import { address, caller } from '../support/services.ts'
import { askForLink, newPerson, startWeb, typeCode, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()

async function operationIds(web: WebServer): Promise<{ id: string; tag: string }[]> {
  const { paths } = (await (await fetch(`${web.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId: string; tags: string[] }>>
  }
  return Object.values(paths).flatMap(methods =>
    Object.values(methods).map(({ operationId, tags }) => ({ id: operationId, tag: tags[0]! })),
  )
}

async function makeAdmin(web: WebServer): Promise<void> {
  const user = await web.server.services.storage.store.users.findByEmail(address(ADA))
  await web.server.services.users.setRole(user!.id, 'admin', BY_COMMAND_LINE)
}

async function makeKey(web: WebServer, email = ADA) {
  const user = (await web.server.services.storage.store.users.findByEmail(address(email)))!
  const newKey = { appId: 'service-sdk', allowedNetworks: [], scopes: null, name: 'robot', expiresAt: null }
  return (await web.server.services.apiKeys.create(user.id, newKey, caller())).apiKey
}

const text = async (client: Client, path: string) => (await client.get(path)).text()

/** A page without the markup that colours its code. */
const removeHighlighting = (page: string) =>
  page.replace(/<span class="(?:comment|string|keyword|variable)">([^<]*)<\/span>/g, '$1')

describe('the documents', () => {
  test('begin with the quickstart, which has the address of this service in its lines', async t => {
    const web = await startWeb(t)
    const page = await text(createClient(web.url), '/docs')
    assert.match(page, /<h1>Quickstart<\/h1>/)
    assert.match(page, new RegExp(`npx -y ${web.url}/sdk\\.tgz`))
    assert.doesNotMatch(page, /keyway\.example\.com|localhost:8080/)
    assert.match(page, /href="\/docs\/quickstart" aria-current="page"/)
  })

  test('of operators are shown to administrators only', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    const paths = [
      '/docs/operations',
      '/docs/configuration',
      '/docs/api/administration',
      '/docs/call/listUsers',
    ]
    for (const path of paths) assert.equal((await client.get(path)).status, 404, path)
    assert.doesNotMatch(await text(client, '/docs'), /For operators/)
    assert.doesNotMatch(await text(client, '/docs/search?q=failover'), /\/docs\/operations/)
    await makeAdmin(web)
    for (const path of paths) assert.equal((await client.get(path)).status, 200, path)
    assert.match(await text(client, '/docs'), /For operators/)
    assert.match(await text(client, '/docs/search?q=failover'), /\/docs\/operations/)
  })

  test('link to each other, and every link and anchor in them exists', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    await makeAdmin(web)
    const pages = new Map<string, string>()
    const load = async (path: string) => {
      if (!pages.has(path)) {
        const answer = await client.get(path)
        assert.equal(answer.status, 200, path)
        pages.set(path, await answer.text())
      }
      return pages.get(path)!
    }
    for (const { slug } of GUIDES) {
      const page = await load(`/docs/${slug}`)
      for (const [, href] of page.matchAll(/href="((?:\/docs\/|\/errors\/|#)[^"]*)"/g)) {
        const [path, anchor] = href!.split('#')
        const targetPage = await load(path || `/docs/${slug}`)
        if (anchor) assert.ok(targetPage.includes(`id="${anchor}"`), `/docs/${slug} links to ${href}`)
      }
    }
  })

  test('are found by words in them, calls and errors too, and every input is safe', async t => {
    const web = await startWeb(t)
    const client = createClient(web.url)
    const rotateResults = await text(client, '/docs/search?q=rotate+KEY')
    assert.match(rotateResults, /href="\/docs\/call\/rotateApiKey"/)
    assert.match(rotateResults, /<mark>rotate<\/mark>/i)
    const excerpts = [...rotateResults.matchAll(/<p>…(.*?)<\/p>/g)].map(([, excerpt]) => excerpt!)
    assert.ok(excerpts.length > 0)
    for (const excerpt of excerpts) assert.match(excerpt, /^ \S/, 'it begins with a whole word')
    assert.match(
      await text(client, '/docs/search?q=insufficient_balance'),
      /href="\/errors\/insufficient_balance"/,
    )
    assert.match(await text(client, '/docs/search?q=onRequest'), /href="\/docs\/javascript#an-agent"/)
    const oauthResults = await text(client, '/docs/search?q=oauth+connect')
    assert.match(
      oauthResults,
      /<li><a href="\/docs\/oauth">OAuth and OpenID Connect<\/a><p>/,
      'no title twice',
    )
    const resumeResults = await text(client, '/docs/search?q=resume')
    assert.equal(resumeResults.match(/type="search"/g)?.length, 1)
    assert.match(resumeResults, /<article.*type="search" value="resume"/s, 'the field is above the results')
    assert.match(
      await text(client, '/docs/search?q=nothinglikethis'),
      /Nothing was found for “nothinglikethis”/,
    )
    for (const query of [
      '',
      '%20',
      '%3Cscript%3E',
      '%22%27%5C',
      '(((',
      'a'.repeat(5000),
      '%F0%9F%98%80',
      'İ',
    ])
      assert.equal((await client.get(`/docs/search?q=${query}`)).status, 200, query)
    assert.doesNotMatch(await text(client, '/docs/search?q=%3Cscript%3Ealert'), /<script>alert/)
  })

  test('are searched by the rows of their tables as sentences', () => {
    const table =
      '| Option | Meaning | |\n|---|---|---|\n| `url` | [the address](#a) | required |\n| `app` | Which? | |'
    const options = { resolveLink: () => null, personalize: (text: string) => text }
    const { sections } = renderMarkdown(`# A\n\n## B\n\n${table}\n`, options)
    assert.equal(sections[0]!.text, ' url: the address; required. app: Which?')
  })

  test('run under the policy of all pages, with nothing inline', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    await makeAdmin(web)
    const policy = (await client.get('/keys')).headers.get('content-security-policy')
    const paths = [
      ...GUIDES.map(({ slug }) => `/docs/${slug}`),
      '/docs/call/createApiKey',
      '/errors/rate_limited',
    ]
    for (const path of paths) {
      const answer = await client.get(path)
      assert.equal(answer.headers.get('content-security-policy'), policy, path)
      assert.doesNotMatch(await answer.text(), /<style|style="|<script(?! type="module" src=)| on\w+="/, path)
    }
  })
})

describe('the reference', () => {
  test('has a page for every call, with its errors and an example in three languages', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    await makeAdmin(web)
    for (const { id } of await operationIds(web)) {
      const answer = await client.get(`/docs/call/${id}`)
      assert.equal(answer.status, 200, id)
      const page = await answer.text()
      for (const label of ['curl', 'TypeScript', 'Python'])
        assert.match(page, new RegExp(`>${label}</label>`), id)
      assert.doesNotMatch(page, /\[object|undefined/, id)
    }
    assert.match(await text(client, '/docs/api/api-keys'), /href="\/docs\/call\/createApiKey"/)
  })

  test('says of every field and parameter what it is', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    await makeAdmin(web)
    for (const { id } of await operationIds(web))
      assert.doesNotMatch(await text(client, `/docs/call/${id}`), /<dd><\/dd>/, id)
  })

  test('colours code without changing it', () => {
    for (const [language, code, parts] of [
      ['sh', `curl -H "A: $B" '<x>' # so`, ['string', 'string', 'comment']],
      ['ts', "const a = `<b>` // 'no'", ['keyword', 'string', 'comment']],
      ['python', 'if not x:  # "no"', ['keyword', 'keyword', 'comment']],
      ['json', '{"a": [null, "b&"]}', ['variable', 'keyword', 'string']],
      ['', '<b>"as it is"</b>', []],
    ] as const) {
      const html = String(highlight(language, code))
      assert.deepEqual(
        [...html.matchAll(/<span class="(\w+)">/g)].map(([, kind]) => kind),
        parts,
        code,
      )
      const unescapedText = html
        .replace(/<[^>]*>/g, '')
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
      assert.equal(
        unescapedText.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&'),
        code,
      )
    }
  })

  test('uses calls that both SDKs have', async () => {
    const keyway = new Keyway({ url: 'https://keyway.test' }) as unknown as Record<
      string,
      Record<string, unknown>
    >
    const pythonSource = [
      'client.py',
      ...['api_keys', 'account', 'sessions', 'agents', 'apps'].map(name => `calls/${name}.py`),
    ]
      .map(file => readFileSync(join(root, 'packages/python/src/keyway', file), 'utf8'))
      .join('\n')
    for (const { name } of Object.values(SDK_METHODS)) {
      const [group, method] = name.includes('.') ? (name.split('.') as [string, string]) : [null, name]
      const owner = group ? keyway[group]! : keyway
      assert.equal(typeof owner[method], 'function', name)
      assert.match(pythonSource, new RegExp(`def ${snakeCase(method)}\\(`), name)
    }
  })

  test('explains every error code on a page with what to do', async t => {
    const web = await startWeb(t)
    const client = createClient(web.url)
    const list = await text(client, '/docs/errors')
    for (const code of ERROR_CODES) {
      assert.match(list, new RegExp(`href="/errors/${code}"`))
      assert.match(
        await text(client, `/errors/${code}`),
        new RegExp(`<code>${code}</code>.*What to do.*Example`, 's'),
      )
    }
    for (const code of ['toString', '__proto__', 'nothing'])
      assert.equal((await client.get(`/errors/${code}`)).status, 404)
  })
})

describe('a call that is tried in the documents', () => {
  test('is made as the person who is signed in, and its answer is shown', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    const key = await makeKey(web)
    const form_token = await client.formToken('/docs/call/getApiKey')
    const answer = await client.post('/docs/call/getApiKey', { form_token, 'path.key_id': key.id })
    assert.equal(answer.status, 200)
    const page = removeHighlighting(await answer.text())
    assert.match(page, /Answer 200/)
    assert.match(page, new RegExp(`&quot;id&quot;: &quot;${key.id}&quot;`))
    assert.doesNotMatch(page, /eyJ[\w-]+\.|svc_\w{32}/)

    const body = '{"name":"Ada"}'
    assert.match(
      await (await client.post('/docs/call/updateAccount', { form_token, body })).text(),
      /Answer 200/,
    )
    assert.match(await text(client, '/account'), /value="Ada"/)
  })

  test('is refused as the API would refuse it, and keeps what was typed', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    await signedInClient(web, 'bob@example.com')
    const bobsKey = await makeKey(web, 'bob@example.com')
    const form_token = await client.formToken('/docs/call/getApiKey')
    for (const [operation, fields, status, code] of [
      ['getApiKey', { 'path.key_id': bobsKey.id }, 404, 'not_found'],
      ['getApiKey', { 'path.key_id': 'x' }, 404, 'not_found'],
      ['listApiKeys', { 'query.limit': '1000' }, 400, 'invalid_request'],
      ['listApiKeys', { 'query.access_token': 'x' }, 400, 'invalid_request'],
      ['updateAccount', { body: '{' }, 400, 'invalid_json'],
      ['updateAccount', { body: '{"name":5}' }, 400, 'invalid_request'],
    ] as const) {
      const page = removeHighlighting(
        await (await client.post(`/docs/call/${operation}`, { form_token, ...fields })).text(),
      )
      assert.match(page, new RegExp(`Answer ${status}`), operation)
      assert.match(page, new RegExp(`&quot;code&quot;: &quot;${code}&quot;`))
    }
    const refusalResponse = await client.post('/docs/call/listApiKeys', { form_token, 'query.limit': '1000' })
    assert.match(await refusalResponse.text(), /name="query\.limit" value="1000"/)
  })

  test('creates no credential, ends nothing, and is none of an administrator for other people', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    const key = await makeKey(web)
    const form_token = await client.formToken('/docs/call/getAccount')
    for (const operation of [
      'createApiKey',
      'revokeApiKey',
      'rotateApiKey',
      'endOtherSessions',
      'exportAccount',
    ]) {
      assert.doesNotMatch(await text(client, `/docs/call/${operation}`), /id="try"/)
      const fields = { form_token, 'path.key_id': key.id, body: '{}' }
      assert.equal((await client.post(`/docs/call/${operation}`, fields)).status, 404, operation)
    }
    assert.equal((await client.post('/docs/call/listUsers', { form_token })).status, 404)
    const { rows } = await web.server.services.apiKeys.list(key.userId, null, { limit: 10, after: null })
    assert.deepEqual(
      rows.map(({ id, revokedAt }) => [id, revokedAt]),
      [[key.id, null]],
    )
    await makeAdmin(web)
    assert.match(await (await client.post('/docs/call/listUsers', { form_token })).text(), /Answer 200/)
  })

  test('needs a session and a form of this site', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    const form_token = await client.formToken('/docs/call/getAccount')
    const crossSiteHeaders = { 'sec-fetch-site': 'cross-site' }
    assert.equal((await client.post('/docs/call/getAccount', { form_token }, crossSiteHeaders)).status, 403)
    assert.equal((await client.post('/docs/call/getAccount', { form_token: 'x' })).status, 403)
    client.jar.delete('keyway_session')
    assert.equal(
      (await client.post('/docs/call/getAccount', { form_token })).headers.get('location'),
      '/sign-in',
    )
    const page = await text(client, '/docs/call/getAccount')
    assert.match(page, /href="\/docs\/call\/getAccount\/sign-in"/)
    assert.doesNotMatch(page, /action="\/docs\/call/)
  })

  test('in the administration is recorded as by the API', async t => {
    const web = await startWeb(t)
    const client = await signedInClient(web)
    await makeAdmin(web)
    const { id } = (await web.server.services.storage.store.users.findByEmail(address(ADA)))!
    const form_token = await client.formToken('/docs/call/listLedgerOfUser')
    const answer = await client.post('/docs/call/listLedgerOfUser', { form_token, 'path.user_id': id })
    assert.match(await answer.text(), /Answer 200/)
    assert.match(await text(client, '/account/events'), /Ledger, mails or data read by the operator/)
  })
})

for (const javaScriptEnabled of [true, false]) {
  test(`a person reads, searches and tries a call ${javaScriptEnabled ? 'with' : 'without'} scripts`, async t => {
    const browser = await openBrowser(t)
    if (!browser) return
    const web = await startWeb(t)
    const { page } = await newPerson(browser, { javaScriptEnabled, viewport: { width: 390, height: 800 } })
    await page.goto(`${web.url}/docs/call/getAccount`)
    await page.locator('.try').getByRole('link', { name: 'Sign in' }).click()
    await page.waitForURL('**/sign-in')
    const { code } = await askForLink(page, web, ADA)
    await typeCode(page, code!)
    await page.waitForURL('**/docs/call/getAccount*')
    const pythonSource = page.getByText('asyncio.run(main())').first()
    assert.equal(await pythonSource.isVisible(), false)
    await page.getByText('Python', { exact: true }).last().click()
    assert.equal(await pythonSource.isVisible(), true)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByRole('status').waitFor()
    await page.getByText('"email": "ada@example.com"').last().waitFor()
    await page.getByText('Contents', { exact: true }).click()
    await page.getByLabel('Search the documentation').fill('rotate')
    await page.getByLabel('Search the documentation').press('Enter')
    await page.getByRole('link', { name: 'Replace a key' }).click()
    await page.waitForURL('**/docs/call/rotateApiKey')
    await page.waitForLoadState('load')
    const copyButtonCount = await page.getByRole('button', { name: 'Copy' }).count()
    assert.equal(copyButtonCount > 0, javaScriptEnabled)
  })
}
