import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { sharedBrowser } from '../support/browser.ts'
import { ADA, createClient, signedInClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'
import { address } from '../support/services.ts'
import { askForLink, newPerson, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

test('the field of the code has the focus, and a complete code is sent by itself', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const { code } = await askForLink(page, web, ADA)
  const waitForFocus = () => page.waitForFunction('document.activeElement.id === "code"')
  await waitForFocus()
  const wrongCode = code!.replace(/.$/, last => String((Number(last) + 1) % 10))
  await page.keyboard.type(wrongCode)
  await page.getByText('That code is not right').waitFor()
  assert.equal(await page.locator('#code').getAttribute('aria-invalid'), 'true')
  await page.waitForLoadState('load')
  await waitForFocus()
  await page.keyboard.type(`${code!.slice(0, 4)} ${code!.slice(4)}`)
  await page.waitForURL(/\/keys/)
})

test('a refused address and a refused code are shown at their field, and the answer keeps language and theme', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  const markedFieldPattern = (name: string) =>
    new RegExp(
      `id="${name}"[^>]*aria-describedby="${name}-problem[^>]*aria-invalid="true" autofocus>\\s*<p class="wrong" id="${name}-problem" role="alert">That `,
    )
  const addressPage = await (await client.post('/sign-in', { form_token, email: 'ada' })).text()
  assert.match(addressPage, markedFieldPattern('email'))
  assert.match(addressPage, /<title>Problem: Sign in/)
  assert.match(addressPage, /name="return_to" value="\/sign-in"/)
  assert.match(addressPage, /href="\/language\?return_to=%2Fsign-in"/)
  await client.post('/sign-in', { form_token, email: ADA })
  const checkMailPage = await (await client.get('/check-mail')).text()
  const login_id = /name="login_id" value="([^"]+)"/.exec(checkMailPage)![1]!
  for (const wrong of ['1234', '12345678']) {
    const refusedPage = await (await client.post('/check-mail', { form_token, login_id, code: wrong })).text()
    assert.match(refusedPage, markedFieldPattern('code'), wrong)
    assert.match(refusedPage, /name="return_to" value="\/check-mail"/)
  }
})

test('at a limit, whoever asked for a mail before is told that its link and code still work', async t => {
  const web = await startWeb(t, { KEYWAY_MAGIC_LINK_LIMITS: '1/hour' })
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  assert.equal((await client.post('/sign-in', { form_token, email: ADA })).status, 303)
  const secondRequest = await client.post('/sign-in', { form_token, email: ADA, again: '1' })
  assert.equal(secondRequest.status, 429)
  assert.match(await secondRequest.text(), /No new mail was sent.+ The last link and code still work/)
})

test('a sign-in page at a limit counts down until mail can be sent again', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t, { KEYWAY_MAGIC_LINK_LIMITS: '1/hour' })
  await signedInClient(web)
  const { page } = await newPerson(browser)
  await page.clock.install()
  await page.goto(`${web.url}/sign-in`)
  await page.getByLabel('E-mail address').fill(ADA)
  const submitButton = page.getByRole('button', { name: 'Send me a link' })
  await submitButton.click()
  await page.getByText('Too many mails were sent').waitFor()
  const countdown = page.locator('.countdown')
  assert.match((await countdown.textContent())!, /^You can send again in (1:00:00|59:\d\d)\.$/)
  assert.ok(await submitButton.isDisabled())
  assert.equal(await page.getByLabel('E-mail address').inputValue(), ADA)
  await page.clock.runFor(30 * 60_000)
  assert.match((await countdown.textContent())!, /in (30:00|29:\d\d)\.$/)
  await page.clock.runFor(31 * 60_000)
  assert.equal(await countdown.textContent(), '')
  assert.equal(await submitButton.isDisabled(), false)
})

test('a suspended person is told why nobody is signed in, and whom to ask', async t => {
  const web = await startWeb(t)
  await signedInClient(web)
  const client = createClient(web.url)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: ADA })
  const [mail] = await web.mails(ADA, 2)
  const text = await (await client.get('/check-mail')).text()
  const login_id = /name="login_id" value="([^"]+)"/.exec(text)![1]!
  const { storage, users } = web.server.services
  const user = (await storage.store.users.findByEmail(address(ADA)))!
  await users.suspend(user.id, BY_COMMAND_LINE)
  const refusal = await client.post('/check-mail', { form_token, login_id, code: mail!.code! })
  assert.equal(refusal.status, 403)
  const page = await refusal.text()
  assert.match(page, /The operator of Keyway suspended it/)
  assert.match(page, /href="mailto:support@localhost\?subject=Suspended%20account%20ada%40example\.com"/)
})

test('the inbox shows the beginning of each mail, is searched, and signs in with one click in the same tab', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser, { permissions: ['clipboard-read', 'clipboard-write'] })
  await askForLink(page, web, 'bob@example.com')
  const { code } = await askForLink(page, web, ADA)
  await page.goto(`${web.url}/inbox`)
  const row = page.locator('li.item').filter({ hasText: ADA })
  assert.match((await row.locator('.preview').textContent())!, /^\S.{20,}/)
  const copyButton = row.getByRole('button', { name: /^(?:Copy code|Copied)$/ })
  // The stream replaces the list once, just after the page has loaded.
  await until('the code is copied', async () => {
    await copyButton.click()
    return (await copyButton.textContent()) === 'Copied'
  })
  assert.equal(await page.evaluate<string>('navigator.clipboard.readText()'), code)

  await page.getByLabel('Search').fill('ADA@')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.waitForURL(/query=ADA/)
  assert.equal(await page.locator('li.item').count(), 1)
  await page.getByRole('link', { name: /^Open link/ }).click()
  await page.waitForURL(/\/keys/)
  await page.getByText('Your account is ready').waitFor()

  await page.goto(`${web.url}/inbox?query=ada@`)
  await page.getByText('Used or expired').waitFor()
  assert.equal(await page.getByRole('link', { name: /^Open link/ }).count(), 0)
})
