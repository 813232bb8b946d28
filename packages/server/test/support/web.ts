import type { TestContext } from 'node:test'
import { loadConfig, loadOrCreateSecret } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import type { Browser, BrowserContext, Page } from './browser.ts'
import { type EngineName, writeMigratedSqlite } from './engines.ts'
import { freshPostgres, NODE_SECRET } from './nodes.ts'
import { patienceMs, until } from './patience.ts'
import { closeAtOnce, temporaryFolder } from './serve.ts'

export interface Mail {
  id: string
  to: string
  subject: string
  template: string
  link: string | null
  code: string | null
}

export interface WebServer {
  url: string
  server: RunningServer
  /** Waits for at least this many mails with a link to an address; returns all with a link, newest first. */
  mails(to: string, atLeast?: number): Promise<Mail[]>
  close(): Promise<void>
}

/** The whole service on an empty database, as `npm start` runs it; closed after the test `t`. */
export async function startWeb(
  t: TestContext | null,
  settings: Record<string, string> = {},
): Promise<WebServer> {
  const folder = temporaryFolder()
  const config = loadOrCreateSecret(
    loadConfig({
      KEYWAY_DATA_DIR: folder.path,
      KEYWAY_PORT: '0',
      KEYWAY_LOG_LEVEL: 'error',
      KEYWAY_MAGIC_LINK_LIMITS: '1000/minute',
      KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
      ...settings,
    }),
  )
  if (config.database.engine === 'sqlite') await writeMigratedSqlite(config.dataDir)
  const server = await startServer(config, { log: createLog(config.logLevel), announce: () => {} })
  const close = async () => {
    await server.close()
    folder.remove()
  }
  t?.after(async () => {
    await closeAtOnce(server)
    folder.remove()
  })
  return { url: server.url, server, close, mails: (to, atLeast = 1) => mailsOf(server.url, to, atLeast) }
}

function mailsOf(url: string, to: string, atLeast: number): Promise<Mail[]> {
  return until(`${atLeast} mails for ${to}`, async () => {
    const answer = await fetch(`${url}/inbox?to=${encodeURIComponent(to)}`, {
      headers: { accept: 'application/json' },
    })
    const { data } = (await answer.json()) as { data: Mail[] }
    const signIns = data.filter(mail => mail.link !== null)
    return signIns.length >= atLeast ? signIns : undefined
  })
}

/** Requests a link on /sign-in, and waits for /check-mail and the mail. */
export async function askForLink(page: Page, web: WebServer, email: string): Promise<Mail> {
  const mailCountBefore = (await web.mails(email, 0)).length
  await page.goto(`${web.url}/sign-in`)
  await page.getByLabel('E-mail address').fill(email)
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.waitForURL('**/check-mail')
  const [mail] = await web.mails(email, mailCountBefore + 1)
  return mail!
}

/** Signs in through the pages, as a person would. */
export async function signIn(page: Page, web: WebServer, email: string): Promise<void> {
  const { code } = await askForLink(page, web, email)
  await typeCode(page, code!)
  await page.waitForURL(/\/keys/)
}

/** Types the code of a mail on /check-mail, which the page submits by itself if scripts run. */
export async function typeCode(page: Page, code: string): Promise<void> {
  const submitsItself = (await page.locator('html.js').count()) > 0
  await page.getByLabel('Code from the mail').fill(code)
  if (!submitsItself) await page.getByRole('button', { name: 'Sign in' }).click()
}

/** A new browser context for one person, which shares nothing with other tests. */
export async function newPerson(
  browser: Browser,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(patienceMs(20_000))
  return { context, page: await context.newPage() }
}

/** Settings for a fresh database of this engine. */
export async function engineSettings(engine: EngineName, t: TestContext): Promise<Record<string, string>> {
  if (engine === 'sqlite') return {}
  return { KEYWAY_DATABASE_URL: await freshPostgres(t), KEYWAY_SECRET: NODE_SECRET }
}
