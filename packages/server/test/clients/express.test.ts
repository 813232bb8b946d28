import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedBrowser } from '../support/browser.ts'
import { forEachEngine } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/patience.ts'
import { newPerson, type WebServer } from '../support/web.ts'
import { installExample, startExample } from './example.ts'
import { signInOnPage, startRunning } from './running.ts'

const openBrowser = sharedBrowser()
const ADA = 'ada@example.com'
const PRIVATE_NETWORKS = { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8,::1/128' }

forEachEngine(engine => {
  test('the example with Express and openid-client signs people in and out, of its own session and at Keyway', async t => {
    const browser = await openBrowser(t)
    if (!browser || !(await installExample(t, 'express'))) return
    const web = await startRunning(engine, t)
    const { origin, port, secret } = await registerProduct(web, '/callback')
    await startExample(t, ['express', 'server.mjs'], settingsOf(web, port, secret))

    const { page } = await newPerson(browser)
    await page.goto(origin)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await signInOnPage(page, web, ADA)
    await page.getByText(`Hello, ${ADA}.`).waitFor()
    await page.goto(`${origin}/callback?code=nonsense&state=nonsense`)
    assert.match((await page.locator('body').textContent())!, /Begin at|That did not work/)
    await page.goto(origin)
    await page.getByText(`Hello, ${ADA}.`).waitFor()

    // The browser is signed in at Keyway already, so no mail is needed.
    await page.goto(`${origin}/login`)
    await page.getByText(`Hello, ${ADA}.`).waitFor()

    await page.getByRole('link', { name: 'Sign out' }).click()
    await page.getByText('Hello, stranger.').waitFor()
    await page.goto(`${web.url}/keys`)
    await page.waitForURL('**/sign-in**')
  })

  test('the example with Express ends the session of a person who signed out at Keyway, and no other', async t => {
    const browser = await openBrowser(t)
    if (!browser || !(await installExample(t, 'express'))) return
    const web = await startRunning(engine, t, PRIVATE_NETWORKS)
    const { origin, port, secret } = await registerProduct(web, '/callback')
    await startExample(t, ['express', 'server.mjs'], settingsOf(web, port, secret))
    const signIn = async (email: string) => {
      const { page } = await newPerson(browser)
      await page.goto(`${origin}/login`)
      await signInOnPage(page, web, email)
      await page.getByText(`Hello, ${email}.`).waitFor()
      return page
    }
    const [ada, eve] = [await signIn(ADA), await signIn('eve@example.com')]
    const forgedToken = new URLSearchParams({ logout_token: 'nonsense' })
    const forgedAnswer = await fetch(`${origin}/backchannel-logout`, { method: 'POST', body: forgedToken })
    assert.equal(forgedAnswer.status, 400)

    await ada.goto(`${web.url}/keys`)
    await ada.getByRole('button', { name: 'Sign out' }).click()
    await ada.waitForURL('**/sign-in**')
    await until('the product has ended the session', async () => {
      await ada.goto(origin)
      return (await ada.locator('body').textContent())!.includes('Hello, stranger.')
    })
    await eve.goto(origin)
    await eve.getByText('Hello, eve@example.com.').waitFor()
  })

  test('the example with Auth.js signs people in', async t => {
    const browser = await openBrowser(t)
    if (!browser || !(await installExample(t, 'authjs'))) return
    const web = await startRunning(engine, t)
    const { origin, port, secret } = await registerProduct(web, '/auth/callback/keyway')
    const env = { ...settingsOf(web, port, secret), AUTH_SECRET: 'a secret of this test' }
    await startExample(t, ['authjs', 'server.mjs'], env)

    const { page } = await newPerson(browser)
    await page.goto(origin)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: /Keyway/ }).click()
    await signInOnPage(page, web, ADA)
    await until('Auth.js knows the person', async () => {
      await page.goto(origin)
      return (await page.locator('body').textContent())!.includes(`Hello, ${ADA}.`)
    })
  })
})

async function registerProduct(web: WebServer, callback: string) {
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const { secret } = await web.server.services.apps.register({
    id: 'product',
    name: 'The Product',
    redirectUris: [origin + callback],
    logoutUris: [`${origin}/`],
    backchannelLogoutUri: `${origin}/backchannel-logout`,
    trusted: true,
  })
  return { origin, port, secret: secret! }
}

function settingsOf({ url }: WebServer, port: number, secret: string): Record<string, string> {
  return { KEYWAY_URL: url, KEYWAY_APP_ID: 'product', KEYWAY_APP_SECRET: secret, PORT: String(port) }
}
