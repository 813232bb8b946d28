import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Agent } from '@keyway/sdk'
import { axeSource, type Page, sharedBrowser } from '../support/browser.ts'
import { createJourney } from '../support/journey.ts'
import { newPerson, signIn, startWeb, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()

const PHONE = { width: 390, height: 844 }
const DESKTOP = { width: 1280, height: 800 }
const CLIPBOARD_PERMISSIONS = ['clipboard-read', 'clipboard-write']

async function createKey(page: Page, name: string): Promise<string> {
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.locator('#new-key').waitFor()
  // The script of the page changes its URL before it has loaded.
  await page.waitForLoadState('load')
  return (await page.locator('#new-key').textContent())!
}

async function openNewKey(web: WebServer, page: Page): Promise<string> {
  await signIn(page, web, 'ada@example.com')
  return createKey(page, 'robot')
}

async function playFirstMinute(
  t: TestContext,
  { viewport, javaScriptEnabled }: { viewport: typeof PHONE; javaScriptEnabled: boolean },
): Promise<void> {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { context, page } = await newPerson(browser, { javaScriptEnabled, viewport })
  const startedAt = performance.now()
  const key = await openNewKey(web, page)
  let liveTab = page
  if (!javaScriptEnabled) {
    // The context of the test disables scripts only in tabs that the test opens, not in those that a page opens.
    const path = await page.getByRole('link', { name: 'Open the live view' }).getAttribute('href')
    liveTab = await context.newPage()
    await liveTab.goto(web.url + path)
  }
  await liveTab.getByText('Waiting for your first agent').waitFor()

  const agent = new Agent({ url: web.url, apiKey: key })
  agent.onRequest(() => 'Hello from the test bench')
  t.after(() => agent.close())
  const pendingStopCode = new Promise(resolve => agent.on('stopped', ({ error }) => resolve(error?.code)))
  const card = liveTab.locator('#live-card')
  await card.getByText('Connected. Your agent is live.').waitFor()
  assert.match((await card.textContent())!, /Host(127\.0\.0\.1|::1)Programkeyway-sdk\/[\d.]+Connected/)

  await liveTab.getByRole('button', { name: 'Say hello' }).click()
  await card.getByText('Hello from the test bench').waitFor()
  assert.match((await card.textContent())!, /Latency\d+ ms/)
  await liveTab.locator('summary').filter({ hasText: 'Revoke' }).click()
  await liveTab.getByRole('button', { name: 'Revoke this key' }).click()
  await card.getByText(/Revoked\. The connection was closed after \d+ ms\./).waitFor()
  assert.equal(await pendingStopCode, 'revoked')
  t.diagnostic(`${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
}

test('the first minute, from sign-in to closed after revoke, on a phone with scripts', t =>
  playFirstMinute(t, { viewport: PHONE, javaScriptEnabled: true }))

test('the first minute, from sign-in to closed after revoke, on a phone without scripts', t =>
  playFirstMinute(t, { viewport: PHONE, javaScriptEnabled: false }))

test('the first minute, from sign-in to closed after revoke, on a desktop with scripts', t =>
  playFirstMinute(t, { viewport: DESKTOP, javaScriptEnabled: true }))

test('the first minute, from sign-in to closed after revoke, on a desktop without scripts', t =>
  playFirstMinute(t, { viewport: DESKTOP, javaScriptEnabled: false }))

test('leaving the page of a new key asks until the key was copied, and Back opens the key’s page', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, { permissions: CLIPBOARD_PERMISSIONS })
  const dialogs: string[] = []
  page.on('dialog', dialog => {
    dialogs.push(dialog.type())
    void dialog.dismiss()
  })
  const key = await openNewKey(web, page)
  assert.match(page.url(), /\/keys\/[0-9a-f-]{36}\?done=shown_once$/)

  await page.getByRole('link', { name: 'Account' }).click()
  await page.waitForFunction('true')
  assert.deepEqual(dialogs, ['beforeunload'])
  assert.equal(await page.locator('#new-key').textContent(), key)

  await page.getByRole('button', { name: 'Copy', exact: true }).first().click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(await page.evaluate<string>('navigator.clipboard.readText()'), key)
  await page.getByRole('link', { name: 'Account' }).click()
  await page.waitForURL(/\/account$/)
  assert.equal(dialogs.length, 1)

  await page.goBack()
  await page.getByText('The key itself was shown once').waitFor()
  assert.ok(!(await page.content()).includes(key))
  await page.reload()
  await page.getByRole('heading', { name: 'robot' }).waitFor()
  await page.goto(`${web.url}/keys`)
  assert.equal(await page.locator('tr.key').count(), 1)
})

test('after 20 seconds without an agent the page of a new key says what to check', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, 'ada@example.com')
  await page.clock.install()
  const key = await createKey(page, 'robot')
  const hint = page.getByText('Was the whole line pasted')
  assert.equal(await page.locator('[data-opens-after]').getAttribute('data-opens-after'), '20')
  // Real time passes too, several seconds on a busy machine.
  await page.clock.runFor(10_000)
  assert.equal(await hint.isVisible(), false)
  await page.clock.runFor(10_500)
  await hint.waitFor()
  assert.match((await page.locator('[data-announce]').textContent())!, /No agent has connected yet/)
  await page.getByRole('button', { name: 'Copy the line again' }).waitFor()
  const journey = createJourney(web.url)
  const socket = await journey.connect(await journey.exchange(key))
  t.after(() => socket.terminate())
  await page.locator('#live-card').getByText('Connected. Your agent is live.').waitFor()
  assert.equal(await hint.isVisible(), false)
})

test('each way to run an agent is shown by its tab, without scripts too', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, {
    javaScriptEnabled: false,
    viewport: { width: 320, height: 640 },
  })
  const key = await openNewKey(web, page)
  for (const [label, way, line] of [
    ['Python', 'python', /^KEYWAY_URL=\S+ KEYWAY_API_KEY=svc_\w{32} python3 -c 'import asyncio/],
    ['curl', 'curl', /^curl -sS .*\/auth\/agent-token/],
    ['Docker', 'docker', /^docker run --rm -it --network host/],
    ['Node', 'node', /^KEYWAY_URL=\S+ KEYWAY_API_KEY=svc_\w{32} npx -y \S+\/sdk\.tgz$/],
  ] as const) {
    await page.locator(`label[for="way-${way}"]`).click()
    const shownSnippet = page.locator(`#run-${way}`)
    assert.ok(await shownSnippet.isVisible(), label)
    const text = (await shownSnippet.textContent())!
    assert.match(text, line)
    assert.ok(text.includes(key))
  }
  assert.equal(await page.locator('#run-curl').isVisible(), false)
})

