import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_SIGN_IN_AGE } from '../../src/device-authorizations/device-authorization.ts'
import { axeSource, sharedBrowser } from '../support/browser.ts'
import { type Client, createClient, signedInClient } from '../support/page-client.ts'
import { caller } from '../support/services.ts'
import { newPerson, signIn, startWeb, typeCode, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()
const DEVICE_REQUEST = {
  clientId: 'keyway-cli',
  scopes: ['keys:create', 'agent:connect', 'shop:buy'],
  resource: null,
  deviceName: 'ada’s <laptop>',
}

test('a person who opens the link of a device signs in, compares its code and approves', async t => {
  const browser = await openBrowser(t)
  const axe = browser && (await axeSource(t))
  if (!browser || !axe) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const codes = await requestCodes(web)
  await page.goto(web.url + linkOf(codes))
  await page.waitForURL('**/sign-in')
  await page.getByLabel('E-mail address').fill('dora@example.com')
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.waitForURL('**/check-mail')
  const [mail] = await web.mails('dora@example.com')
  await typeCode(page, mail!.code!)
  await page.waitForURL('**/device?**')
  const text = (await page.locator('main').textContent())!
  for (const shown of [codes.userCode, 'ada’s <laptop>', '192.0.2.1', 'agent:connect', 'shop:buy', '90 days'])
    assert.ok(text.includes(shown), shown)
  assert.deepEqual(await violations(page, axe), [])

  await page.getByRole('button', { name: 'Approve' }).click()
  assert.match((await page.getByRole('alert').textContent())!, /Compare the code/)
  assert.equal((await stateOf(web, codes))?.decision, null)
  await page.getByLabel('I started this myself').check()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('heading', { name: 'The device is connected' }).waitFor()
  assert.equal((await stateOf(web, codes))?.decision, 'approved')
})

test('a person types the code of a device and denies it', async t => {
  const browser = await openBrowser(t)
  const axe = browser && (await axeSource(t))
  if (!browser || !axe) return
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const codes = await requestCodes(web)
  await signIn(page, web, 'dora@example.com')
  await page.goto(`${web.url}/device`)
  assert.deepEqual(await violations(page, axe), [])
  await page.getByLabel('Code on the device').fill('BBBB-BBBB')
  await page.getByRole('button', { name: 'Continue' }).click()
  assert.match((await page.getByRole('alert').textContent())!, /No device shows this code/)
  await page.getByLabel('Code on the device').fill(codes.userCode.toLowerCase())
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByRole('heading', { name: 'The device was denied' }).waitFor()
  assert.equal((await stateOf(web, codes))?.decision, 'denied')
})

test('opening the link of a device decides nothing, and a decided one is gone', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const codes = await requestCodes(web)
  for (let visits = 0; visits < 3; visits++) assert.equal((await client.get(linkOf(codes))).status, 200)
  assert.equal((await stateOf(web, codes))?.decision, null)
  const form = await formOf(client, linkOf(codes))
  assert.equal((await decide(client, { ...form, decision: 'approve', compared: 'yes' })).status, 200)
  assert.equal((await decide(client, { ...form, decision: 'deny' })).status, 410)
  assert.equal((await client.get(linkOf(codes))).status, 410)
  assert.equal((await stateOf(web, codes))?.decision, 'approved')
})

test('a decision needs the form of the same session: another one, a changed one and a foreign site are refused', async t => {
  const web = await startWeb(t)
  const [ada, eve] = [await signedInClient(web), await signedInClient(web, 'eve@example.com')]
  const [codes, eveCodes] = [await requestCodes(web), await requestCodes(web)]
  const form = await formOf(ada, linkOf(codes))
  const eveForm = await formOf(eve, linkOf(eveCodes))
  const decisionForm = { ...form, decision: 'approve', compared: 'yes' }
  const [id, , code, mac] = form.proof.split('~')
  for (const proof of ['', eveForm.proof, `${id}~typed~${code}~${mac}`, form.proof.slice(0, -2)])
    assert.equal((await decide(ada, { ...decisionForm, proof })).status, 410, proof)
  const crossSiteHeaders: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { origin: 'https://evil.test' },
  ]
  for (const headers of crossSiteHeaders)
    assert.equal((await ada.post('/device/decision', decisionForm, headers)).status, 403)
  assert.equal((await decide(ada, { ...decisionForm, form_token: 'x' })).status, 403)
  for (const each of [codes, eveCodes]) assert.equal((await stateOf(web, each))?.decision, null)
})

