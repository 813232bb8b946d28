import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { sharedBrowser } from '../support/browser.ts'
import { forEachEngine } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { skipWithout } from '../support/missing-servers.ts'
import { startProgram } from '../support/programs.ts'
import { newPerson } from '../support/web.ts'
import { EXAMPLES_FOLDER } from './example.ts'
import { signInOnPage, startRunning } from './running.ts'

const openBrowser = sharedBrowser()
const APACHE = '/usr/sbin/apache2'
const isInstalled = existsSync(APACHE) && existsSync('/usr/lib/apache2/modules/mod_auth_openidc.so')
const skip = skipWithout(isInstalled, 'libapache2-mod-auth-openidc is not installed here')

forEachEngine(engine => {
  test('Apache with mod_auth_openidc signs a browser in, in front of a site without OAuth', {
    skip,
  }, async t => {
    const browser = await openBrowser(t)
    if (!browser) return
    const web = await startRunning(engine, t)
    const port = await freePort()
    const site = `http://localhost:${port}`
    const { secret } = await web.server.services.apps.register({
      id: 'wiki',
      name: 'The Wiki',
      redirectUris: [`${site}/.keyway/callback`],
      trusted: true,
    })
    await startProgram(
      t,
      [APACHE, '-DFOREGROUND', '-f', join(EXAMPLES_FOLDER, 'apache/httpd.conf')],
      {
        KEYWAY_URL: web.url,
        KEYWAY_APP_ID: 'wiki',
        KEYWAY_APP_SECRET: secret!,
        COOKIE_SECRET: 'a secret of this test',
        PORT: String(port),
        UPSTREAM: await startSite(t),
        RUN_DIR: writableFolder(t),
      },
      /resuming normal operations/,
    )

    const { page } = await newPerson(browser)
    await page.goto(`${site}/pages/start?mode=plain`)
    await signInOnPage(page, web, 'ada@example.com')
    await page.waitForURL(`${site}/pages/start?mode=plain`)
    assert.match((await page.locator('body').textContent())!, /^ada@example\.com sees \/pages\/start/)
    await page.goto(`${site}/other`)
    assert.match((await page.locator('body').textContent())!, /^ada@example\.com sees \/other/)

    // A header that the client itself sends is not trusted.
    const forgedAnswer = await fetch(`${site}/other`, { headers: { OIDC_CLAIM_email: 'eve@example.com' } })
    assert.equal(forgedAnswer.status, 401)
  })
})

/** The protected site, which trusts the headers that Apache adds. */
async function startSite(t: TestContext): Promise<string> {
  const server = createServer(({ headers, url }, response) => {
    response.end(`${headers.oidc_claim_email ?? 'nobody'} sees ${url}`)
  }).listen(0, '127.0.0.1')
  t.after(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A temporary folder that is writable for the user to which Apache switches. */
function writableFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'keyway-apache-'))
  chmodSync(path, 0o777)
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}
