import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { sharedBrowser } from '../support/browser.ts'
import { signedInClient } from '../support/page-client.ts'
import { until } from '../support/patience.ts'
import { newPerson, signIn, startWeb } from '../support/web.ts'
import { isSignedBy, openEndpoint } from '../support/webhook-endpoint.ts'

const openBrowser = sharedBrowser()
const SECRET = /whsec_[A-Za-z0-9+/]{43}=/
const LOCAL_NETWORKS = { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }

test('an administrator creates a webhook, tests it, replaces its secret, sends again, disables and removes it', async t => {
  const web = await startWeb(t, LOCAL_NETWORKS)
  const { services } = web.server
  const { store } = services.storage
  const endpoint = await openEndpoint(t)
  const admin = await signedInClient(web, 'admin@example.com')
  const { id: adminId } = (await store.users.findByEmail(parseEmailAddress('admin@example.com')!))!
  await services.users.setRole(adminId, 'admin', BY_COMMAND_LINE)
  const send = async (path: string, fields: Record<string, string> = {}) =>
    admin.post(path, { form_token: await admin.formToken('/admin/webhooks'), ...fields })
  const text = async (path: string) => (await admin.get(path)).text()

  const refusal = await send('/admin/webhooks', { url: 'ftp://<i>x</i>' })
  assert.equal(refusal.status, 400)
  const refilledForm = await refusal.text()
  assert.ok(
    refilledForm.includes('must be an https URL') && refilledForm.includes('ftp://&lt;i&gt;'),
    'refilled',
  )
  const creationResponse = await send('/admin/webhooks', { url: endpoint.url, events: 'user.updated' })
  assert.equal(creationResponse.status, 201)
  assert.equal(creationResponse.headers.get('referrer-policy'), 'no-referrer')
  const secret = SECRET.exec(await creationResponse.text())![0]
  assert.match(
    await text('/admin/webhooks'),
    /<legend>Keys<\/legend>.*id="api_key.created".*?aria-describedby="api_key.created-words".*?>A key was created\.</s,
  )
  const [webhook] = await (await services.webhooks()).list()
  const path = `/admin/webhooks/${webhook!.id}`
  assert.deepEqual(webhook!.events, ['user.updated'])
  assert.ok((await text('/admin/webhooks')).includes(path))
  assert.doesNotMatch(await text(path), SECRET)

  endpoint.answer = () => ({ status: 418, text: '<b>no tea</b>' })
  const testPage = await (await send(`${path}/test`)).text()
  assert.ok(testPage.includes('status 418') && testPage.includes('&lt;b&gt;no tea'), 'the answer, as text')
  assert.ok(isSignedBy(endpoint.received[0]!, secret))

  endpoint.answer = () => 200
  await services.users.rename(adminId, 'Ada')
  await until('the event', () => endpoint.received.length === 2)
  const deliveryId = await until('its record', async () => {
    const page = await text(`${path}?state=delivered`)
    return /name="delivery" value="([^"]+)"/.exec(page)?.[1]
  })
  assert.equal((await send(`${path}/send-again`, { delivery: deliveryId })).status, 303)
  await until('the event again', () => endpoint.received.length === 3)
  assert.equal(endpoint.received[2]!.id, endpoint.received[1]!.id)

  assert.match(await (await send(`${path}/new-secret`)).text(), SECRET)
  const ids = [...(await text(path)).matchAll(/name="secret" value="([^"]+)"/g)].map(([, value]) => value!)
  assert.equal(ids.length, 2)
  assert.equal((await send(`${path}/remove-secret`, { secret: ids[0]! })).status, 303)
  assert.equal((await send(`${path}/remove-secret`, { secret: ids[1]! })).status, 400)

  const changeResponse = await send(`${path}/change`, { url: endpoint.url })
  assert.equal(changeResponse.headers.get('location'), `${path}?done=webhook_saved`)
  assert.equal((await send(`${path}/change`, { url: 'nonsense' })).status, 400)
  await send(`${path}/disable`)
  const { events, disabledBy } = await (await services.webhooks()).find(webhook!.id)
  assert.deepEqual([events, disabledBy], [[], 'person'])
  await send(`${path}/enable`)
  assert.equal((await (await services.webhooks()).find(webhook!.id)).disabledAt, null)
  assert.equal((await send(`${path}/nonsense`)).status, 404)
  assert.equal((await send(`${path}/remove`)).headers.get('location'), '/admin/webhooks?done=webhook_removed')
  assert.equal((await admin.get(path)).status, 404)

  const { rows } = await store.audit.list({ actor: adminId }, { limit: 20, after: null })
  assert.deepEqual(
    rows.toReversed().map(({ type }) => type),
    [
      'webhook.created',
      'webhook.tested',
      'webhook.sent_again',
      'webhook.secret_created',
      'webhook.secret_removed',
      'webhook.updated',
      'webhook.updated',
      'webhook.updated',
      'webhook.removed',
    ],
  )
  assert.ok(!JSON.stringify(rows).includes('127.0.0.1/hook'))
})

test('support sees webhooks and their deliveries without a form, and everybody else a missing page', async t => {
  const web = await startWeb(t)
  const { services } = web.server
  const webhooks = await services.webhooks()
  const newWebhook = { url: 'https://hooks.example.com/keyway', events: ['audit.recorded' as const] }
  const { webhook } = await webhooks.create(newWebhook, BY_COMMAND_LINE)
  const [support, user] = [
    await signedInClient(web, 'support@example.com'),
    await signedInClient(web, 'user@example.com'),
  ]
  const { id } = (await services.storage.store.users.findByEmail(parseEmailAddress('support@example.com')!))!
  await services.users.setRole(id, 'support', BY_COMMAND_LINE)
  for (const path of ['/admin/webhooks', `/admin/webhooks/${webhook.id}`]) {
    const text = await (await support.get(path)).text()
    assert.match(text, /hooks\.example\.com/)
    assert.doesNotMatch(text, /method="post" action="\/admin/, path)
    assert.equal((await user.get(path)).status, 404, path)
  }
  const form_token = await support.formToken('/account')
  for (const path of ['/admin/webhooks', `/admin/webhooks/${webhook.id}/remove`])
    assert.equal((await support.post(path, { form_token, url: newWebhook.url })).status, 404)
})

test('in a browser an administrator ticks the events of a new webhook and sees its secret', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t, LOCAL_NETWORKS)
  const { services } = web.server
  const { page } = await newPerson(browser)
  await signIn(page, web, 'admin@example.com')
  const { id } = (await services.storage.store.users.findByEmail(parseEmailAddress('admin@example.com')!))!
  await services.users.setRole(id, 'admin', BY_COMMAND_LINE)
  await page.goto(`${web.url}/admin/webhooks`)
  await page.getByLabel('URL').fill('http://127.0.0.1:1/')
  await page.getByLabel('balance.low').check()
  await page.getByLabel('user.created').check()
  await page.getByRole('button', { name: 'Create a webhook' }).click()
  assert.match((await page.locator('#secret').textContent())!, SECRET)
  await page.getByRole('link', { name: 'To the webhook' }).click()
  await page.locator('input[value="balance.low"]:checked').waitFor()
  const [webhook] = await (await services.webhooks()).list()
  assert.deepEqual(webhook!.events, ['user.created', 'balance.low'])
})
