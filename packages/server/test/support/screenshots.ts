import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tool } from '../../../../tools/install.ts'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { loadConfig } from '../../src/config.ts'
import { createLocalizations } from '../../src/languages/localization.ts'
import { createMailWriter } from '../../src/mail/templates/mail-writer.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { devicePath } from './all-pages.ts'
import { authorizePath, newVerifier, registerShop } from './authorize.ts'
import { type BrowserContext, launch, type Page } from './browser.ts'
import { createJourney } from './journey.ts'
import { EXAMPLES } from './mail-previews.ts'
import { createWorld, playTask, SUPPORT_TASKS } from './support-tasks.ts'
import { askForLink, startWeb, type WebServer } from './web.ts'

/*
 * `npm run screenshots`: screenshots of every page and mail, at phone and desktop size, in light and dark mode, into
 * /screenshots (ignored by git). An argument selects those whose name contains it; `readme` renews those of README.md
 * in docs/images.
 */

const FOLDER = fileURLToPath(new URL('../../../../screenshots', import.meta.url))
const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } }
const SCHEMES = ['light', 'dark'] as const
/** Resolves when the page was drawn at its new size and has scrolled to its place. */
const UNTIL_DRAWN = 'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))'
const ADA = 'ada@example.com'
const nameFilter = process.argv[2] ?? ''
const IMAGES_FOLDER = fileURLToPath(new URL('../../../../docs/images', import.meta.url))
const README_IMAGES: Readonly<Record<string, string>> = {
  '10-key-live-desktop-light.png': 'new-key.png',
  '13-keys-desktop-light.png': 'keys.png',
  'mail-login-desktop-light.png': 'mail.png',
}

await run()

async function run(): Promise<void> {
  const throwingContext = { skip: (why: string) => Promise.reject(new Error(why)) } as unknown as TestContext
  await tool(throwingContext, 'playwright-core')
  const browser = await launch((await tool(throwingContext, 'chromium'))!)
  if (!nameFilter) await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  const web = await startWeb(null, { KEYWAY_MAGIC_LINK_LIMITS: '4/minute' })
  try {
    const context = await browser.newContext({
      viewport: SIZES.desktop,
      timezoneId: 'Europe/London',
      locale: 'en-GB',
    })
    context.setDefaultTimeout(10_000)
    const page = await context.newPage()
    await capturePages(page, context, web)
    await captureMails(await context.newPage())
  } finally {
    await browser.close()
    await web.close()
  }
}

async function capturePages(page: Page, context: BrowserContext, web: WebServer): Promise<void> {
  const open = (path: string) => page.goto(web.url + path)
  await open('/sign-in')
  await capture(page, '01-sign-in')
  await page.getByLabel('E-mail address').fill('ada')
  await page.evaluate('document.querySelector("form").noValidate = true')
  await page.getByLabel('E-mail address').press('Enter')
  await page.waitForLoadState('load')
  await capture(page, '02-sign-in-problem')

  const firstMail = await askForLink(page, web, ADA)
  await capture(page, '03-check-mail')
  await page.goto(`${firstMail.link!}`.replace(/token=./, 'token=_'))
  await capture(page, '04-verify-invalid')

  const otherContext = await context.browser().newContext({ viewport: SIZES.desktop })
  otherContext.setDefaultTimeout(10_000)
  const otherBrowserPage = await otherContext.newPage()
  await otherBrowserPage.goto(firstMail.link!)
  await capture(otherBrowserPage, '05-verify-elsewhere')
  await page.goto(firstMail.link!)
  await page.waitForURL(/\/keys/)
  await capture(page, '06-keys-empty')
  await otherBrowserPage.goto(firstMail.link!)
  await capture(otherBrowserPage, '07-verify-used')
  for (let sent = 1; sent < 4; sent++) await askForLink(otherBrowserPage, web, ADA)
  await otherBrowserPage.goto(`${web.url}/check-mail`)
  // The button is disabled until its countdown ends.
  await otherBrowserPage.evaluate('document.querySelector("#resend").form.requestSubmit()')
  await otherBrowserPage.getByRole('alert').waitFor()
  await capture(otherBrowserPage, '08-check-mail-limited')
  await otherContext.close()

  await captureKeys(page, web)
  await open('/sessions')
  await capture(page, '20-sessions')
  await captureApps(page, web)
  for (const section of ['', '/balance', '/usage', '/apps', '/events']) {
    await open(`/account${section}`)
    await capture(page, `21-account${section.replace('/', '-')}`)
  }
  await open('/account/delete')
  await capture(page, '21-account-delete')
  await captureAdministration(page, web)
  await open('/inbox')
  await capture(page, '22-inbox')
  await page
    .getByRole('link', { name: /Create your/ })
    .first()
    .click()
  await page.waitForLoadState('networkidle')
  await capture(page, '23-mail')
  await page.getByRole('link', { name: 'Text', exact: true }).click()
  await capture(page, '24-mail-text')
  await open('/nothing-here')
  await capture(page, '25-not-found')
  for (const [name, path] of [
    ['quickstart', '/docs'],
    ['guide', '/docs/agents'],
    ['call', '/docs/call/updateApiKey'],
    ['search', '/docs/search?q=revoke'],
    ['error', '/errors/rate_limited'],
  ] as const) {
    await open(path)
    await capture(page, `60-docs-${name}`)
  }
}

