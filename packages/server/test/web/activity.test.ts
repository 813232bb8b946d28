import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedBrowser } from '../support/browser.ts'
import { createJourney } from '../support/journey.ts'
import { ADA, signedInClient } from '../support/page-client.ts'
import { newPerson, signIn, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

test('the list of keys has a dot for each key with a live agent, and keeps it up to date', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  const keys: string[] = []
  for (const name of ['first', 'second']) {
    await page.goto(`${web.url}/keys/new`)
    await page.getByLabel('Name').fill(name)
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.locator('#new-key').waitFor()
    keys.push((await page.locator('#new-key').textContent())!)
    await page.getByRole('link', { name: 'I have saved the key' }).click()
  }
  const row = (name: string) => page.locator('tr.key').filter({ hasText: name })
  const journey = createJourney(web.url)
  const agent = await journey.connect(await journey.exchange(keys[0]!))
  await row('first').locator('.dot.on').waitFor()
  assert.match((await row('first').textContent())!, /Connected now/)
  assert.equal(await row('second').locator('.dot.on').count(), 0)
  // The page itself marks connected keys; the stream of events only updates the marks.
  await page.reload()
  assert.equal(await row('first').locator('.dot.on').count(), 1)
  agent.close(1000)
  await row('first').locator('.dot:not(.on)').waitFor({ state: 'attached' })
  assert.doesNotMatch((await row('first').textContent())!, /Connected now/)
})

test('the page of a key has its agents and its security events, and no others', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  const keyPaths: string[] = []
  const keys: string[] = []
  for (const name of ['first', 'second']) {
    const newKeyPage = await (await client.post('/keys', { form_token, name, access: 'agent' })).text()
    keys.push(/svc_[0-9A-Za-z]{32}/.exec(newKeyPage)![0])
    keyPaths.push(/data-becomes="([^?"]+)/.exec(newKeyPage)![1]!)
  }
  const journey = createJourney(web.url)
  const agent = await journey.connect(await journey.exchange(keys[0]!))
  t.after(() => agent.terminate())
  const [first, second] = await Promise.all(keyPaths.map(async path => (await client.get(path)).text()))
  assert.match(first!, /Connected\. Your agent is live\./)
  assert.match(second!, /Waiting for your first agent/)
  for (const text of [first!, second!]) {
    assert.equal(text.match(/<li class="item event">/g)?.length, 1)
    assert.match(text, /<li class="item event"><span>Key created<\/span>/)
  }
})

test('times are relative, grow older by themselves, and have the exact time as title', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, { locale: 'en-GB', timezoneId: 'Europe/London' })
  await page.clock.install()
  await signIn(page, web, ADA)
  await page.goto(`${web.url}/sessions`)
  const lastUseTime = page.locator('time[data-age]').first()
  assert.equal(await lastUseTime.textContent(), 'just now')
  assert.match((await lastUseTime.getAttribute('title'))!, /^\w+day,? \d+ \w+ \d{4}/)
  await page.clock.runFor(3 * 60_000)
  // The age is rounded down, updated at intervals, and includes the real time that has passed on the server.
  assert.match((await lastUseTime.textContent())!, /^[234] minutes ago$/)
})
