import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LANGUAGES, type Language } from '../../src/languages/languages.ts'
import { openFirstPages, openPages, visit } from '../support/all-pages.ts'
import { axeSource, sharedBrowser } from '../support/browser.ts'
import { newPerson, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

const MAX_PAGE_BYTES = 60 * 1024
/** A whole guide is one page. */
const MAX_DOCUMENT_BYTES = 130 * 1024

const RUN_AXE =
  "axe.run(document, {iframes: false, resultTypes: ['violations'], runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']})"

interface Axe {
  passes: unknown[]
  violations: { id: string; nodes: { html: string }[] }[]
}

/** For axe, languages differ in their script, direction and length of texts; these represent all. */
const AXE_LANGUAGES = ['en', 'de', 'ar'] as const satisfies Language[]

for (const language of AXE_LANGUAGES) {
  test(`axe finds no violation on any page, in light mode on a desktop and in dark mode on a phone, in ${LANGUAGES[language].name}`, async t => {
    const browser = await openBrowser(t)
    const axe = browser && (await axeSource(t))
    if (!axe) return
    for (const { page, paths, speak } of [await openFirstPages(t, browser), await openPages(t, browser)]) {
      await speak(language)
      for (const path of pathsIn(language, paths)) {
        await visit(page, path)
        await page.evaluate(axe)
        for (const [colorScheme, width] of [
          ['light', 1280],
          ['dark', 390],
        ] as const) {
          await page.emulateMedia({ colorScheme })
          await page.setViewportSize({ width, height: 800 })
          const { violations, passes } = await page.evaluate<Axe>(RUN_AXE)
          const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html).join(' ')}`)
          assert.deepEqual(found, [], `${path} ${colorScheme} ${width}`)
          assert.ok(passes.length > 10, 'axe looked')
        }
      }
    }
  })
}

/** Narrower phones are not sold; this is also a desktop at 400 % (WCAG 2.2, 1.4.10). */
const NARROWEST = 320

test('no page is wider than its window and no cell narrower than its content, from 320 pixels on, in any language', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const wide: string[] = []
  for (const { page, paths, speak } of [await openFirstPages(t, browser), await openPages(t, browser)])
    for (const language of Object.keys(LANGUAGES) as Language[]) {
      await speak(language)
      for (const path of pathsIn(language, paths)) {
        await page.setViewportSize({ width: NARROWEST, height: 800 })
        await visit(page, path)
        await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        for (const width of [NARROWEST, 390, 1280]) {
          await page.setViewportSize({ width, height: 800 })
          const overflow = await page.evaluate<string | null>(OVERFLOW)
          if (overflow) wide.push(`${path} in ${language} is wider than ${width}: ${overflow}`)
          const overrun = await page.evaluate<string[]>(OVERRUN_CELLS)
          if (overrun.length) wide.push(`${path} in ${language} at ${width} overruns cells: ${overrun}`)
        }
      }
    }
  assert.deepEqual(wide, [])
})

/** How much wider than the window the page is, and the elements that overflow it. */
const OVERFLOW = `(() => {
  const overflow = document.documentElement.scrollWidth - innerWidth
  if (overflow <= 0) return null
  const out = [...document.querySelectorAll('main *, header *, footer *')].filter(element => {
    const { left, right, width } = element.getBoundingClientRect()
    return width > 0 && (left < -0.5 || right > innerWidth + 0.5)
  })
  return overflow + ' px by ' + out.map(element => element.outerHTML.slice(0, 120)).join(' | ')
})()`

/** Cells of tables that are narrower than what is in them, which then covers the next one. */
const OVERRUN_CELLS = `[...document.querySelectorAll('main :is(th, td)')]
  .filter(cell => cell.checkVisibility() && !cell.closest('.scroll') && cell.scrollWidth > cell.clientWidth + 1)
  .map(cell => cell.textContent.trim().slice(0, 40))`

/** Pages of administrators and the content of documents are in English only. */
function pathsIn(language: Language, paths: readonly string[]): readonly string[] {
  return language === 'en' ? paths : paths.filter(path => !/^\/(?:admin|docs\/)/.test(new URL(path).pathname))
}

const WATCH_SHIFTS = `window.shifts = 0
const add = entries => { for (const entry of entries) window.shifts += entry.value }
const observer = new PerformanceObserver(list => add(list.getEntries()))
observer.observe({ type: 'layout-shift', buffered: true })
window.streams = []
window.EventSource = class extends EventSource {
  constructor(url) {
    super(url)
    window.streams.push(new Promise(opened => this.addEventListener('open', opened)))
  }
}
window.settled = async () => {
  await Promise.all([...window.streams, document.fonts.ready])
  // Layout shifts are reported in the next frame.
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
  add(observer.takeRecords())
  return window.shifts
}`

test('each page loads under 60 KB, a document under 130 KB, and without layout shift', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  for (const { page, paths } of [await openFirstPages(t, browser), await openPages(t, browser)]) {
    for (const path of paths) {
      let bodies: Promise<Buffer>[] = []
      const fresh = await page.context().newPage()
      await fresh.addInitScript({ content: WATCH_SHIFTS })
      fresh.on('response', answer => {
        const { 'content-type': type = '' } = answer.headers()
        // A form's own page does not count.
        if (type.startsWith('text/html')) bodies = []
        if (type !== 'text/event-stream') bodies.push(answer.body())
      })
      await visit(fresh, path)
      const shifts = await fresh.evaluate<number>('window.settled()')
      assert.ok(shifts < 0.001, `${path} moves by ${shifts}`)
      const sizes = await Promise.all(
        bodies.map(body =>
          body.then(
            ({ length }) => length,
            () => 0,
          ),
        ),
      )
      const total = sizes.reduce((sum, size) => sum + size, 0)
      const most = path.includes('/docs') ? MAX_DOCUMENT_BYTES : MAX_PAGE_BYTES
      assert.ok(total > 0 && total < most, `${path} weighs ${total} bytes`)
      await fresh.close()
    }
  }
})

test('a page is painted before its script is loaded', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await page.route('**/assets/script.js*', () => {}) // never answered
  await page.goto(`${web.url}/sign-in`, { waitUntil: 'commit' })
  await page.evaluate(
    "new Promise(done => new PerformanceObserver(done).observe({ type: 'paint', buffered: true }))",
  )
  assert.ok(await page.getByRole('button', { name: 'Send me a link' }).isVisible())
})

/** All controls, which must be reachable by keyboard; of a radio group only one is. */
const CONTROLS = `[...document.querySelectorAll('a[href], button, input:not([type=hidden], [type=radio]), input[type=radio]:checked, select, summary, [tabindex="0"]')]
  .filter(element => element.checkVisibility({visibilityProperty: true}) && !element.disabled)`
/** The index among the controls, since a live list may be replaced in between. */
const FOCUSED = `(() => {
  const element = document.activeElement
  if (element === document.body || element.tagName === 'IFRAME') return null
  const shown = element.matches('.segments input') ? element.nextElementSibling : element
  const { outlineStyle, outlineWidth } = getComputedStyle(shown)
  const box = shown.getBoundingClientRect()
  const visible = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight
  return { control: ${CONTROLS}.indexOf(element), visible, html: element.outerHTML.slice(0, 120) }
})()`

interface Focused {
  control: number
  visible: boolean
  html: string
}

test('every control can be reached by the keyboard, with a visible focus', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  for (const { page, paths } of [await openFirstPages(t, browser), await openPages(t, browser)]) {
    for (const path of paths) {
      await visit(page, path)
      await page.evaluate('document.activeElement.blur()')
      const controls = await page.evaluate<number>(`${CONTROLS}.length`)
      const reached = new Set<number>()
      for (let pressed = 0; pressed < controls + 6; pressed++) {
        await page.keyboard.press('Tab')
        const focused = await page.evaluate<Focused | null>(FOCUSED)
        if (!focused) continue
        assert.ok(focused.visible, `${path}: no visible focus on ${focused.html}`)
        if (focused.control >= 0) reached.add(focused.control)
      }
      assert.ok(reached.size >= controls, `${path}: ${reached.size} of ${controls} controls were reached`)
    }
  }
})
