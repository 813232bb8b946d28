import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type Page, sharedBrowser } from '../../server/test/support/browser.ts'
import { until } from '../../server/test/support/patience.ts'
import { browserTokenStore } from '../src/browser-token-store.ts'
import { Keyway } from '../src/client.ts'
import { type CookieTokenStore, cookieTokenStores } from '../src/cookie-token-stores.ts'
import type { KeywayError } from '../src/errors.ts'
import type { StoredTokens } from '../src/token-store.ts'
import { sharedKeyway, startKeyway } from './support/keyway-server.ts'

interface TestContext {
  after(fn: () => Promise<void>): void
}

const DIST = join(import.meta.dirname, '../dist')
const SECRET = randomBytes(32).toString('hex')
const openBrowser = sharedBrowser()

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

async function listen(t: TestContext, handle: Handler): Promise<string> {
  const server = createServer((request, response) => {
    handle(request, response).catch(error => response.writeHead(500).end(String(error)))
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.after(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

/** Serves an empty page, and the modules of the SDK for it to import. */
async function servePage(t: TestContext): Promise<string> {
  return listen(t, async (request, response) => {
    const path = request.url ?? ''
    if (!path.endsWith('.js')) return void response.setHeader('content-type', 'text/html').end('<p>A page')
    response.setHeader('content-type', 'text/javascript').end(await readFile(join(DIST, path)))
  })
}

describe('a store in localStorage', () => {
  /** Opens a page with a client, as a tab. */
  async function openTab(page: Page, origin: string, url: string): Promise<void> {
    await page.goto(origin)
    await page.evaluate(`import('/index.js').then(({ Keyway, browserTokenStore }) => {
      globalThis.tokens = browserTokenStore()
      globalThis.keyway = new Keyway({ url: '${url}', tokens })
      globalThis.changes = []
      tokens.onChange(tokens => changes.push(tokens?.access ?? null))
    })`)
  }

  const countRefreshes = (page: Page) =>
    page.evaluate<number>(
      `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/auth/refresh')).length`,
    )

  test('is refreshed by one of two tabs at a time, outlives a tab that is closed meanwhile, and notifies the other tab of changes', async t => {
    const browser = await openBrowser(t)
    if (!browser) return
    const origin = await servePage(t)
    const { url, tokens } = await startKeyway(t, { KEYWAY_CORS_ORIGINS: origin })
    const context = await browser.newContext()
    const [firstTab, secondTab] = [await context.newPage(), await context.newPage()]
    const tabs = [firstTab, secondTab]
    for (const tab of tabs) await openTab(tab, origin, url)
    const expiredTokens = JSON.stringify({ ...((await tokens.get()) as StoredTokens), access: 'expired' })
    await firstTab.evaluate(`tokens.set(${expiredTokens})`)

    const fiveCalls =
      'Promise.all(Array.from({ length: 5 }, () => keyway.account.get())).then(all => all.length)'
    assert.deepEqual(await Promise.all(tabs.map(tab => tab.evaluate(fiveCalls))), [5, 5])
    assert.equal((await countRefreshes(firstTab)) + (await countRefreshes(secondTab)), 1)
    const threeRefreshes = `(async () => { for (let n = 0; n < 3; n++) await keyway.refresh() })()`
    await Promise.all(tabs.map(tab => tab.evaluate(threeRefreshes)))
    assert.equal((await countRefreshes(firstTab)) + (await countRefreshes(secondTab)), 7)

    await firstTab.evaluate(
      `new Promise(resolve => { tokens.exclusive(() => { resolve(); return new Promise(() => {}) }) })`,
    )
    const refreshing = secondTab.evaluate('keyway.refresh().then(user => user.id)')
    await firstTab.close()
    assert.match((await refreshing) as string, /^[0-9a-f-]{36}$/)

    const thirdTab = await context.newPage()
    await openTab(thirdTab, origin, url)
    assert.equal(await thirdTab.evaluate('keyway.sessions.list().then(({ data }) => data.length)'), 1)
    await thirdTab.evaluate('keyway.logout()')
    await until('the other tab is notified', () => secondTab.evaluate<boolean>('changes.at(-1) === null'))
    assert.equal(await secondTab.evaluate('tokens.get()'), undefined)
  })

  test('needs localStorage, and says so', () => {
    const { localStorage } = globalThis as { localStorage?: unknown }
    if (localStorage) return
    assert.throws(
      () => browserTokenStore(),
      (error: KeywayError) =>
        error.code === 'invalid_configuration' && /use memoryTokenStore\(\)/.test(error.message),
    )
  })
})

describe('a store in a cookie', () => {
  const newPerson = sharedKeyway()

  /**
   * Starts a server process of a site that calls Keyway for its visitors. Its first refresh waits until Keyway has
   * refused `refusals` calls.
   */
  async function startSite(t: TestContext, url: string, signedIn?: StoredTokens, refusals = 1) {
    const tokensOf = cookieTokenStores({ secret: SECRET })
    const site = { origin: '', refreshes: 0 }
    const allRefused = Promise.withResolvers<void>()
    const countingFetch: typeof fetch = async (input, init) => {
      if (String(input).endsWith('/auth/refresh')) {
        await allRefused.promise
        site.refreshes++
        return fetch(input, init)
      }
      const response = await fetch(input, init)
      if (response.status === 401 && --refusals === 0) allRefused.resolve()
      return response
    }
    site.origin = await listen(t, async (request, response) => {
      const tokens = tokensOf(request.headers.cookie)
      const keyway = new Keyway({ url, tokens, fetch: countingFetch, maxRetries: 0 })
      const answer = await answerTo(request.url ?? '', keyway, tokens).catch(({ code }: KeywayError) => code)
      response.setHeader('set-cookie', tokens.setCookies)
      response.end(answer)
    })
    return site

    async function answerTo(path: string, keyway: Keyway, tokens: CookieTokenStore): Promise<string> {
      if (path === '/sign-in') await tokens.set(signedIn!)
      if (path === '/sign-out') await keyway.logout()
      return path.startsWith('/me') ? (await keyway.account.get()).user.id : 'done'
    }
  }

  /** Sends one request with a cookie. */
  async function visit(origin: string, cookie: string) {
    const response = await fetch(`${origin}/me`, { headers: { cookie: `theme=dark; ${cookie}` } })
    return { text: await response.text(), cookies: response.headers.getSetCookie() }
  }

  const cookieIn = (setCookie: string | undefined) => setCookie?.split(';')[0] ?? ''
  const refreshTokenIn = (cookie: string) => cookie.split('~')[1]

  test('is kept by a browser out of reach of its scripts, replaced by a refresh, and removed', async t => {
    const browser = await openBrowser(t)
    if (!browser) return
    const { url, keyway, tokens } = await newPerson()
    const { id } = (await keyway.account.get()).user
    const site = await startSite(t, url, { ...((await tokens.get()) as StoredTokens), access: 'expired' })
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`${site.origin}/sign-in`)
    const [cookie, ...otherCookies] = await context.cookies()
    assert.deepEqual(
      [cookie?.name, cookie?.httpOnly, cookie?.sameSite, otherCookies],
      ['__Host-keyway-tokens', true, 'Lax', []],
    )
    assert.equal(await page.evaluate('document.cookie'), '')
    // Six different URLs, since the browser would request one URL six times sequentially.
    const sixRequests = `Promise.all([...Array(6).keys()].map(n => fetch('/me?' + n).then(answer => answer.text())))`
    assert.deepEqual(await page.evaluate(sixRequests), Array(6).fill(id))
    const { refreshes } = site
    assert.deepEqual(await page.evaluate(sixRequests), Array(6).fill(id))
    assert.equal(site.refreshes, refreshes)
    await page.goto(`${site.origin}/sign-out`)
    assert.deepEqual(await context.cookies(), [])
  })

  test('is refreshed once for requests at the same time, and to one successor by all processes of a site', async t => {
    const { url, keyway, tokens } = await newPerson()
    const { id } = (await keyway.account.get()).user
    const { refresh, sessionId } = (await tokens.get())!
    const [firstSite, secondSite] = [
      await startSite(t, url, undefined, 4),
      await startSite(t, url, undefined, 4),
    ]
    const cookie = `__Host-keyway-tokens=expired~${refresh}~${sessionId}`
    const visits = [
      firstSite,
      firstSite,
      firstSite,
      firstSite,
      secondSite,
      secondSite,
      secondSite,
      secondSite,
    ].map(({ origin }) => visit(origin, cookie))
    const answers = await Promise.all(visits)
    assert.deepEqual(new Set(answers.map(({ text }) => text)), new Set([id]))
    assert.deepEqual([firstSite.refreshes, secondSite.refreshes], [1, 1])
    const successors = new Set(answers.map(({ cookies }) => refreshTokenIn(cookieIn(cookies[0]))))
    assert.equal(successors.size, 1)
    assert.notEqual([...successors][0], refresh)

    const successorCookie = cookieIn(answers[0]!.cookies[0])
    assert.deepEqual(
      await visit(secondSite.origin, successorCookie),
      { text: id, cookies: [] },
      'nothing changed',
    )
    const repeatedAnswer = await visit(firstSite.origin, cookie)
    assert.equal(
      refreshTokenIn(cookieIn(repeatedAnswer.cookies[0])),
      [...successors][0],
      'its answer was lost',
    )
    const expiredCookie = successorCookie.replace(/=[^~]*/, '=expired')
    const nextCookie = cookieIn((await visit(secondSite.origin, expiredCookie)).cookies[0])
    const refusedAnswer = await visit(firstSite.origin, cookie)
    assert.equal(refusedAnswer.text, 'invalid_refresh_token')
    assert.match(
      refusedAnswer.cookies[0]!,
      /^__Host-keyway-tokens=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
    assert.deepEqual(
      await visit(firstSite.origin, nextCookie),
      { text: id, cookies: [] },
      'the session goes on',
    )
  })

  test('of another secret ends the session when it repeats a refresh: the key is not derived from the token alone', async () => {
    const { url, tokens } = await newPerson()
    const { refresh, sessionId } = (await tokens.get())!
    const cookie = `a=expired~${refresh}~${sessionId}`
    const refreshWith = (secret: string) => {
      const store = cookieTokenStores({ secret, name: 'a', secure: false })(cookie)
      return new Keyway({ url, tokens: store, maxRetries: 0 }).refresh()
    }
    assert.ok(await refreshWith(SECRET))
    await assert.rejects(refreshWith(`${SECRET}x`), { code: 'refresh_token_reused' })
  })

  test('accepts tokens as the service issues them and ignores anything else', async () => {
    const tokensOf = cookieTokenStores({ secret: SECRET, name: 'a', secure: false, maxAgeSeconds: 60 })
    const store = tokensOf(undefined)
    assert.deepEqual([await store.get(), store.setCookies], [undefined, []])
    await store.set({ access: 'a.b', refresh: 'svr_1', sessionId: 's-1' })
    assert.deepEqual(store.setCookies, ['a=a.b~svr_1~s-1; Max-Age=60; Path=/; HttpOnly; SameSite=Lax'])
    const nextStore = tokensOf(`b=1; a=a.b~svr_1~s-1`)
    const { refreshKey, ...tokens } = (await nextStore.get())!
    assert.deepEqual(tokens, { access: 'a.b', refresh: 'svr_1', sessionId: 's-1' })
    assert.match(refreshKey!, /^[0-9a-f]{64}$/)
    await nextStore.set({ ...tokens, refreshKey: 'stored before the refresh' })
    assert.deepEqual(nextStore.setCookies, [])
    for (const header of [
      '',
      'a',
      'a=',
      'a=1',
      'a=1~2',
      'a=1~2~3~4',
      'a=1~2~"3"',
      'b=a.b~svr_1~s-1',
      '=',
      ';;',
    ])
      assert.equal(await tokensOf(header).get(), undefined, header)
    const invalidTokens = { access: 'a; Domain=evil', refresh: 'r', sessionId: 's' }
    assert.throws(() => store.set(invalidTokens), /no cookie can hold/)
    assert.throws(() => store.set({ ...invalidTokens, access: 'a'.repeat(5000) }), /too long for a cookie/)
  })

  test('needs a secret of 32 characters, a name and a lifetime that a cookie may have', () => {
    for (const [options, pattern] of [
      [{ secret: 'short' }, /secret: .*openssl rand/],
      [{ secret: undefined as never }, /secret: /],
      [{ secret: SECRET, name: 'a b' }, /name: "a b"/],
      [{ secret: SECRET, maxAgeSeconds: 0.5 }, /maxAgeSeconds: /],
    ] as const)
      assert.throws(() => cookieTokenStores(options), { code: 'invalid_configuration', message: pattern })
  })
})
