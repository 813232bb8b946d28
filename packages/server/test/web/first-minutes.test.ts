import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { WebSocket } from 'ws'
import { type Page, sharedBrowser } from '../support/browser.ts'
import { closeCode, createJourney } from '../support/journey.ts'
import { askForLink, newPerson, signIn, startWeb, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()

async function connect(web: WebServer, key: string): Promise<WebSocket> {
  const journey = createJourney(web.url)
  return journey.connect(await journey.exchange(key))
}

async function createKey(page: Page, name: string): Promise<string> {
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.locator('#new-key').waitFor()
  await page.waitForLoadState('load')
  return (await page.locator('#new-key').textContent())!
}

test('a new user signs in, creates a key, connects an agent and revokes the key', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { context, page } = await newPerson(browser, { permissions: ['clipboard-write'] })
  const pageErrors: string[] = []
  page.on('console', message => message.type() === 'error' && pageErrors.push(message.text()))
  page.on('pageerror', error => pageErrors.push(error.message))

  const mail = await askForLink(page, web, 'ada@example.com')
  assert.match(await page.content(), /ada@example\.com/)
  const mailTab = await context.newPage()
  await mailTab.goto(mail.link!)
  await mailTab.waitForURL(/\/keys$/)
  await mailTab.getByText('Your account is ready').waitFor()
  await page.waitForURL(/\/keys$/) // the waiting tab continues by itself
  await mailTab.close()

  const key = await createKey(page, 'living-room robot')
  assert.match(key, /^svc_[0-9A-Za-z]{32}$/)
  await page.getByText('Waiting for your first agent').waitFor()
  assert.match((await page.locator('#run-node').textContent())!, new RegExp(`KEYWAY_API_KEY=${key} npx`))
  const agent = await connect(web, key)
  await page.locator('#live-card').getByText('Connected. Your agent is live.').waitFor()
  await page.locator('[data-copy=new-key]').click()

  await page.getByRole('link', { name: 'Agents', exact: true }).first().click()
  await page.getByRole('link', { name: 'living-room robot', exact: true }).waitFor()
  const message = once(agent, 'message')
  await page.getByRole('button', { name: 'Say hello to living-room robot' }).click()
  const { id, from } = JSON.parse(String((await message)[0]))
  agent.send(JSON.stringify({ type: 'send', id: '1', to: from, reply_to: id, data: { result: '<b>Hi</b>' } }))
  await page.locator('.answer').getByText('<b>Hi</b>').waitFor()

  await page.goto(`${web.url}/keys`)
  await page.getByRole('link', { name: 'Revoke living-room robot' }).click()
  await page.getByText('1 connected agent is disconnected').waitFor()
  const closed = closeCode(agent)
  await page.getByRole('button', { name: 'Revoke this key' }).click()
  assert.equal(await closed, 4410)
  await page.getByText('The key was revoked.').waitFor()
  await page.locator('tr.key.revoked').waitFor()
  assert.deepEqual(pageErrors, [])
})

test('a user without scripts signs in, creates a key and revokes it', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, { javaScriptEnabled: false })

  await signIn(page, web, 'ada@example.com')
  const key = await createKey(page, 'no scripts')
  const agent = await connect(web, key)
  await page.getByRole('link', { name: 'I have saved the key' }).click()
  await page.getByRole('link', { name: 'Revoke no scripts' }).click()
  const closed = closeCode(agent)
  await page.getByRole('button', { name: 'Revoke this key' }).click()
  assert.equal(await closed, 4410)
  await page.getByText('The key was revoked').waitFor()
})

test('the page of a mailed link signs in by its button without scripts', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, { javaScriptEnabled: false })

  const { link } = await askForLink(page, web, 'ada@example.com')
  await page.goto(link!)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/keys/)
})

test('a key can be created with name, scopes and expiry, renamed and rotated on the pages', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, 'ada@example.com')

  await page.getByLabel('Name').fill('picker')
  await page.getByLabel('Only what I choose').check()
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByText('Choose at least one scope').waitFor()
  await page.waitForLoadState('load')
  assert.equal(await page.getByLabel('Name').inputValue(), 'picker')
  await page.getByLabel('agent:connect').check()
  await page.locator('label[for="expiry-7"]').click()
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('link', { name: 'I have saved the key' }).click()
  await page.waitForURL(/\/keys$/)
  const row = page.locator('tr.key').first()
  assert.match((await row.textContent())!, /picker[\s\S]*Connect agents[\s\S]*Never[\s\S]*soon[\s\S]*Active/)

  await page.getByRole('link', { name: 'picker', exact: true }).click()
  await page.getByLabel('Name').fill('picker two')
  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByRole('heading', { name: 'picker two' }).waitFor()
  await page.getByLabel('The old key works for').selectOption('3600')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  await page.getByText('The old key works until').waitFor()
  await page.goto(`${web.url}/keys?status=active`)
  assert.equal(await page.locator('tr.key').count(), 2)
  assert.match((await page.locator('tr.key').last().textContent())!, /Replaced/)
  await page.goto(`${web.url}/keys?status=revoked`)
  assert.equal(await page.locator('tr.key').count(), 0)
})

test('reloading the page of a new key creates no second key', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, 'ada@example.com')
  const key = await createKey(page, 'only once')
  await page.getByRole('link', { name: 'I have saved the key' }).click()
  await page.goBack()
  await page.reload()
  await page.getByRole('heading', { name: 'only once' }).waitFor()
  assert.ok(!(await page.content()).includes(key))
  await page.goto(`${web.url}/keys`)
  assert.equal(await page.locator('tr.key').count(), 1)
})

test('another mail can be requested after the pause, which the page counts down', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await page.clock.install()
  await askForLink(page, web, 'ada@example.com')
  assert.ok(await page.getByRole('button', { name: 'Send again' }).isDisabled())
  assert.match((await page.locator('.countdown').textContent())!, /You can send again in 0:\d\d\./)
  await page.clock.runFor(16_000)
  await page.getByRole('button', { name: 'Send again' }).click()
  await page.getByText('A new mail is on its way.').waitFor()
  await web.mails('ada@example.com', 2)
})

test('a printed page contains no key, and scripts cannot read the session token', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { context, page } = await newPerson(browser)
  await signIn(page, web, 'ada@example.com')
  const key = await createKey(page, 'secret')

  await page.emulateMedia({ media: 'print' })
  assert.ok(!(await page.evaluate<string>('document.body.innerText')).includes(key))
  const scriptReadableState = await page.evaluate<string>(
    'JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])',
  )
  assert.equal(scriptReadableState, '[{},{},""]')
  for (const cookie of await context.cookies()) {
    assert.ok(cookie.httpOnly && cookie.sameSite === 'Lax', cookie.name)
  }
})
