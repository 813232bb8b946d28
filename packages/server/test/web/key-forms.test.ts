import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { DAY } from '../../src/clock.ts'
import { type Browser, type Page, sharedBrowser } from '../support/browser.ts'
import { ADA, signedInClient } from '../support/page-client.ts'
import { address } from '../support/services.ts'
import { newPerson, signIn, startWeb, type WebServer } from '../support/web.ts'

const openBrowser = sharedBrowser()

async function keysOf(web: WebServer) {
  const { apiKeys, storage } = web.server.services
  const user = (await storage.store.users.findByEmail(address(ADA)))!
  return (await apiKeys.list(user.id, null, { limit: 100, after: null })).rows
}

async function openForm(web: WebServer, browser: Browser): Promise<Page> {
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  await page.goto(`${web.url}/keys/new`)
  return page
}

test('the form of a key offers what most keys are for, and 90 days', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys/new')
  const form = await (await client.get('/keys/new')).text()
  assert.match(form, /value="agent" checked/)
  assert.match(form, /value="90" checked/)
  assert.match(form, /Connect agents <code>agent:connect<\/code>/)
  for (const [access, scopes] of [
    ['agent', ['agent:connect', 'agents:send']],
    ['read', ['account:read', 'agents:read', 'events:read', 'keys:read']],
    ['all', undefined],
  ] as const) {
    // `agent` and `read` ignore the ticked scope and add the typed one; `all` ignores both.
    const fields = { form_token, access, expiry: '90', scope: 'keys:write', own_scopes: 'shop.read' }
    assert.equal((await client.post('/keys', fields)).status, 201)
    const [key] = await keysOf(web)
    assert.deepEqual(key!.scopes?.toSorted(), scopes && [...scopes, 'shop.read'])
    assert.ok(Math.abs(key!.expiresAt! - key!.createdAt - 90 * DAY) < DAY)
  }
})

test('the form of a key offers no preset with a scope that the policies forbid', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const { policies } = web.server.services
  await policies.change(
    { allowedScopes: ['agent:connect', 'agents:send'], unrestrictedKeysAllowed: false },
    BY_COMMAND_LINE,
  )
  const form = await (await client.get('/keys/new')).text()
  const offeredPresets = [...form.matchAll(/name="access" value="(\w+)"/g)].map(([, value]) => value)
  assert.deepEqual(offeredPresets, ['agent', 'some'])
})

test('what was refused is shown at its field, which is marked and has the focus', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const page = await openForm(web, browser)
  await page.getByLabel('Name').fill('picky')
  await page.locator('summary').click()
  const submitButton = page.getByRole('button', { name: 'Create key' })
  const focusedElement = () =>
    page.evaluate<[string, string | null, string | undefined]>(`(() => {
      const { id, ariaInvalid } = document.activeElement
      const described = document.activeElement.getAttribute('aria-describedby')?.split(' ')[0]
      return [id, ariaInvalid, document.getElementById(described)?.textContent]
    })()`)
  // The focus is set when the page is painted, later than its text is found.
  const waitForFocus = (id: string) => page.waitForFunction(`document.activeElement.id === '${id}'`)

  await page.getByLabel('Only from these networks').fill('10.0.0.0/99')
  await submitButton.click()
  await page.getByText('is no network').waitFor()
  await waitForFocus('networks')
  assert.deepEqual((await focusedElement()).slice(0, 2), ['networks', 'true'])
  assert.match((await focusedElement())[2]!, /"10\.0\.0\.0\/99" is no network/)
  assert.equal(await page.getByLabel('Name').inputValue(), 'picky')

  await page.getByLabel('Only from these networks').fill('')
  await page.getByLabel('Scopes of your own').fill('agents:fly')
  await submitButton.click()
  await page.getByText('is no scope that exists').waitFor()
  await waitForFocus('own_scopes')
  assert.deepEqual((await focusedElement()).slice(0, 2), ['own_scopes', 'true'])

  await page.getByLabel('Scopes of your own').fill('')
  await page.getByLabel('Only what I choose').check()
  await submitButton.click()
  await page.getByText('Choose at least one scope').waitFor()
  await waitForFocus('scope-agent-connect')
  assert.deepEqual((await focusedElement()).slice(0, 2), ['scope-agent-connect', 'true'])
  assert.match(await page.title(), /^Problem: /)
})

