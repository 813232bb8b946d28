import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WebSocket as ws } from 'ws'
import { until } from '../../server/test/support/patience.ts'
import { Agent } from '../src/agent.ts'
import { BACKOFF_CAP_MS } from '../src/backoff.ts'
import { Keyway } from '../src/client.ts'
import type { KeywayError } from '../src/errors.ts'
import type { WebSocketConstructor } from '../src/hub-connection.ts'
import type { Json } from '../src/protocol.ts'
import { verifyAgentToken } from '../src/verify.ts'
import { platformWebSocket } from './support/agents.ts'
import { startDroppingProxy } from './support/dropping-proxy.ts'
import { sharedKeyway, startKeyway } from './support/keyway-server.ts'
import { createManualClock } from './support/manual-clock.ts'
import { record } from './support/recorder.ts'

/** Long enough to connect with a key before it expires, also on a slow machine. */
const KEY_LIFETIME_MS = 6000

// Runs three tests at once, since they mostly wait.
describe('against the real service', { concurrency: 3 }, () => {
  const newPerson = sharedKeyway()

  test('an agent connects with a new key, and sends and receives', async t => {
    const { url, keyway } = await newPerson()
    const [first, second] = await Promise.all([connect('first'), connect('second')])
    const delivery = await first.agent.send(second.ready.connectionId, { hello: 'world' })
    assert.deepEqual(delivery, { delivered: 1, held: 0 })
    const message = await second.events.message.next()
    assert.deepEqual(message.data, { hello: 'world' })
    assert.equal(message.from, first.ready.connectionId)
    assert.equal((await keyway.agents.list()).data.length, 2)
    assert.deepEqual(await keyway.agents.send(first.ready.keyId, 'over http'), { delivered: 1, held: 0 })
    assert.equal((await first.events.message.next()).from, 'api')

    async function connect(name: string) {
      const { key } = await keyway.apiKeys.create({ name })
      const agent = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
      t.after(() => agent.close())
      const events = record(agent)
      return { agent, events, ready: await events.ready.next() }
    }
  })

  test('an app verifies keys and consumes calls of their limits, whatever other credentials share the request', async t => {
    const { url, keyway, command } = await startKeyway(t)
    await command('apps', 'add', 'quotes', '--name', 'Quotes')
    const secret = (await command('apps', 'secret', 'quotes')).trim()
    const { apps } = new Keyway({ url, app: { id: 'quotes', secret } })
    const { key, id } = await keyway.apiKeys.create({
      app_id: 'quotes',
      external_id: 'customer-42',
      metadata: { plan: 'pro' },
      limits: { requests: [{ limit: 5, per: 'day' }], quota: { remaining: 9 } },
    })
    const verification = await apps.verifyKey(key, { consume: 4 })
    assert.ok(verification.active)
    assert.deepEqual(
      [verification.key_id, verification.external_id, verification.metadata, verification.limits?.quota],
      [id, 'customer-42', { plan: 'pro' }, { remaining: 5 }],
    )
    assert.equal(verification.limits?.requests?.[0]?.remaining, 1)
    await assert.rejects(
      apps.verifyKey(key, { consume: 2 }),
      (error: KeywayError) => error.code === 'rate_limited' && error.retryAfter! > 0,
    )
    const plainVerification = await apps.verifyKey(key)
    assert.equal(plainVerification.active && plainVerification.limits?.quota?.remaining, 5)
    assert.deepEqual(await apps.verifyKey('svc_unknown'), { active: false })
    const [ownAnswer, unknownAnswer, overLimitAnswer] = await Promise.allSettled([
      apps.verifyKey(key),
      apps.verifyKey('svc_unknown'),
      apps.verifyKey(key, { consume: 2 }),
    ])
    assert.deepEqual(withoutReset(ownAnswer), withoutReset({ status: 'fulfilled', value: plainVerification }))
    assert.deepEqual(unknownAnswer, { status: 'fulfilled', value: { active: false } })
    assert.equal((overLimitAnswer as PromiseRejectedResult).reason.code, 'rate_limited')

    // An API that does not check whether its client sent a credential passes on undefined.
    const malformedCredentials = [
      'x'.repeat(16_000),
      '"'.repeat(12_000),
      'svc_\0',
      '\ud800',
      'svc_é',
      undefined as never,
    ]
    const longTokens = Array.from({ length: 31 }, () => 'a'.repeat(2000))
    for (const others of [...malformedCredentials.map(each => [each]), malformedCredentials, longTokens]) {
      const answers = await Promise.allSettled([...others, key].map(each => apps.verifyKey(each)))
      const keyAnswer = answers.pop()!
      assert.equal(keyAnswer.status === 'fulfilled' && keyAnswer.value.active && keyAnswer.value.key_id, id)
      for (const answer of answers)
        if (answer.status === 'fulfilled') assert.deepEqual(answer.value, { active: false })
    }
  })

  test('the usage of a key is reported, with the network and the client of its last use', async () => {
    const { url, keyway } = await newPerson()
    const { id, key } = await keyway.apiKeys.create()
    await keyway.exchange({ api_key: key })
    const clientWithKey = new Keyway({ url, apiKey: key })
    const { last_used_from: from } = await clientWithKey.apiKeys.get(id)
    assert.match(from!.client!, /^keyway-sdk\/\d/)
    const total = async () => {
      const [keyUsage, accountUsage] = [
        await keyway.apiKeys.usage(id, { bucket: 'hour' }),
        await keyway.usage(),
      ]
      const sum = (data: typeof accountUsage.data) => data.reduce((all, bucket) => all + bucket.exchanges, 0)
      return [sum(keyUsage.data), sum(accountUsage.data)]
    }
    // Usage is stored every five seconds.
    await until('the exchange is stored', async () => `${await total()}` === '1,1')
  })

  test('revoking the key stops its agent permanently and at once', async () => {
    const { url, keyway } = await newPerson()
    const { id, key } = await keyway.apiKeys.create()
    const agent = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
    const events = record(agent)
    await events.ready.next()
    await keyway.apiKeys.revoke(id)
    const { error } = await events.stopped.next()
    assert.equal(error?.code, 'revoked')
    assert.match(error!.message, /Make a new key/)
    const eventsOfRefusedAgent = record(new Agent({ url, apiKey: key, WebSocket: platformWebSocket }))
    assert.equal((await eventsOfRefusedAgent.stopped.next()).error?.code, 'api_key_revoked')
  })

  test('the expiry of the key stops its agent', async () => {
    const { url, keyway } = await newPerson()
    const { key } = await keyway.apiKeys.create({
      expires_at: new Date(Date.now() + KEY_LIFETIME_MS).toISOString(),
    })
    const events = record(new Agent({ url, apiKey: key, WebSocket: platformWebSocket }))
    assert.ok((await events.ready.next()).expiresIn <= KEY_LIFETIME_MS / 1000)
    const { error } = await events.stopped.next()
    assert.equal(error?.code, 'api_key_expired')
  })

  test('a key without agent:connect stops its agent with the missing scope', async () => {
    const { url, keyway } = await newPerson()
    const { key } = await keyway.apiKeys.create({ scopes: ['account:read'] })
    const events = record(new Agent({ url, apiKey: key, WebSocket: platformWebSocket }))
    const { error } = await events.stopped.next()
    assert.equal(error?.code, 'insufficient_scope')
    assert.match(error!.message, /agent:connect/)
  })

  test('the token is renewed in place on the same connection', async t => {
    const { url, keyway } = await newPerson()
    const { key } = await keyway.apiKeys.create()
    const clock = createManualClock()
    const agent = new Agent({ url, apiKey: key, clock, WebSocket: platformWebSocket })
    t.after(() => agent.close())
    const events = record(agent)
    const { connectionId } = await events.ready.next()
    clock.advance(24_000)
    clock.wakeAfter(720_000)
    assert.ok((await events.renewed.next()).expiresIn > 800)
    assert.equal(agent.connection?.connectionId, connectionId)
  })

  test('an agent reconnects after a restart of the service, and sends its queue', async t => {
    const { url, keyway, restart } = await startKeyway(t)
    const { key, id } = await keyway.apiKeys.create()
    const agent = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
    const listener = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
    t.after(() => {
      agent.close()
      listener.close()
    })
    const [events, listenerEvents] = [record(agent), record(listener)]
    await Promise.all([events.ready.next(), listenerEvents.ready.next()])
    const pendingRestart = restart()
    await events.disconnected.next()
    const pendingSend = agent.send(id, 'queued while the service was away')
    await pendingRestart
    // Waits in real time, since the attempts during the outage have increased the back-off.
    await Promise.all([listenerEvents.ready.next(BACKOFF_CAP_MS + 10_000), pendingSend])
    assert.equal(agent.connected, true)
  })

  test('after a time of dropped packets the agent reconnects within 40 s', async t => {
    const { url, keyway } = await newPerson()
    const proxy = await startDroppingProxy(t, url)
    const { key } = await keyway.apiKeys.create()
    const clock = createManualClock()
    clock.randomness = 0.999 // the longest possible waits
    // Node's own WebSocket would reuse pooled connections for 4 s of real time, although the dropped packets make them
    // useless. The manual clock advances by minutes in that time.
    const agent = new Agent({ url: proxy.url, apiKey: key, clock, WebSocket: ws as WebSocketConstructor })
    t.after(() => agent.close())
    const events = record(agent)
    await events.ready.next()

    proxy.dropPackets()
    clock.advance(34_000)
    assert.equal(agent.connected, true)
    clock.advance(1_000)
    assert.equal(agent.connected, false)
    assert.equal((await events.disconnected.next()).willReconnect, true)
    // Packets are dropped until the eighth attempt has lost its second handshake (dial.ts), so that the rest of its
    // timeout and a full back-off follow.
    for (let attempt = 0; attempt < 8; attempt++) {
      if (attempt > 0) advanceToNextTimer() // the previous attempt times out
      await Promise.all([proxy.opened(), advanceToNextTimer()])
      await Promise.all([proxy.opened(), advanceToNextTimer()])
    }
    assert.equal(agent.connected, false)
    proxy.restore()
    const waitMs = advanceToNextTimer() + advanceToNextTimer()
    await events.ready.next()
    assert.ok(waitMs > 20_000 && waitMs <= 40_000, `reconnected after ${waitMs / 1000} s`)

    function advanceToNextTimer(): number {
      const delayMs = clock.next()!
      clock.advance(delayMs)
      return delayMs
    }
  })

  test('after a short time of dropped packets the first attempt succeeds, despite pooled dead connections', async t => {
    const { url, keyway } = await newPerson()
    const proxy = await startDroppingProxy(t, url)
    const { key } = await keyway.apiKeys.create()
    const clock = createManualClock()
    const agent = new Agent({ url: proxy.url, apiKey: key, clock, WebSocket: platformWebSocket })
    t.after(() => agent.close())
    const events = record(agent)
    await events.ready.next()
    proxy.dropPackets()
    proxy.restore()
    clock.advance(35_000)
    await events.disconnected.next()
    let waitMs = 0
    while (!agent.connected && waitMs < 20_000) {
      const attemptEnded = Promise.withResolvers<void>()
      agent.once('ready', () => attemptEnded.resolve())
      agent.once('disconnected', () => attemptEnded.resolve())
      const untilHandshakeLost = proxy.handshakeLost()
      waitMs += clock.next()!
      clock.advance(clock.next()!)
      await Promise.race([attemptEnded.promise, untilHandshakeLost])
    }
    assert.ok(waitMs <= 5_000, `reconnected after 35 s and ${waitMs / 1000} s`)
  })

  test('with repeated connection resets every message arrives, in order', async t => {
    const { url, keyway } = await newPerson()
    const proxy = await startDroppingProxy(t, url)
    const { key } = await keyway.apiKeys.create()
    const receiver = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
    const clock = createManualClock()
    const sender = new Agent({ url: proxy.url, apiKey: key, clock, WebSocket: platformWebSocket })
    t.after(() => {
      receiver.close()
      sender.close()
    })
    const receivedData: Json[] = []
    receiver.on('message', ({ data }) => receivedData.push(data))
    const [events, { ready }] = [record(sender), record(receiver)]
    const [, { connectionId }] = await Promise.all([events.ready.next(), ready.next()])
    const sending: Promise<unknown>[] = []
    for (let round = 0; round < 12; round++) {
      for (let n = 0; n < 10; n++) sending.push(sender.send(connectionId, round * 10 + n))
      for (let turns = 0; turns < round; turns++) await new Promise(resolve => setImmediate(resolve))
      proxy.resetAll()
      await events.disconnected.next()
      clock.advance(clock.next()!)
      await events.ready.next()
    }
    await Promise.all(sending)
    const withoutDuplicates = [...new Set(receivedData)]
    assert.deepEqual(
      withoutDuplicates,
      Array.from({ length: 120 }, (_, n) => n),
    )
  })

  test('a full queue of 256 messages is sent within the hub’s limits', async t => {
    const { url, keyway } = await newPerson()
    const { key } = await keyway.apiKeys.create()
    const agent = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
    t.after(() => agent.close())
    const sending = Array.from({ length: 256 }, (_, count) => agent.send('all', count))
    assert.equal((await Promise.all(sending)).length, 256)
  })

  test('verifyAgentToken accepts an agent token and refuses an access token', async () => {
    const { url, keyway, tokens } = await newPerson()
    const { key, user_id } = await keyway.apiKeys.create()
    const { token } = await keyway.exchange({ api_key: key })
    const claims = await verifyAgentToken(token, { issuer: url, audience: `${url}/hub` })
    assert.equal(claims.sub, user_id)
    const { access } = (await tokens.get())!
    await assert.rejects(verifyAgentToken(access, { issuer: url, audience: `${url}/hub` }), /typ is not/)
  })

  test('a lost refresh response does not end the session', async () => {
    const { url, tokens } = await newPerson()
    let losesResponse = true
    const losingFetch: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (!losesResponse || !String(input).endsWith('/auth/refresh')) return response
      losesResponse = false
      throw new TypeError('the response was lost')
    }
    const keyway = new Keyway({ url, tokens, fetch: losingFetch })
    const tokenBefore = (await tokens.get())!.refresh
    await keyway.refresh()
    assert.notEqual((await tokens.get())!.refresh, tokenBefore)
    assert.equal((await keyway.account.get()).balance.amount, '2.00')
    await keyway.logout()
    await assert.rejects(
      keyway.account.get(),
      (error: KeywayError) => error.code === 'authentication_required',
    )
  })
})

/** `value` without the seconds until a limit has room, which pass between two answers. */
function withoutReset(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (name, each) => (name === 'reset_seconds' ? undefined : each)))
}
