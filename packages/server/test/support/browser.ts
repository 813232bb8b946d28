import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { tool } from '../../../../tools/install.ts'

/**
 * The part of playwright-core's types that the tests use. The package is installed on demand, to keep `npm ci` small.
 */
export interface Browser {
  newContext(options?: {
    colorScheme?: 'light' | 'dark'
    javaScriptEnabled?: boolean
    reducedMotion?: 'reduce' | 'no-preference'
    viewport?: { width: number; height: number }
    userAgent?: string
    permissions?: string[]
    timezoneId?: string
    locale?: string
    deviceScaleFactor?: number
  }): Promise<BrowserContext>
  contexts(): BrowserContext[]
  close(): Promise<void>
}

export interface BrowserContext {
  browser(): Browser
  newPage(): Promise<Page>
  pages(): Page[]
  cookies(): Promise<Cookie[]>
  addCookies(cookies: { name: string; value: string; url: string }[]): Promise<void>
  waitForEvent(event: 'page'): Promise<Page>
  setDefaultTimeout(milliseconds: number): void
  close(): Promise<void>
}

export interface Cookie {
  name: string
  value: string
  expires: number
  httpOnly: boolean
  sameSite: string
}

export interface Answer {
  status(): number
  headers(): Record<string, string>
}

export interface Page {
  context(): BrowserContext
  goto(url: string, options?: { waitUntil?: 'load' | 'domcontentloaded' | 'commit' }): Promise<Answer | null>
  reload(): Promise<unknown>
  goBack(): Promise<unknown>
  url(): string
  title(): Promise<string>
  content(): Promise<string>
  getByRole(role: string, options?: { name?: string | RegExp; exact?: boolean; level?: number }): Locator
  getByLabel(label: string | RegExp, options?: { exact?: boolean }): Locator
  getByText(text: string | RegExp, options?: { exact?: boolean }): Locator
  locator(selector: string): Locator
  frameLocator(selector: string): Pick<Page, 'getByRole' | 'getByText' | 'locator'>
  waitForURL(url: string | RegExp | ((url: URL) => boolean)): Promise<void>
  waitForFunction(expression: string): Promise<unknown>
  waitForLoadState(state?: 'load' | 'networkidle'): Promise<void>
  evaluate<Result>(expression: string): Promise<Result>
  addInitScript(script: { content: string }): Promise<void>
  emulateMedia(options: { media?: 'print' | 'screen'; colorScheme?: 'light' | 'dark' }): Promise<void>
  setViewportSize(size: { width: number; height: number }): Promise<void>
  clock: { install(): Promise<void>; runFor(milliseconds: number): Promise<void> }
  keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> }
  on(event: 'console', listener: (message: { type(): string; text(): string }) => void): void
  on(event: 'dialog', listener: (dialog: Dialog) => void): void
  on(event: 'pageerror', listener: (error: Error) => void): void
  on(event: 'request', listener: (request: { url(): string }) => void): void
  on(event: 'response', listener: (response: Response) => void): void
  route(
    url: string,
    handler: (route: { abort(): Promise<void>; continue(): Promise<void> }) => unknown,
  ): Promise<void>
  screenshot(options: { path?: string; fullPage?: boolean }): Promise<Buffer>
  setContent(html: string): Promise<void>
  close(): Promise<void>
}

export interface Dialog {
  type(): string
  accept(): Promise<void>
  dismiss(): Promise<void>
}

interface Response extends Answer {
  url(): string
  body(): Promise<Buffer>
}

export interface Locator {
  click(): Promise<void>
  dblclick(): Promise<void>
  check(): Promise<void>
  fill(text: string): Promise<void>
  focus(): Promise<void>
  press(key: string): Promise<void>
  selectOption(value: string): Promise<unknown>
  textContent(): Promise<string | null>
  inputValue(): Promise<string>
  getAttribute(name: string): Promise<string | null>
  getByText: Page['getByText']
  isVisible(): Promise<boolean>
  isDisabled(): Promise<boolean>
  count(): Promise<number>
  first(): Locator
  last(): Locator
  nth(index: number): Locator
  locator(selector: string): Locator
  getByRole: Page['getByRole']
  filter(options: { hasText: string | RegExp }): Locator
  waitFor(options?: { state?: 'visible' | 'hidden' | 'attached' | 'detached' }): Promise<void>
}

const requireTool = createRequire(join(import.meta.dirname, '../../../../tools/install.ts'))

/** No sandbox and no GPU, which containers for tests do not provide, and no use of /dev/shm, which is small there. */
const FLAGS = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']

let browser: Promise<Browser> | undefined

/**
 * One Chromium for all tests of a process, closed after the last one. Call it once per file, outside of tests. The
 * returned function skips the test and resolves with undefined if playwright-core or Chromium cannot be installed.
 */
export function sharedBrowser(): (t: TestContext) => Promise<Browser | undefined> {
  after(async () => (await browser)?.close())
  return async t => {
    const playwright = await tool(t, 'playwright-core')
    const chromium = playwright && (await tool(t, 'chromium'))
    if (!chromium) return undefined
    browser ??= launch(chromium)
    const openedBrowser = await browser
    // An open page would keep rendering, and requesting from a server that was closed.
    t.after(() => Promise.all(openedBrowser.contexts().map(context => context.close())))
    return openedBrowser
  }
}

/** @param chromium the path of the program */
export async function launch(chromium: string): Promise<Browser> {
  const { chromium: engine } = requireTool('playwright-core')
  return engine.launch({ executablePath: chromium, args: FLAGS })
}

/** The source of axe-core, to be run inside a page; undefined if the test was skipped. */
export async function axeSource(t: TestContext): Promise<string | undefined> {
  return (await tool(t, 'axe-core')) && requireTool('axe-core/axe.min.js').source
}
