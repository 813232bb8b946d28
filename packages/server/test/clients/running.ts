import type { TestContext } from 'node:test'
import type { Page } from '../support/browser.ts'
import type { EngineName } from '../support/engines.ts'
import { createEmptyDatabase } from '../support/postgres.ts'
import { address, caller, type SignedInUser } from '../support/services.ts'
import { startWeb, typeCode, type WebServer } from '../support/web.ts'

export { PYTHON, packageMissing } from '../support/missing-servers.ts'

/** Starts the whole service on a port of this machine, for tests with third-party clients. */
export async function startRunning(
  engine: EngineName,
  t: TestContext,
  settings: Record<string, string> = {},
): Promise<WebServer> {
  if (engine === 'sqlite') return startWeb(t, settings)
  const { url, drop } = await createEmptyDatabase()
  const web = await startWeb(null, {
    KEYWAY_DATABASE_URL: url,
    KEYWAY_SECRET: Buffer.alloc(32, 7).toString('base64'),
    ...settings,
  })
  t.after(async () => {
    await web.close()
    await drop()
  })
  return web
}

/** Signs a person in with the code of a mail. */
export async function newPerson({ url, server, mails }: WebServer, email: string): Promise<SignedInUser> {
  const { magicLinks } = server.services
  const mailCountBefore = (await mails(email, 0)).length
  const { loginId } = await magicLinks.send({ email: address(email), appId: 'console' }, caller('127.0.0.1'))
  const [mail] = await mails(email, mailCountBefore + 1)
  if (!mail?.code) throw new Error(`no code came from ${url}`)
  return magicLinks.verify({ loginId, code: mail.code, email: address(email) }, 'api', caller('127.0.0.1'))
}

/** Signs a person in with the code of a mail, on the sign-in page to which the browser was redirected. */
export async function signInOnPage(page: Page, web: WebServer, email: string): Promise<void> {
  const mailCountBefore = (await web.mails(email, 0)).length
  await page.waitForURL('**/sign-in**')
  await page.getByLabel('E-mail address').fill(email)
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.waitForURL('**/check-mail')
  const [mail] = await web.mails(email, mailCountBefore + 1)
  await typeCode(page, mail!.code!)
  await page.waitForURL(({ pathname }) => pathname !== '/check-mail')
}
