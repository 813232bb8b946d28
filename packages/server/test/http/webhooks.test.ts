import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { type CallOptions, openServer } from '../support/http.ts'
import { deliveryOf, isSignedBy, LOCAL_NETWORKS, openEndpoint } from '../support/webhook-endpoint.ts'

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t, { webhookPrivateNetworks: LOCAL_NETWORKS })
  const { user, tokens } = await server.signIn('admin@example.com')
  await server.users.setRole(user.id, 'admin')
  const endpoint = await openEndpoint(t)
  const token = tokens.accessToken
  const call = (method: string, path: string, body?: object, options: CallOptions = {}) =>
    server.call(method, `/v1/admin${path}`, { token, body, ...options })
  const lastAuditEvent = async () => (await server.store.audit.list({}, { limit: 1, after: null })).rows[0]!
  return { ...server, server, user, token, endpoint, call, lastAuditEvent }
}

forEachEngine(engine => {
  test('a webhook is created, listed, changed, tested, rotated and removed by the API', async t => {
    const { server, user, endpoint, call, lastAuditEvent, clock } = await open(engine, t)
    const creationAnswer = await call('POST', '/webhooks', {
      url: endpoint.url,
      events: ['user.updated'],
      reason: 'crm',
    })
    assert.equal(creationAnswer.status, 201)
    const { secret, ...webhook } = creationAnswer.body
    assert.match(secret, /^whsec_/)
    assert.deepEqual(webhook, {
      id: webhook.id,
      url: endpoint.url,
      events: ['user.updated'],
      enabled: true,
      disabled_at: null,
      disabled_by: null,
      created_at: new Date(clock.now()).toISOString(),
      secrets: webhook.secrets,
      waiting: 0,
      oldest_waiting_at: null,
      dropped: 0,
    })
    assert.equal((await lastAuditEvent()).reason?.text, 'crm')
    const path = `/webhooks/${webhook.id}`
    assert.deepEqual((await call('GET', '/webhooks')).body, { data: [webhook] })
    assert.deepEqual((await call('GET', path)).body, webhook)

    await server.users.rename(user.id, 'Ada')
    assert.equal((await call('GET', path)).body.waiting, 1)
    await deliveryOf(server as never).drain()
    const page = (await call('GET', `${path}/deliveries?state=delivered&limit=1`)).body
    assert.equal(page.has_more, false)
    const [delivery] = page.data
    assert.deepEqual(
      [delivery.type, delivery.sequence, delivery.status, delivery.attempts, delivery.error],
      ['user.updated', 1, 200, 1, null],
    )
    assert.deepEqual(delivery.data, { user_id: user.id, changed: ['name'] })
    const sendAgainPath = `/deliveries/${delivery.id}/send-again`
    assert.equal((await call('POST', sendAgainPath)).body.state, 'waiting')
    assert.equal((await call('POST', sendAgainPath)).status, 400)

    const secondSecret = await call('POST', `${path}/secrets`)
    assert.deepEqual(Object.keys(secondSecret.body), ['id', 'secret'])
    const testDelivery = (await call('POST', `${path}/test`)).body
    assert.deepEqual([testDelivery.type, testDelivery.state], ['webhook.test', 'delivered'])
    const sentEvent = endpoint.received.at(-1)!
    assert.ok(isSignedBy(sentEvent, secret) && isSignedBy(sentEvent, secondSecret.body.secret))
    const [first] = webhook.secrets
    assert.equal((await call('DELETE', `${path}/secrets/${first.id}`)).status, 204)
    assert.equal((await call('DELETE', `${path}/secrets/${first.id}`)).status, 404)
    assert.equal((await call('DELETE', `${path}/secrets/${secondSecret.body.id}`)).status, 400)

    const disabledWebhook = (await call('PATCH', path, { enabled: false, events: [] })).body
    assert.deepEqual(
      [disabledWebhook.enabled, disabledWebhook.disabled_by, disabledWebhook.events],
      [false, 'person', []],
    )
    assert.deepEqual((await lastAuditEvent()).after, { events: [], enabled: false, disabled_by: 'person' })
    assert.equal((await call('PATCH', path, { enabled: true })).body.disabled_at, null)
    const urlChangeAnswer = await call('PATCH', path, { url: `${endpoint.url}/other` })
    assert.equal(urlChangeAnswer.body.url, `${endpoint.url}/other`)
    assert.equal((await lastAuditEvent()).after!.url, 'changed')
    assert.equal((await call('DELETE', path)).status, 204)
    for (const [method, missing] of [
      ['GET', path],
      ['PATCH', path],
      ['DELETE', path],
      ['POST', `${path}/test`],
      ['POST', `${path}/secrets`],
      ['GET', `${path}/deliveries`],
      ['POST', sendAgainPath],
      ['GET', `/webhooks/${newId(0)}`],
      ['GET', '/webhooks/nonsense'],
    ] as const)
      assert.equal((await call(method, missing, method === 'PATCH' ? {} : undefined)).status, 404, missing)
  })

  test('bad input names the field, and unknown kinds of events the nearest known one', async t => {
    const { call, endpoint } = await open(engine, t)
    const problemsOf = async (body: object) => {
      const { status, body: answer } = await call('POST', '/webhooks', body)
      assert.equal(status, 400, JSON.stringify(body))
      return answer.errors
        .map((each: { field: string; message: string }) => `${each.field}: ${each.message}`)
        .join()
    }
    const url = endpoint.url
    assert.match(await problemsOf({}), /^url: is required/)
    assert.match(await problemsOf({ url: 'http://8.8.8.8/' }), /^url: .*may not be called/)
    assert.match(await problemsOf({ url: `https://x.example/${'x'.repeat(2048)}` }), /^url: .*2048/)
    assert.match(await problemsOf({ url, events: ['user.create'] }), /^events.*did you mean "user.created"\?/)
    assert.match(await problemsOf({ url, events: 'user.created' }), /^events: /)
    assert.match(await problemsOf({ url, event: ['user.created'] }), /did you mean "events"\?/)
    assert.match(
      await problemsOf({ url, events: Array.from({ length: 22 }, () => 'user.created') }),
      /^events: .*most/,
    )
    const { id } = (await call('POST', '/webhooks', { url })).body
    assert.equal((await call('PATCH', `/webhooks/${id}`, { enabled: 'yes' })).status, 400)
    assert.equal((await call('GET', `/webhooks/${id}/deliveries?state=lost`)).status, 400)
  })

  test('a key of an administrator changes webhooks, and gets no secret of one', async t => {
    const { server, call, token, endpoint } = await open(engine, t)
    const { key } = await server.createKey(token)
    const keyOptions = { token: key }
    const refusal = await call('POST', '/webhooks', { url: endpoint.url }, keyOptions)
    assert.deepEqual([refusal.status, refusal.body.code], [403, 'session_required'])
    const { id } = (await call('POST', '/webhooks', { url: endpoint.url })).body
    assert.equal(
      (await call('POST', `/webhooks/${id}/secrets`, {}, keyOptions)).body.code,
      'session_required',
    )
    const urlChange = { url: `${endpoint.url}/elsewhere` }
    assert.equal(
      (await call('PATCH', `/webhooks/${id}`, urlChange, keyOptions)).body.code,
      'session_required',
    )
    assert.equal((await call('GET', `/webhooks/${id}`)).body.url, endpoint.url)
    assert.equal((await call('PATCH', `/webhooks/${id}`, { enabled: false }, keyOptions)).status, 200)
    assert.equal((await call('PATCH', `/webhooks/${id}`, urlChange)).status, 200)
    assert.equal((await call('POST', `/webhooks/${id}/test`, undefined, keyOptions)).status, 200)
    const text = [
      (await call('GET', '/webhooks', undefined, keyOptions)).text,
      (await call('GET', `/webhooks/${id}/deliveries`, undefined, keyOptions)).text,
    ].join()
    assert.doesNotMatch(text, /whsec_/)
  })
})
