import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { axeSource, type Browser, type Page, sharedBrowser } from '../support/browser.ts'
import { createJourney } from '../support/journey.ts'
import { askForLink, newPerson, signIn, startWeb, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()

const ADA = 'ada@example.com'
const MAX_PAGE_BYTES = 60 * 1024

const RUN_AXE =
  "axe.run(document, {iframes: false, resultTypes: ['violations'], runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']})"

interface Axe {
  passes: unknown[]
  violations: { id: string; nodes: { html: string }[] }[]
}

/** Opens every page with data: keys of every status, live agents, mail. */
async function openPages(
  t: TestContext,
  browser: Browser,
): Promise<{ web: WebServer; page: Page; paths: string[] }> {
  const web = await startWeb(t, { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' })
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  await services.users.setRole(user.id, 'admin', BY_COMMAND_LINE)
  await services.suppressions.record({ addresses: [ADA], reason: 'bounce' }, 'resend')
  const caller = { address: '127.0.0.1', network: '127.0.0.1', client: null }
  const wanted = { appId: 'service-sdk', allowedNetworks: [], scopes: null, name: 'robot', expiresAt: null }
  const live = await services.apiKeys.create(user.id, wanted, caller)
  const dead = await services.apiKeys.create(
    user.id,
    { ...wanted, name: null, scopes: toScopes(['agents:read']) },
    caller,
  )
  await services.apiKeys.rotate(user.id, live.apiKey.id, 3600, caller)
  await services.apiKeys.revoke(user.id, dead.apiKey.id, caller)
  const journey = createJourney(web.url)
  const socket = await journey.connect(await journey.exchange(live.key))
  t.after(() => socket.terminate())
  const webhooks = await services.webhooks()
  const endpoint = { url: `http://127.0.0.1:1/${'long'.repeat(40)}`, events: [] }
  const { webhook } = await webhooks.create(endpoint, BY_COMMAND_LINE)
  await services.users.rename(user.id, 'Ada')
  const { id: mailId } = (await web.mails(ADA))[0]!
  const key = `/keys/${live.apiKey.id}`
  const paths = [
    ...[
      '/keys',
      '/keys/new',
      key,
      `${key}/revoke`,
      `${key}/live`,
      '/keys?status=expired',
      '/agents',
      '/sessions',
      '/account',
      '/account/delete',
      '/account/email?token=x',
    ],
    ...[
      '',
      '?period=quarter',
      '/users',
      '/users?query=nobody@',
      `/users/${user.id}`,
      `/users/${user.id}?show=ledger`,
      '/keys',
      `/keys/${live.apiKey.id}`,
      '/keys?filter=unused',
      '/agents',
    ]
      .concat([
        '/apps',
        '/apps/console',
        '/apps?kind=self',
        '/register-app',
        '/webhooks',
        `/webhooks/${webhook.id}`,
        '/invitations',
        '/policies',
        '/mails',
        '/mails?state=sent',
        '/nodes',
        '/nodes?check=all',
        '/audit',
        '/confirm',
      ])
      .map(path => `/admin${path}`),
    ...['/inbox', `/inbox/${mailId}`, `/inbox/${mailId}?view=text`, '/nowhere'],
  ]
  return { web, page, paths: paths.map(path => web.url + path) }
}

/** The pages before sign-in, and those with empty lists. */
async function openFirstPages(t: TestContext, browser: Browser): Promise<{ page: Page; paths: string[] }> {
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const { link } = await askForLink(page, web, 'bob@example.com')
  const { page: stranger } = await newPerson(browser)
  await stranger.goto(`${web.url}/sign-in`)
  await askForLink(stranger, web, 'carol@example.com')
  const paths = ['/sign-in', '/check-mail', '/inbox', link!.slice(web.url.length), '/verify?token=x&email=y']
  return { page: stranger, paths: paths.map(path => web.url + path) }
}

test('axe finds no violation on any page, in light mode on a desktop and in dark mode on a phone', async t => {
  const browser = await openBrowser(t)
  const axe = browser && (await axeSource(t))
  if (!axe) return
  for (const { page, paths } of [await openFirstPages(t, browser), await openPages(t, browser)]) {
    for (const path of paths) {
      await page.goto(path)
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
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
        assert.ok(overflow <= 0, `${path} is ${overflow} px wider than ${width}`)
      }
    }
  }
})

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

test('each page loads under 60 KB and without layout shift', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  for (const { page, paths } of [await openFirstPages(t, browser), await openPages(t, browser)]) {
    for (const path of paths) {
      const bodies: Promise<Buffer>[] = []
      const fresh = await page.context().newPage()
      await fresh.addInitScript({ content: WATCH_SHIFTS })
      fresh.on('response', answer => {
        if (answer.headers()['content-type'] !== 'text/event-stream') bodies.push(answer.body())
      })
      await fresh.goto(path)
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
      assert.ok(total > 0 && total < MAX_PAGE_BYTES, `${path} weighs ${total} bytes`)
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
      await page.goto(path)
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