test('a sign-in of more than 30 minutes ago is repeated, and leads back to the device', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const codes = await requestCodes(web)
  const form = await formOf(client, linkOf(codes))
  await ageSessions(web)
  const lateDecision = await decide(client, { ...form, decision: 'approve', compared: 'yes' })
  assert.deepEqual([lateDecision.status, lateDecision.headers.get('location')], [303, '/sign-in?again=1'])
  assert.equal((await stateOf(web, codes))?.decision, null)
  assert.equal((await client.get(linkOf(codes))).headers.get('location'), '/sign-in?again=1')

  const form_token = await client.formToken('/sign-in?again=1')
  const mailCountBefore = (await web.mails('ada@example.com')).length
  await client.post('/sign-in', { form_token, email: 'ada@example.com' })
  assert.equal((await client.get('/check-mail')).status, 200, 'the old session is not enough')
  const [mail] = await web.mails('ada@example.com', mailCountBefore + 1)
  const token = new URL(mail!.link!).searchParams.get('token')!
  const answer = await client.post('/verify', { form_token, token, email: 'ada@example.com' })
  assert.equal(answer.headers.get('location'), linkOf(codes))
  assert.equal((await client.get(linkOf(codes))).status, 200)
})

test('a forged destination cookie leads nowhere', async t => {
  const web = await startWeb(t)
  const client = createClient(web.url)
  client.jar.set('keyway_destination', `${Buffer.from('https://evil.test').toString('base64url')}~x.y`)
  const form_token = await client.formToken('/sign-in')
  await client.post('/sign-in', { form_token, email: 'ada@example.com' })
  const [mail] = await web.mails('ada@example.com')
  const token = new URL(mail!.link!).searchParams.get('token')!
  const answer = await client.post('/verify', { form_token, token, email: 'ada@example.com' })
  assert.equal(answer.headers.get('location'), '/keys?done=welcome')
})

function requestCodes({ server }: WebServer) {
  return server.services.deviceAuthorizations.request(DEVICE_REQUEST, caller())
}

function linkOf({ ticket, userCode }: { ticket: string; userCode: string }): string {
  return `/device?${new URLSearchParams({ user_code: userCode, ticket })}`
}

async function stateOf({ server }: WebServer, { deviceCode }: { deviceCode: string }) {
  const { sha256 } = await import('../../src/secrets.ts')
  return server.services.storage.store.deviceAuthorizations.findByDeviceCode(sha256(deviceCode))
}

async function formOf(client: Client, path: string): Promise<{ form_token: string; proof: string }> {
  const text = await (await client.get(path)).text()
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(text)![1]!
  return { form_token: field('form_token'), proof: field('proof') }
}

function decide(client: Client, fields: Record<string, string>) {
  return client.post('/device/decision', fields)
}

async function ageSessions({ server }: WebServer): Promise<void> {
  const { engine } = server.services.storage
  await engine.transaction(tx =>
    tx.execute('update sessions set created_at = created_at - ?', [MAX_SIGN_IN_AGE]),
  )
}

async function violations(page: Awaited<ReturnType<typeof newPerson>>['page'], axe: string) {
  await page.evaluate(axe)
  const violationIds = await page.evaluate(
    'axe.run().then(({ violations }) => violations.map(({ id }) => id))',
  )
  return violationIds as string[]
}
