import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { LANGUAGES, type Language } from '../../src/languages/languages.ts'
import { openFirstPages, openPages } from '../support/all-pages.ts'
import { axeSource, sharedBrowser } from '../support/browser.ts'
import { checkPages, type Findings } from '../support/looks.ts'
import { until } from '../support/patience.ts'
import { newPerson, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

const MAX_PAGE_BYTES = 60 * 1024
/** A whole guide is one page. */
const MAX_DOCUMENT_BYTES = 130 * 1024

/** For axe, languages differ in their script, direction and length of texts; these represent all. */
const AXE_LANGUAGES = ['en', 'de', 'ar'] as const satisfies Language[]
const ALL_LANGUAGES = Object.keys(LANGUAGES) as Language[]

/** The first test of a language checks all of its pages, which takes minutes on a busy machine. */
const CHECKS_ALL_PAGES = { timeout: 1_200_000 }

const findingsByLanguage = new Map<Language, Promise<Findings>>()

/**
 * The findings on all pages in this language, with and without data; undefined, and the test skipped, if the browser or
 * axe cannot be installed. The pages are checked once, for the first test.
 */
async function findingsIn(t: TestContext, language: Language): Promise<Findings | undefined> {
  const browser = await openBrowser(t)
  const axe = browser && (await axeSource(t))
  if (!axe) return undefined
  const existingFindings = findingsByLanguage.get(language)
  if (existingFindings) return existingFindings
  const pendingFindings = (async () => {
    const opened = [await openFirstPages(t, browser), await openPages(t, browser)]
    const isEnglish = language === 'en'
    const isForAxe = AXE_LANGUAGES.some(each => each === language)
    return await checkPages(opened, { language, axe: isForAxe ? axe : null, everything: isEnglish })
  })()
  findingsByLanguage.set(language, pendingFindings)
  return pendingFindings
}

for (const language of AXE_LANGUAGES) {
  test(
    `axe finds no violation on any page, in light mode on a desktop and in dark mode on a phone, in ${LANGUAGES[language].name}`,
    CHECKS_ALL_PAGES,
    async t => {
      const findings = await findingsIn(t, language)
      if (findings) assert.deepEqual(findings.axe, [])
    },
  )
}

for (const language of ALL_LANGUAGES) {
  test(
    `no page is wider than its window and no cell narrower than its content, from 320 pixels on, in ${LANGUAGES[language].name}`,
    CHECKS_ALL_PAGES,
    async t => {
      const findings = await findingsIn(t, language)
      if (findings) assert.deepEqual(findings.tooWide, [])
    },
  )
}

test(
  'each page loads under 60 KB, a document under 130 KB, and without layout shift',
  CHECKS_ALL_PAGES,
  async t => {
    const findings = await findingsIn(t, 'en')
    if (!findings) return
    for (const [path, bytes] of findings.weights) {
      const maxBytes = path.includes('/docs') ? MAX_DOCUMENT_BYTES : MAX_PAGE_BYTES
      assert.ok(bytes > 0 && bytes < maxBytes, `${path} weighs ${bytes} bytes`)
    }
    assert.equal(findings.weights.size, findings.pages)
    assert.deepEqual(findings.shifted, [])
  },
)

test('every control can be reached by the keyboard, with a visible focus', CHECKS_ALL_PAGES, async t => {
  const findings = await findingsIn(t, 'en')
  if (findings) assert.deepEqual(findings.unreached, [])
})

/** A script that waits until the page has been painted. */
const UNTIL_PAINTED =
  "new Promise(done => new PerformanceObserver(done).observe({ type: 'paint', buffered: true }))"
/** A script that returns whether the page is painted within 500 ms. */
const PAINTED_SOON = `Promise.race([
  ${UNTIL_PAINTED}.then(() => true),
  new Promise(done => setTimeout(done, 500, false)),
])`

test('a page is painted before its script is loaded', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await page.route('**/assets/script.js*', () => {}) // never answered
  await page.goto(`${web.url}/sign-in`, { waitUntil: 'commit' })
  await page.evaluate(UNTIL_PAINTED)
  assert.ok(await page.getByRole('button', { name: 'Send me a link' }).isVisible())
})

test('a page is not painted before all of it has arrived', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const slowServer = await startSlowServer(t, web.url)
  const { page } = await newPerson(browser)
  await page.goto(`${slowServer.url}/sign-in`, { waitUntil: 'commit' })
  const hasContentAndStyle =
    "Boolean(document.querySelector('form') && document.querySelector('[rel=stylesheet]')?.sheet)"
  await until('content and style', () => page.evaluate<boolean>(hasContentAndStyle))
  assert.equal(await page.evaluate(PAINTED_SOON), false)
  slowServer.sendFooters()
  await page.evaluate(UNTIL_PAINTED)
})

/** Serves what another server does, but no page's footer and what follows it until `sendFooters` is called. */
async function startSlowServer(
  t: TestContext,
  origin: string,
): Promise<{ url: string; sendFooters(): void }> {
  const gate = Promise.withResolvers<void>()
  const server = createServer(async (request, response) => {
    const answer = await fetch(origin + request.url)
    const body = Buffer.from(await answer.arrayBuffer())
    const type = answer.headers.get('content-type')!
    response.setHeader('content-type', type)
    if (type.startsWith('text/html')) {
      const footerAt = body.indexOf('<footer')
      response.write(body.subarray(0, footerAt))
      await gate.promise
      response.end(body.subarray(footerAt))
    } else {
      response.end(body)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sendFooters: gate.resolve }
}
