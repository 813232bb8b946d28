import type { Language } from '../../src/languages/languages.ts'
import { type OpenPages, visit } from './all-pages.ts'
import type { Page } from './browser.ts'

/** The findings on the pages in one language; each names its page. */
export interface Findings {
  pages: number
  axe: string[]
  tooWide: string[]
  /** Pages with layout shift. */
  shifted: string[]
  /** Pages on which the keyboard does not reach all controls, and controls that have no visible focus. */
  unreached: string[]
  /** The size of each page in bytes, with all that it loads except event streams. Empty unless `everything` is set. */
  weights: Map<string, number>
}

export interface CheckOptions {
  language: Language
  /** The source of axe-core; without it axe is not run. */
  axe: string | null
  /** Whether to also measure page loads and keyboard access, which do not depend on the language. */
  everything: boolean
}

/** Narrower phones are not sold; this is also a window of 1280 pixels at a zoom of 400 % (WCAG 2.2, 1.4.10). */
const NARROWEST_WIDTH = 320
const PHONE_WIDTH = 390
const DESKTOP_WIDTH = 1280
const WINDOW_HEIGHT = 800
const MAX_SHIFT = 0.001

/** Loads each page once, since that takes the most time, and checks it at three widths, in light and in dark mode. */
export async function checkPages(opened: readonly OpenPages[], options: CheckOptions): Promise<Findings> {
  const findings: Findings = {
    pages: 0,
    axe: [],
    tooWide: [],
    shifted: [],
    unreached: [],
    weights: new Map(),
  }
  for (const pages of opened) {
    await pages.setLanguage(options.language)
    const measureLoad = options.everything ? await watchLoads(pages.page) : null
    for (const url of urlsIn(options.language, pages.urls)) {
      findings.pages++
      await checkPage(pages.page, url, options, measureLoad, findings)
    }
  }
  return findings
}

async function checkPage(
  page: Page,
  url: string,
  { language, axe, everything }: CheckOptions,
  measureLoad: MeasureLoad | null,
  findings: Findings,
): Promise<void> {
  await resize(page, everything ? DESKTOP_WIDTH : NARROWEST_WIDTH)
  await visit(page, url)
  if (measureLoad) {
    const { bytes, layoutShift } = await measureLoad()
    findings.weights.set(url, bytes)
    if (layoutShift >= MAX_SHIFT) findings.shifted.push(`${url} moves by ${layoutShift}`)
    findings.unreached.push(...(await keyboardFindings(page)).map(text => `${url}: ${text}`))
  }
  await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
  if (axe) await page.evaluate(axe)
  for (const width of [NARROWEST_WIDTH, PHONE_WIDTH, DESKTOP_WIDTH]) {
    await resize(page, width)
    const overflows = await page.evaluate<string[]>(FIND_OVERFLOWS)
    findings.tooWide.push(...overflows.map(text => `${url} in ${language} at ${width}: ${text}`))
    if (!axe || width === NARROWEST_WIDTH) continue
    const colorScheme = width === PHONE_WIDTH ? 'dark' : 'light'
    await page.emulateMedia({ colorScheme })
    const violations = await violationsOf(page)
    findings.axe.push(...violations.map(text => `${url} ${colorScheme} ${width}: ${text}`))
  }
}

function resize(page: Page, width: number): Promise<void> {
  return page.setViewportSize({ width, height: WINDOW_HEIGHT })
}

/** Other languages leave out the pages of administrators and of documents, whose content is in English only. */
function urlsIn(language: Language, urls: readonly string[]): readonly string[] {
  return language === 'en' ? urls : urls.filter(url => !/^\/(?:admin|docs\/)/.test(new URL(url).pathname))
}

/** Runs axe without preloading style sheets and media, which only rules that are disabled here need. */
const RUN_AXE =
  "axe.run(document, {iframes: false, preload: false, resultTypes: ['violations'], runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']})"

interface Axe {
  passes: unknown[]
  violations: { id: string; nodes: { html: string }[] }[]
}

