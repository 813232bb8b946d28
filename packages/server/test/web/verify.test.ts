import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { sha256 } from '../../src/secrets.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { sharedBrowser } from '../support/browser.ts'
import { askForLink, newPerson, signIn, startWeb, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()

const ADA = 'ada@example.com'

async function stateOf(web: WebServer, link: string): Promise<string> {
  const { searchParams } = new URL(link)
  const email = parseEmailAddress(searchParams.get('email')!)!
  return (await web.server.services.magicLinks.inspect(searchParams.get('token')!, email)).state
}

test('a mail scanner that opens the link and runs scripts does not use it up', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { link } = await askForLink((await newPerson(browser)).page, web, ADA)

  const { page: scanner, context } = await newPerson(browser)
  const requests: string[] = []
  scanner.on('request', request => requests.push(request.url()))
  await scanner.goto(link!)
  await scanner.waitForLoadState('networkidle')
  await scanner.getByText(ADA).waitFor()

  assert.equal(await stateOf(web, link!), 'live')
  assert.deepEqual(
    (await context.cookies()).map(({ name }) => name),
    ['keyway_form'],
  )
  assert.ok(requests.every(url => url.startsWith(web.url)))
  assert.equal(scanner.url(), `${web.url}/verify`)
})

test('the requesting browser signs in automatically, and the token is removed from the address bar', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const { link } = await askForLink(page, web, ADA)
  const { searchParams } = new URL(link!)

  // This browser requested only Ada's link, so a link for another address is not confirmed automatically.
  const { page: elsewhere } = await newPerson(browser)
  const evesMail = await askForLink(elsewhere, web, 'eve@example.com')
  await page.goto(evesMail.link!)
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await page.waitForLoadState('networkidle')
  assert.equal(await stateOf(web, evesMail.link!), 'live')

  await page.goto(link!)
  await page.waitForURL(/\/keys/)
  const visitedUrls = await page.evaluate<string>('JSON.stringify(performance.getEntries().map(e => e.name))')
  assert.ok(!visitedUrls.includes(searchParams.get('token')!))
})

test('a double tap on the button signs in once and opens the keys', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { link } = await askForLink((await newPerson(browser)).page, web, ADA)
  const { page } = await newPerson(browser)
  await page.goto(link!)
  await page.getByRole('button', { name: 'Sign in' }).dblclick()
  await page.waitForURL(/\/keys/)
  assert.equal(await stateOf(web, link!), 'used')
})

test('a second tab with the same link redirects to the keys', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page, context } = await newPerson(browser)
  const { link } = await askForLink(page, web, ADA)
  await page.goto(link!)
  await page.waitForURL(/\/keys/)
  const secondTab = await context.newPage()
  await secondTab.goto(link!)
  assert.equal(secondTab.url(), `${web.url}/keys`)
})

test('a link for another user than the signed-in one asks first, and its button switches the session', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  // A link that was requested in this browser usually signs in by itself.
  const { link } = await askForLink(page, web, ADA)
  await signIn(page, web, 'bob@example.com')

  await page.goto(link!)
  await page.getByText('You are signed in as bob@example.com now').waitFor()
  await page.waitForLoadState('networkidle')
  assert.equal(await stateOf(web, link!), 'live')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL(/\/keys/)
  assert.match((await page.locator('.who').textContent())!, /ada@example\.com/)
  const { services } = web.server
  const bob = (await services.storage.store.users.findByEmail(parseEmailAddress('bob@example.com')!))!
  assert.equal((await services.sessions.list(bob.id, { limit: 10, after: null })).rows.length, 0)
})

test('a used or expired link offers a new one with the address filled in', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const { link } = await askForLink(page, web, ADA)
  await page.goto(link!)
  await page.waitForURL(/\/keys/)

  const { page: other } = await newPerson(browser)
  for (const [dead, said] of [
    [link!, 'This link was used already'],
    [await expiredLink(web), 'This link has expired'],
    [link!.replace(/token=[\w-]{6}/, 'token=AAAAAA'), 'This link does not work'],
  ] as const) {
    await other.goto(dead)
    await other.getByRole('heading', { name: said }).waitFor()
    assert.equal(await other.getByLabel('E-mail address').inputValue(), ADA)
  }
  await other.getByRole('button', { name: 'Send me a new link' }).click()
  await other.waitForURL(/\/check-mail/)
})

async function expiredLink(web: WebServer): Promise<string> {
  const { storage, clock } = web.server.services
  const token = 'x'.repeat(43)
  const now = clock.now()
  await storage.transaction(tx =>
    tx.magicLinks.insert({
      id: newId(now),
      tokenHash: sha256(token),
      codeHash: sha256('none'),
      email: parseEmailAddress(ADA)!,
      appId: 'console',
      createdAt: now - 300_000,
      expiresAt: now,
      usedAt: null,
      locale: null,
      codeTries: 0,
    }),
  )
  return `${web.url}/verify?token=${token}&email=${encodeURIComponent(ADA)}`
}