test('networks and limits of a key are changed on its page, which keeps what was typed wrongly', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  await client.post('/keys', { form_token, name: 'robot', access: 'agent' })
  const { id } = (await keysOf(web))[0]!
  const send = (form: string, fields: Record<string, string>) =>
    client.post(`/keys/${id}/${form}`, { form_token, ...fields })

  const saveResponse = await send('networks', { networks: '203.0.113.7 2001:db8::/32' })
  assert.equal(saveResponse.headers.get('location'), `/keys/${id}?done=networks_saved`)
  assert.deepEqual((await keysOf(web))[0]!.allowedNetworks, ['203.0.113.7/32', '2001:db8::/32'])
  const refusal = await send('networks', { networks: 'here' })
  assert.equal(refusal.status, 400)
  assert.match(await refusal.text(), /value="here"[^>]*aria-invalid="true" autofocus/)
  await send('networks', { networks: '' })
  assert.deepEqual((await keysOf(web))[0]!.allowedNetworks, [])

  const limits = { requests_minute: '100', spend_day: '2.50', quota: '5000', quota_every: 'day' }
  assert.equal((await send('limits', limits)).status, 303)
  const savedLimits = (await keysOf(web))[0]!.limits
  assert.deepEqual(savedLimits.requests, [{ limit: 100, per: 'minute' }])
  assert.deepEqual(savedLimits.spend, [{ amount: 2_500_000, per: 'day' }])
  assert.deepEqual(savedLimits.quota?.refill, { amount: 5000, every: 'day' })
  assert.match(
    await (await client.get(`/keys/${id}`)).text(),
    /<p>100 requests per minute, \$2\.50 per day, 5,000 calls every day<\/p>/,
  )
  for (const [field, value] of [
    ['requests_minute', '1.5'],
    ['requests_day', '0'],
    ['spend_total', 'much'],
    ['quota', '-1'],
  ] as const) {
    const text = await (await send('limits', { ...limits, [field]: value })).text()
    assert.match(text, new RegExp(`<details open>.*name="${field}" value="${value}"[^>]*aria-invalid`, 's'))
  }
  assert.deepEqual((await keysOf(web))[0]!.limits, savedLimits)
  await send('limits', {})
  assert.deepEqual((await keysOf(web))[0]!.limits, { requests: [], spend: [], quota: null })
})

test('a quota that is not refilled stays when other limits change, and limits of the operator are shown', async t => {
  const web = await startWeb(t)
  const client = await signedInClient(web)
  const form_token = await client.formToken('/keys')
  await client.post('/keys', { form_token, access: 'agent' })
  const { apiKeys } = web.server.services
  const { id, userId } = (await keysOf(web))[0]!
  const quota = { remaining: 7, refill: null }
  await apiKeys.update(userId, id, { limits: { requests: [], spend: [], quota } }, 'person')
  await apiKeys.setOperatorLimits(
    id,
    { requests: [{ limit: 9, per: 'second' }], spend: [], quota: null },
    BY_COMMAND_LINE,
  )
  await client.post(`/keys/${id}/limits`, { form_token, requests_hour: '50' })
  const { limits } = (await keysOf(web))[0]!
  assert.equal(limits.quota?.granted, 7)
  assert.deepEqual(limits.requests, [{ limit: 50, per: 'hour' }])
  const text = await (await client.get(`/keys/${id}`)).text()
  assert.match(text, /Set by the operator: 9 requests per second\./)
  assert.match(text, /has a quota that is not refilled/)
})