async function violationsOf(page: Page): Promise<string[]> {
  const { violations, passes } = await page.evaluate<Axe>(RUN_AXE)
  if (passes.length <= 10) return [`axe passed only ${passes.length} rules`]
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html).join(' ')}`)
}

/**
 * A script that returns how much wider than the window the page is, with the elements that overflow, and the table
 * cells whose content overflows into the next cell.
 */
const FIND_OVERFLOWS = `(() => {
  const found = []
  const overflow = document.documentElement.scrollWidth - innerWidth
  if (overflow > 0) {
    const overflowing = [...document.querySelectorAll('main *, header *, footer *')].filter(element => {
      const { left, right, width } = element.getBoundingClientRect()
      return width > 0 && (left < -0.5 || right > innerWidth + 0.5)
    })
    found.push(overflow + ' px too wide by ' + overflowing.map(element => element.outerHTML.slice(0, 120)).join(' | '))
  }
  const overrun = [...document.querySelectorAll('main :is(th, td)')]
    .filter(cell => cell.checkVisibility() && !cell.closest('.scroll') && cell.scrollWidth > cell.clientWidth + 1)
    .map(cell => cell.textContent.trim().slice(0, 40))
  if (overrun.length) found.push('overruns cells: ' + overrun)
  return found
})()`

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

/** Measures the size of the last page load, and its layout shift. */
type MeasureLoad = () => Promise<{ bytes: number; layoutShift: number }>

async function watchLoads(page: Page): Promise<MeasureLoad> {
  let bodies: Promise<number>[] = []
  await page.addInitScript({ content: WATCH_SHIFTS })
  page.on('response', answer => {
    const { 'content-type': type = '' } = answer.headers()
    // A new document starts the count again: what was loaded before it belongs to the previous page.
    if (type.startsWith('text/html')) bodies = []
    if (type === 'text/event-stream') return
    const returnZero = () => 0
    bodies.push(answer.body().then(({ length }) => length, returnZero))
  })
  return async () => {
    const layoutShift = await page.evaluate<number>('window.settled()')
    const bytes = (await Promise.all(bodies)).reduce((sum, size) => sum + size, 0)
    return { bytes, layoutShift }
  }
}

/**
 * Counts the controls (one for each radio group), and records the focused one after each Tab, by its index among the
 * controls, since a live list may be replaced in between.
 */
const WATCH_FOCUS = `(() => {
  const controls = () => [...document.querySelectorAll('a[href], button, input:not([type=hidden], [type=radio]), input[type=radio]:checked, select, summary, [tabindex="0"]')]
    .filter(element => element.checkVisibility({visibilityProperty: true}) && !element.disabled)
  const reached = new Set()
  const hidden = []
  const note = () => {
    const element = document.activeElement
    if (element === document.body || element.tagName === 'IFRAME') return
    const shown = element.matches('.segments input') ? element.nextElementSibling : element
    const { outlineStyle, outlineWidth } = getComputedStyle(shown)
    const box = shown.getBoundingClientRect()
    const isVisible = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && box.bottom > 0 && box.top < innerHeight
    if (!isVisible) hidden.push(element.outerHTML.slice(0, 120))
    const index = controls().indexOf(element)
    if (index >= 0) reached.add(index)
  }
  document.activeElement.blur()
  addEventListener('keydown', note, true)
  window.focused = () => {
    note()
    removeEventListener('keydown', note, true)
    return { hidden, reached: reached.size, controls: controls().length }
  }
  return controls().length
})()`

async function keyboardFindings(page: Page): Promise<string[]> {
  const count = await page.evaluate<number>(WATCH_FOCUS)
  for (let pressed = 0; pressed < count + 6; pressed++) await page.keyboard.press('Tab')
  const { hidden, reached } = await page.evaluate<{ hidden: string[]; reached: number }>('window.focused()')
  const unreachedFindings = reached < count ? [`${reached} of ${count} controls were reached`] : []
  return [...unreachedFindings, ...hidden.map(html => `no visible focus on ${html}`)]
}