test('a page whose stream is lost is greyed out and says so, until it is connected again', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, 'ada@example.com')
  let isCut = true
  await page.route('**/agents/events*', route => (isCut ? route.abort() : route.continue()))
  await page.goto(`${web.url}/agents`)
  await page.locator('#agents.lost').waitFor()
  assert.equal(await page.locator('[data-announce]').textContent(), 'Reconnecting…')
  isCut = false
  await page.locator('#agents:not(.lost)').waitFor()
  assert.equal(await page.locator('[data-announce]').textContent(), '')
})

test('axe finds no violation on the page of a new key, while it waits and with a live agent', async t => {
  const browser = await openBrowser(t)
  const axe = browser && (await axeSource(t))
  if (!axe) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const key = await openNewKey(web, page)
  await page.evaluate(axe)
  const check = async () => {
    for (const [colorScheme, viewport] of [
      ['light', DESKTOP],
      ['dark', { width: 320, height: 640 }],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(viewport)
      const violations = await page.evaluate<string[]>(
        'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => id + nodes[0].html))',
      )
      assert.deepEqual(violations, [])
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      assert.ok(overflow <= 0, `${overflow} px wider than ${viewport.width}`)
    }
  }
  await check()
  const agent = new Agent({ url: web.url, apiKey: key })
  t.after(() => agent.close())
  await page.locator('#live-card .live.on').waitFor()
  await page.getByRole('button', { name: 'Say hello' }).click()
  await page.getByText('it answers no requests yet').first().waitFor()
  await page.locator('#live-card summary').click()
  await check()
})