async function captureApps(page: Page, web: WebServer): Promise<void> {
  await registerShop(web)
  await page.goto(web.url + authorizePath(newVerifier().challenge))
  await capture(page, '30-consent')
  await page.goto(`${web.url}/device`)
  await capture(page, '31-device')
  await page.goto(web.url + (await devicePath(web)))
  await capture(page, '32-device-approve')
}

async function captureAdministration(page: Page, web: WebServer): Promise<void> {
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  await services.users.setRole(user.id, 'admin', BY_COMMAND_LINE)
  for (const name of [
    '',
    'users',
    'keys',
    'agents',
    'apps',
    'apps/console',
    'register-app',
    'mails',
    'webhooks',
    'invitations',
    'policies',
    'nodes',
    'audit',
    `users/${user.id}`,
  ]) {
    await page.goto(`${web.url}/admin/${name}`.replace(/\/$/, ''))
    await capture(
      page,
      `40-admin-${name.startsWith('users/') ? 'person' : name.replace('/', '-') || 'overview'}`,
    )
  }
  for (const task of SUPPORT_TASKS)
    await playTask(createWorld(web), page, task, (at, name) => capture(at, `50-${name}`))
}

async function captureKeys(page: Page, web: WebServer): Promise<void> {
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  const caller = { address: '127.0.0.1', network: '127.0.0.1', client: null }
  const dayMs = 86_400_000
  const create = (name: string | null, scopes: string[] = [], expiresIn: number | null = null) =>
    services.apiKeys.create(
      user.id,
      {
        name,
        scopes: toScopes(scopes),
        appId: 'service-sdk',
        allowedNetworks: [],
        expiresAt: expiresIn && services.clock.now() + expiresIn,
      },
      caller,
    )
  await page.getByLabel('Name').first().fill('living-room robot')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.waitForURL(/\/keys/)
  await page.locator('#new-key').waitFor()
  await capture(page, '10-key-created')
  const key = (await page.locator('#new-key').textContent())!
  const journey = createJourney(web.url)
  const sockets = [await journey.connect(await journey.exchange(key))]
  await page.locator('.live.on').waitFor()
  await capture(page, '10-key-live')
  for (const socket of sockets.splice(0)) socket.terminate()
  await page.goto(`${web.url}/agents`)
  await capture(page, '11-agents-empty')

  const robot = await create(
    'Warehouse picker, aisle 12',
    ['agent:connect', 'agents:send', 'agents:read'],
    9 * dayMs,
  )
  await create(
    'A key with a very long name that somebody typed in one go because nobody told them that names are short',
    ['agent:connect'],
  )
  await create(null, ['account:read', 'billing.invoices:read'])
  const revokedKey = await create('Old laptop')
  await services.apiKeys.revoke(user.id, revokedKey.apiKey.id, caller)
  const rotatedKey = await create('Build server')
  await services.apiKeys.rotate(user.id, rotatedKey.apiKey.id, 86_400, caller)
  for (const each of [key, key, robot.key]) sockets.push(await journey.connect(await journey.exchange(each)))
  await page.goto(`${web.url}/agents`)
  await capture(page, '12-agents')
  await page.goto(`${web.url}/keys`)
  await capture(page, '13-keys')
  await page.goto(`${web.url}/keys/new`)
  await page.getByLabel('Only what I choose').check()
  await page.getByLabel('On a date').focus()
  await page.keyboard.press('Space')
  await capture(page, '14-keys-create')
  await page.goto(`${web.url}/keys/${robot.apiKey.id}`)
  await capture(page, '15-key')
  await page.goto(`${web.url}/keys/${robot.apiKey.id}/revoke`)
  await capture(page, '16-key-revoke')
  for (let made = 0; made < 92; made++)
    await create(`Robot ${String(made + 1).padStart(3, '0')}`, made % 3 ? ['agent:connect'] : [])
  await page.goto(`${web.url}/keys`)
  await capture(page, '17-keys-hundred')
  for (const socket of sockets) socket.terminate()
}

/** @param page one that has shown no web page, whose Content-Security-Policy would block the styles of mails */
async function captureMails(page: Page): Promise<void> {
  const write = createMailWriter({
    localizations: createLocalizations(),
    productName: 'Keyway',
    supportEmail: 'support@example.com',
    publicUrl: 'https://keyway.example.com',
    brand: loadConfig({}).brand,
  })
  for (const content of EXAMPLES) {
    for (const hasAccount of content.kind === 'sign_in' ? [false, true] : [true]) {
      const recipient = parseEmailAddress(ADA)!
      const id = '0190a5b8-7c3e-7abc-8def-0123456789ab'
      const mail = await write({ id, recipient, content, locale: null }, hasAccount)
      await page.setContent(mail.html)
      await capture(page, `mail-${mail.template}`)
    }
  }
}

async function capture(page: Page, name: string): Promise<void> {
  for (const [sizeName, size] of Object.entries(SIZES)) {
    for (const colorScheme of SCHEMES) {
      const file = `${name}-${sizeName}-${colorScheme}.png`
      const path = pathOf(file)
      if (path === null) continue
      await page.setViewportSize(size)
      await page.emulateMedia({ colorScheme })
      await page.evaluate(UNTIL_DRAWN)
      await page.screenshot({ path, fullPage: true })
    }
  }
}

/** Where to write a screenshot; null if the argument of the command line does not select it. */
function pathOf(file: string): string | null {
  if (nameFilter === 'readme') return README_IMAGES[file] ? join(IMAGES_FOLDER, README_IMAGES[file]) : null
  return file.includes(nameFilter) ? join(FOLDER, file) : null
}
