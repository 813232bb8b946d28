import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { HOUR } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { createOutgoing } from '../../src/outgoing/outgoing.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServices } from '../support/services.ts'
import { deliveryOf, openEndpoint, subscribe } from '../support/webhook-endpoint.ts'

/** The only address that may be called. */
const ALLOWED = ['127.0.0.1/32']
const FORBIDDEN = '127.0.0.2'

/** A server on the forbidden address, which counts connections. */
async function openForbidden(t: TestContext) {
  let connections = 0
  const server = createServer((_request, response) => void response.end())
  server.on('connection', () => connections++)
  // On the permitted address the port is held by a server that answers nothing; another process could listen there.
  const holder = createServer(request => void request.socket.destroy())
  await once(holder.listen(0, '127.0.0.1'), 'listening')
  const { port } = holder.address() as AddressInfo
  await once(server.listen(port, FORBIDDEN), 'listening')
  t.after(() => {
    for (const each of [server, holder]) {
      each.close()
      each.closeAllConnections()
    }
  })
  return { port, connections: () => connections }
}

forEachEngine(engine => {
  test('no event reaches a private, loopback or IPv4-mapped address, however it is written', async t => {
    const services = await openServices(engine, t, { webhookPrivateNetworks: ALLOWED })
    const { port, connections } = await openForbidden(t)
    const urls = [
      `http://${FORBIDDEN}:${port}/`,
      `https://${FORBIDDEN}:${port}/`,
      `http://2130706434:${port}/`,
      `http://0x7f.2:${port}/`,
      `http://0177.0.0.2:${port}/`,
      `http://127.2:${port}/`,
      `http://[::ffff:127.0.0.2]:${port}/`,
      `http://[::ffff:7f00:2]:${port}/`,
      `http://[::127.0.0.2]:${port}/`,
      `http://0.0.0.0:${port}/`,
      `http://[::]:${port}/`,
      `http://[::1]:${port}/`,
      'https://10.0.0.1/',
      'https://169.254.169.254/latest/meta-data/',
      'https://[fd00::1]/',
      'https://[64:ff9b::7f00:2]/',
    ]
    const { store, storage, clock } = services
    for (const [index, url] of urls.entries()) {
      // Inserts the endpoint as if it had been created under other settings, since now it would be refused.
      await assert.rejects(subscribe(services, url), /may not be called|https/, url)
      const id = newId(clock.now() + index)
      const fields = { events: [], createdAt: clock.now(), disabledAt: null, disabledBy: null, dropped: 0 }
      await store.webhooks.insert({ id, url, ...fields })
    }
    await storage.transaction(async tx => tx.publish({ type: 'webhooks.changed' }))
    await services.signIn('ada@example.com')
    const delivery = deliveryOf(services, { call: createOutgoing(ALLOWED) })
    await delivery.drain()
    for (const { id, url } of await store.webhooks.list()) {
      const { rows } = await store.webhookDeliveries.list(id, null, { limit: 10, after: null })
      assert.equal(rows.length, 2, url)
      for (const { state, lastAttempt } of rows)
        assert.deepEqual([state, lastAttempt!.status], ['waiting', null], url)
    }
    assert.equal(connections(), 0)
  })

  test('a name whose address changes after the check is called at the checked one, and a name with a forbidden address is not called', async t => {
    const services = await openServices(engine, t, { webhookPrivateNetworks: ALLOWED })
    const forbiddenServer = await openForbidden(t)
    const endpoint = await openEndpoint(t)
    const allowedPort = new URL(endpoint.url).port
    const answers: LookupAddress[][] = []
    let lookupCount = 0
    const resolveName = ((
      _name: string,
      _options: object,
      done: (error: null, found: LookupAddress[]) => void,
    ) => {
      lookupCount++
      done(null, answers.shift() ?? [{ address: FORBIDDEN, family: 4 }])
    }) as never
    const delivery = deliveryOf(services, { call: createOutgoing(ALLOWED, resolveName) })
    // The URL has the port of the forbidden server, to which a client that resolves the name twice would connect.
    const { id } = await subscribe(services, `http://rebinding.example.com:${forbiddenServer.port}/`, [
      'user.created',
    ])
    await services.signIn('ada@example.com')
    for (const found of [
      [{ address: FORBIDDEN, family: 4 }],
      [
        { address: '127.0.0.1', family: 4 },
        { address: FORBIDDEN, family: 4 },
      ],
      [{ address: '::ffff:127.0.0.2', family: 6 }],
      [{ address: '127.0.0.1', family: 4 }],
    ]) {
      answers.push(found)
      const lookupsBefore = lookupCount
      await delivery.drain()
      assert.equal(lookupCount, lookupsBefore + 1, 'one look-up, of which the address is used')
      services.clock.advance(HOUR)
    }
    assert.equal(forbiddenServer.connections(), 0)
    const webhooks = await services.webhooks()
    await webhooks.change(id, { url: `http://rebinding.example.com:${allowedPort}/` }, BY_COMMAND_LINE)
    answers.push([{ address: '127.0.0.1', family: 4 }])
    await delivery.drain()
    assert.equal(endpoint.received.length, 1)
  })

  test('redirects are failures, and are not followed', async t => {
    const services = await openServices(engine, t, { webhookPrivateNetworks: ALLOWED })
    const { port, connections } = await openForbidden(t)
    const endpoint = await openEndpoint(t)
    const { id } = await subscribe(services, endpoint.url, ['user.created'])
    await services.signIn('ada@example.com')
    const delivery = deliveryOf(services, { call: createOutgoing(ALLOWED) })
    const statuses = [300, 301, 302, 303, 304, 307, 308]
    for (const status of statuses) {
      endpoint.answer = () => ({ status, headers: { location: `http://${FORBIDDEN}:${port}/` } })
      await delivery.drain()
      services.clock.advance(HOUR)
    }
    assert.equal(endpoint.received.length, statuses.length)
    const [waiting] = (await services.store.webhookDeliveries.list(id, 'waiting', { limit: 1, after: null }))
      .rows
    assert.deepEqual([waiting!.attempts, waiting!.lastAttempt!.error], [statuses.length, 'status 308'])
    assert.equal(connections(), 0)
  })
})
