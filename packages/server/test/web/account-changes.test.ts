import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { securityEvent } from '../../src/security-events/security-event.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { sharedBrowser } from '../support/browser.ts'
import { ADA, type Client, createClient, signedInClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'
import { caller } from '../support/services.ts'
import { newPerson, signIn, startWeb, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()
const NEW_ADDRESS = 'ada@example.org'

/** Posts a form of a page without running scripts. */
async function post(client: Client, page: string, path: string, fields: Record<string, string> = {}) {
  return client.post(path, { form_token: await client.formToken(page), ...fields })
}

/** The path of the newest mailed link to the page that confirms a change of address. */
async function linkTo(web: WebServer, email: string): Promise<string> {
  const link = await until(`a link to ${email}`, async () =>
    (await web.mails(email)).map(mail => mail.link!).find(each => each.includes('/account/email?')),
  )
  return link.slice(web.url.length)
}

function tokenOf(path: string): string {
  return new URL(path, 'http://localhost').searchParams.get('token')!
}

async function open(t: TestContext) {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const idOf = async (email: string) =>
    (await web.server.services.storage.store.users.findByEmail(parseEmailAddress(email)!))?.id ?? null
  return { web, client, idOf }
}

test('a person changes the address on the page of the account, without scripts', async t => {
  const { web, client, idOf } = await open(t)
  const id = await idOf(ADA)
  const requestResponse = await post(client, '/account', '/account/email', { new_email: NEW_ADDRESS })
  assert.equal(requestResponse.headers.get('location'), '/account?done=email_asked')
  const pendingPage = await (await client.get('/account')).text()
  assert.match(pendingPage, /still waits for/)
  assert.match(pendingPage, /the link in the mail to ada@example\.com/)

  const linkToNew = await linkTo(web, NEW_ADDRESS)
  const page = await (await client.get(linkToNew)).text()
  assert.match(page, /changes from <strong>ada@example\.com<\/strong> to <strong>ada@example\.org<\/strong>/)
  assert.equal(await idOf(NEW_ADDRESS), null, 'opening a link confirms nothing')
  const firstConfirmation = await post(client, linkToNew, '/account/email/confirm', {
    token: tokenOf(linkToNew),
  })
  assert.equal(firstConfirmation.headers.get('location'), '/account#address')
  const linkToOld = await linkTo(web, ADA)
  const secondConfirmation = await post(client, linkToOld, '/account/email/confirm', {
    token: tokenOf(linkToOld),
  })
  assert.equal(secondConfirmation.headers.get('location'), '/account?done=email_changed')
  assert.equal(await idOf(NEW_ADDRESS), id)
  assert.match(await (await client.get('/account')).text(), /You sign in as <strong>ada@example\.org/)
  const reopened = await client.get(linkToOld)
  assert.equal(reopened.status, 400)
  assert.match(await reopened.text(), /This link does not work/)
})

test('the links of a change work for nobody who is signed in to another account, and lead through a sign-in where nobody is', async t => {
  const { web, client, idOf } = await open(t)
  await post(client, '/account', '/account/email', { new_email: NEW_ADDRESS })
  const path = await linkTo(web, NEW_ADDRESS)
  const eve = await signedInClient(web, 'eve@example.com')
  assert.equal((await eve.get(path)).status, 400)
  assert.equal((await post(eve, '/account', '/account/email/confirm', { token: tokenOf(path) })).status, 400)

  const otherBrowser = createClient(web.url)
  assert.equal((await otherBrowser.get(path)).headers.get('location'), '/sign-in')
  const mailCountBefore = (await web.mails(ADA)).length
  await post(otherBrowser, '/sign-in', '/sign-in', { email: ADA })
  const [mail] = await web.mails(ADA, mailCountBefore + 1)
  const { searchParams } = new URL(mail!.link!)
  const signedInAgain = await post(otherBrowser, '/check-mail', '/verify', {
    token: searchParams.get('token')!,
    email: ADA,
  })
  assert.equal(signedInAgain.headers.get('location'), path)
  await post(otherBrowser, path, '/account/email/confirm', { token: tokenOf(path) })
  const linkToOld = await linkTo(web, ADA)
  const confirmation = await post(otherBrowser, linkToOld, '/account/email/confirm', {
    token: tokenOf(linkToOld),
  })
  assert.equal(
    confirmation.headers.get('location'),
    '/sign-in?done=email_changed',
    'the asking session stays, this one ends',
  )
  assert.equal((await client.get('/account')).status, 200)
  assert.notEqual(await idOf(NEW_ADDRESS), null)
})

test('a refused address is shown at its field with what was typed, and a pending change is cancelled', async t => {
  const { client } = await open(t)
  for (const [typed, message] of [
    ['nonsense', /is not one plain e-mail address/],
    ['Ada@Example.com', /That is your address already/],
  ] as const) {
    const answer = await post(client, '/account', '/account/email', { new_email: typed })
    assert.equal(answer.status, 400)
    const text = await answer.text()
    assert.match(text, message)
    assert.match(
      text,
      new RegExp(`value="${typed}" aria-describedby="new_email-problem new-email-hint" aria-invalid="true"`),
    )
  }
  await post(client, '/account', '/account/email', { new_email: NEW_ADDRESS })
  const cancellationResponse = await post(client, '/account', '/account/email/cancel')
  assert.equal(cancellationResponse.headers.get('location'), '/account?done=email_cancelled')
  assert.match(await (await client.get('/account')).text(), /name="new_email"/)
})

test('the token of a link leaves the address bar, and the button still works', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  await page.goto(`${web.url}/account`)
  await page.getByLabel('New address').fill(NEW_ADDRESS)
  await page.getByRole('button', { name: 'Change the address' }).click()
  await page.waitForURL(/\/account\?done=email_asked$|\/account$/)
  for (const email of [NEW_ADDRESS, ADA]) {
    await page.goto(web.url + (await linkTo(web, email)))
    await page.waitForURL(/\/account\/email$/)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.waitForURL(/\/account(?:\?done=email_changed|#address)?$/)
  }
  await page.getByText(`You sign in as ${NEW_ADDRESS}`).waitFor()
})

test('deletion is asked once more, shows its day, and is taken back by one button', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  await page.goto(`${web.url}/account`)
  await page.getByRole('link', { name: 'Delete my account' }).click()
  await page.waitForURL(/\/account\/delete$/)
  const deletedData = (await page.locator('.facts').textContent()) ?? ''
  assert.match(deletedData, /^Sessions1Apps that may charge you2Balance\$\d+\.\d\d$/, 'only what there is')
  assert.equal(await page.getByText('No app has access to your account.').count(), 0, 'two apps may charge')
  const deletionTime = await page.locator('.ask li time').getAttribute('datetime')
  const timeOnButton = await page.locator('.ask button time').getAttribute('datetime')
  assert.equal(
    timeOnButton?.slice(0, 16),
    deletionTime?.slice(0, 16),
    'both show the same instant in the same zone',
  )
  await page.getByRole('button', { name: /^Delete my account on / }).click()
  await page.getByText(/Your account will be deleted .*\. Until then everything goes on\./).waitFor()
  await page.getByRole('button', { name: 'Keep my account' }).click()
  await page.getByText('You keep your account.').waitFor()
  await page.getByRole('link', { name: 'Delete my account' }).waitFor()
})

test('an old sign-in deletes nothing and changes no address: it leads to a new one and back', async t => {
  const { web, client, idOf } = await open(t)
  const { clock } = web.server.services
  const form_token = await client.formToken('/account')
  const now = clock.now()
  t.mock.method(clock, 'now', () => now + 31 * 60_000)
  for (const [path, fields] of [
    ['/account/email', { new_email: NEW_ADDRESS }],
    ['/account/delete', {}],
    ['/account/restore', {}],
  ] as [string, Record<string, string>][]) {
    const answer = await client.post(path, { form_token, ...fields })
    assert.equal(answer.headers.get('location'), '/sign-in?again=1', path)
  }
  assert.equal((await client.get('/account/delete')).headers.get('location'), '/sign-in?again=1')
  assert.equal((await client.get('/account/export')).headers.get('location'), '/sign-in?again=1')
  const user = (await web.server.services.users.get((await idOf(ADA))!))!
  assert.equal(user.deletesAt, null)
  assert.match(
    await (await client.get(`/account?new_email=${NEW_ADDRESS}`)).text(),
    /value="ada@example\.org"/,
  )
})

test('the download of a person’s data ends when the session does', async t => {
  const { web, client, idOf } = await open(t)
  const { storage, clock } = web.server.services
  const userId = (await idOf(ADA))!
  const now = clock.now()
  // More than the buffers of the sockets hold, so that the download is still running when the session ends.
  await storage.transaction(async tx => {
    for (let n = 0; n < 60_000; n++)
      await tx.securityEvents.insert(securityEvent('sign_in', userId, now - n, caller()))
  })
  const download = await client.get('/account/export')
  assert.equal(download.status, 200)
  await post(client, '/account', '/sign-out')
  await assert.rejects(download.text())
})

test('the last administrator is told why the account cannot be deleted', async t => {
  const { web, client, idOf } = await open(t)
  const by = { actor: { type: 'command' }, caller: null, requestId: null, reason: null } as never
  await web.server.services.users.setRole((await idOf(ADA))!, 'admin', by)
  const answer = await post(client, '/account/delete', '/account/delete')
  assert.equal(answer.status, 409)
  assert.match(await answer.text(), /You are the last administrator/)
})

test('the account shows the balance over time as a picture and as a table of its changes', async t => {
  const { client } = await open(t)
  const text = await (await client.get('/account/balance')).text()
  assert.match(text, /Balance in the last 30 days/)
  assert.match(text, /aria-label="From \$0\.00 to \$2\.00\."/)
  assert.match(text, /<p class="axis" aria-hidden="true">(<span><time [^>]*>[^<]+<\/time><\/span>){2}<\/p>/)
  assert.match(text, /<td class="amount">\+\$2\.00<\/td><td class="amount">\$2\.00<\/td>/)
})
