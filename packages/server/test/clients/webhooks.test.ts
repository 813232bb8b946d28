import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { formatMoney } from '../../src/billing/money.ts'
import { forEachEngine } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/patience.ts'
import { caller } from '../support/services.ts'
import { openEndpoint } from '../support/webhook-endpoint.ts'
import { EXAMPLES_FOLDER, installExample, startExample } from './example.ts'
import { newPerson, startRunning } from './running.ts'

const PRIVATE_NETWORKS = { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8,::1/128' }

forEachEngine(engine => {
  test('the example of a receiver verifies webhooks with the package standardwebhooks, and refuses forged ones', async t => {
    if (!(await installExample(t, 'webhooks'))) return
    const web = await startRunning(engine, t, PRIVATE_NETWORKS)
    const webhooks = await web.server.services.webhooks()
    const port = await freePort()
    const url = `http://localhost:${port}/`
    const { webhook, secret } = await webhooks.create({ url, events: ['user.created'] }, BY_COMMAND_LINE)
    const env = { WEBHOOK_SECRET: secret, PORT: String(port) }
    const receiver = await startExample(t, ['webhooks', 'receiver.mjs'], env)
    const { user } = await newPerson(web, 'ada@example.com')
    await until('the event', () => receiver.output().includes(`user.created user ${user.id} #1 {`))

    // The receiver prints the event before it responds, so the delivery is recorded a little later.
    const delivery = await until('the event counts as delivered', async () => {
      const { rows } = await webhooks.deliveries(webhook.id, 'delivered', { limit: 1, after: null })
      return rows[0]
    })
    const headers = (key: string, body: string) =>
      signedHeaders(key, delivery.id, Math.floor(Date.now() / 1000), body)
    const post = async (body: string, own: Record<string, string>) =>
      (await fetch(url, { method: 'POST', body, headers: own })).status
    assert.equal(await post('{}', headers(`whsec_${Buffer.alloc(32).toString('base64')}`, '{}')), 401)
    assert.equal(await post('{"a":1}', headers(secret, '{}')), 401)
    assert.equal(
      await post('{}', signedHeaders(secret, delivery.id, Math.floor(Date.now() / 1000) - 3600, '{}')),
      401,
    )
    assert.equal(await post('{}', headers(secret, '{}')), 204)
    assert.equal(receiver.output().split('\n').length, 3, 'a known id is not handled again')
  })

  test('the package standardwebhooks verifies bodies with each of several secrets', async t => {
    if (!(await installExample(t, 'webhooks'))) return
    const web = await startRunning(engine, t, PRIVATE_NETWORKS)
    const webhooks = await web.server.services.webhooks()
    const endpoint = await openEndpoint(t)
    const newWebhook = await webhooks.create(
      { url: endpoint.url, events: ['audit.recorded'] },
      BY_COMMAND_LINE,
    )
    const secondSecret = await webhooks.addSecret(newWebhook.webhook.id, BY_COMMAND_LINE)
    await webhooks.test(newWebhook.webhook.id, BY_COMMAND_LINE)
    const [{ headers, raw }] = endpoint.received as [(typeof endpoint.received)[0]]
    const { Webhook } = createRequire(join(EXAMPLES_FOLDER, 'webhooks/receiver.mjs'))('standardwebhooks')
    for (const secret of [newWebhook.secret, secondSecret.secret])
      assert.equal(new Webhook(secret).verify(raw, headers).type, 'webhook.test')
    const wrongVerifier = new Webhook(`whsec_${Buffer.alloc(32).toString('base64')}`)
    assert.throws(() => wrongVerifier.verify(raw, headers), /No matching signature/)
  })

  test('the example of a top-up adds a payment to a balance once, however often the provider calls', async t => {
    if (!(await installExample(t, 'webhooks'))) return
    const web = await startRunning(engine, t)
    const { services } = web.server
    const admin = await newPerson(web, 'admin@example.com')
    await services.users.setRole(admin.user.id, 'admin', BY_COMMAND_LINE)
    const { user } = await newPerson(web, 'ada@example.com')
    const { key } = await services.apiKeys.create(
      admin.user.id,
      {
        name: 'payments',
        scopes: toScopes(['admin:write']),
        expiresAt: null,
        appId: 'console',
        allowedNetworks: [],
      },
      caller('127.0.0.1'),
    )
    const port = await freePort()
    const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
    const env = { KEYWAY_URL: web.url, KEYWAY_API_KEY: key, PAYMENT_SECRET: secret, PORT: String(port) }
    await startExample(t, ['webhooks', 'top-up.mjs'], env)
    const sendPayment = async (by: string, userId = user.id) => {
      const data = { id: 'pay_1', amount: '5.00', metadata: { user_id: userId } }
      const body = JSON.stringify({ type: 'payment.succeeded', timestamp: new Date().toISOString(), data })
      const headers = signedHeaders(by, 'evt_1', Math.floor(Date.now() / 1000), body)
      return (await fetch(`http://localhost:${port}/`, { method: 'POST', body, headers })).status
    }
    const balance = async () => formatMoney(await services.storage.store.billing.balance(user.id))
    assert.equal(await sendPayment(`whsec_${Buffer.alloc(32, 4).toString('base64')}`), 401)
    assert.equal(await balance(), '2.00')
    assert.equal(await sendPayment(secret), 204)
    assert.equal(await sendPayment(secret), 204)
    assert.equal(await balance(), '7.00')
    assert.equal(await sendPayment(secret, 'nobody'), 500)
  })
})

/** The headers with which another service signs a body by the Standard Webhooks specification. */
function signedHeaders(secret: string, id: string, seconds: number, body: string): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  }
}
