import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Agent } from '../src/agent.ts'
import { KeywayError } from '../src/errors.ts'
import { platformWebSocket, startAgent, startConnected } from './support/agents.ts'
import type { ManualClock } from './support/manual-clock.ts'
import {
  problem,
  readyFrame,
  type ServerEnd,
  startProtocolServer,
  TEST_KEY,
} from './support/protocol-server.ts'
import { type RecordedEvents, record } from './support/recorder.ts'

const HOUR = 3_600_000
/** 75 % of 900 s: a token is renewed after 70 to 80 % of its lifetime, and the test clock's randomness is one half. */
const RENEWAL_AT_MS = 675_000
const hasCode = (code: string) => (error: unknown) => error instanceof KeywayError && error.code === code

/** Waits for I/O that is in progress and cannot be awaited. */
const letIoFinish = async (rounds = 20) => {
  for (let round = 0; round < rounds; round++) await new Promise(resolve => setTimeout(resolve, 1))
}

describe('connect', () => {
  test('an agent exchanges its key once and connects with the token', async t => {
    const { server, agent, events } = await startAgent(t)
    assert.equal(await server.exchanges.next(), TEST_KEY)
    const serverEnd = await server.connections.next()
    const ready = await events.ready.next()
    assert.equal(serverEnd.token, 'token-1')
    assert.deepEqual(ready, {
      connectionId: 'connection-1',
      agentId: 'agent',
      keyId: 'key',
      keyName: 'Robot',
      scopes: [],
      expiresIn: 900,
      resumed: false,
    })
    assert.equal(agent.connected, true)
    assert.equal(agent.connection?.connectionId, 'connection-1')
    assert.equal(server.exchangeCount, 1)
  })

  test('the key comes from KEYWAY_API_KEY when none is passed', async t => {
    process.env.KEYWAY_API_KEY = `svc_${'b'.repeat(32)}`
    t.after(() => void delete process.env.KEYWAY_API_KEY)
    const { server } = await startAgent(t, { apiKey: undefined })
    assert.equal(await server.exchanges.next(), `svc_${'b'.repeat(32)}`)
  })

  test('a missing or malformed setting throws at once, with an example', () => {
    assert.throws(
      () => new Agent({ url: 'https://keyway.test', WebSocket: platformWebSocket }),
      /KEYWAY_API_KEY/,
    )
    const options = { url: 'https://keyway.test', apiKey: 'svc_short', WebSocket: platformWebSocket }
    for (const apiKey of ['svc_short', 'two words', ''])
      assert.throws(() => new Agent({ ...options, apiKey }), hasCode('invalid_api_key'), apiKey)
    assert.throws(() => new Agent({ apiKey: TEST_KEY, url: 'keyway' }), /https:\/\/keyway\.example\.com/)
    assert.throws(() => new Agent({ apiKey: TEST_KEY }), /KEYWAY_URL/)
  })

  test('a key that a service imported from another system is exchanged too', async t => {
    const { server } = await startAgent(t, { apiKey: 'sk_live_0123456789abcdef' })
    assert.equal(await server.exchanges.next(), 'sk_live_0123456789abcdef')
  })

  test('a browser gets tokens from its own backend, without a key', async t => {
    const getToken = () => ({ token: 'from-the-backend', expires_in: 900 })
    const { server } = await startAgent(t, { apiKey: undefined, getToken })
    assert.equal((await server.connections.next()).token, 'from-the-backend')
    assert.equal(server.exchangeCount, 0)
  })

  test('an exchange without response times out after 8 s and is retried', async t => {
    const { server, events, clock } = await startAgent(t, {}, server => {
      const answerWithToken = server.answer
      server.answer = count => (count === 1 ? 'hang' : answerWithToken(count))
    })
    await server.exchanges.next()
    clock.advance(8_000)
    assert.equal((await events.disconnected.next()).reason, 'timeout')
    clock.advance(1000)
    await events.ready.next()
  })

  test('a connection without `ready` times out after 10 s', async t => {
    const { server, events, clock } = await startAgent(t, {}, server => {
      const greetWithReady = server.greet
      server.greet = serverEnd => serverEnd.id !== 'connection-1' && greetWithReady(serverEnd)
    })
    await server.connections.next()
    clock.advance(10_000)
    assert.equal((await events.disconnected.next()).reason, 'no answer in time')
    clock.advance(20_000)
    await events.ready.next()
  })
})

describe('permanent stop', () => {
  const refusals: [number, string][] = [
    [401, 'invalid_api_key'],
    [401, 'api_key_revoked'],
    [401, 'api_key_expired'],
    [403, 'insufficient_scope'],
    [403, 'account_suspended'],
    [403, 'network_not_allowed'],
  ]
  for (const [status, code] of refusals) {
    test(`an exchange refused with ${code} stops the agent with advice in its error`, async t => {
      const { server, events, clock, agent } = await startAgent(t, {}, server => {
        server.answer = () => problem(status, code)
      })
      const { error } = await events.stopped.next()
      assert.equal(error?.code, code)
      assert.match(error!.message, /(Make|Check|Use|Ask|Add) /)
      assert.equal((await events.disconnected.next()).willReconnect, false)
      clock.advance(24 * HOUR)
      assert.equal(server.exchangeCount, 1)
      await assert.rejects(agent.send('all', 1), hasCode(code))
    })
  }

  test('an exchange refused with a code that this version does not know stops the agent with the message of the service', async t => {
    const { server, events, clock } = await startAgent(t, {}, server => {
      server.answer = () => problem(403, 'newer_code')
    })
    const { error } = await events.stopped.next()
    assert.equal(error?.code, 'newer_code')
    assert.equal((await events.disconnected.next()).willReconnect, false)
    clock.advance(24 * HOUR)
    assert.equal(server.exchangeCount, 1)
  })

  test('a 403 without a problem document, as proxies answer, does not stop the agent', async t => {
    const { events } = await startAgent(t, {}, server => {
      server.answer = () => ({ status: 403, body: 'Forbidden' })
    })
    assert.equal((await events.disconnected.next()).willReconnect, true)
  })

  for (const [closeCode, reason, code] of [
    [4410, 'revoked', 'revoked'],
    [4410, '', 'revoked'],
    [4403, 'account_suspended', 'account_suspended'],
    [4403, 'insufficient_scope', 'insufficient_scope'],
    [4403, 'newer_reason', 'newer_reason'],
    [4403, '', 'refused'],
    [4400, 'bad_message', 'refused'],
    [1009, 'too_big', 'refused'],
  ] as const) {
    test(`a connection closed with ${closeCode} ${reason || '(no reason)'} stops the agent permanently`, async t => {
      const { server, events, clock, serverEnd } = await startConnected(t)
      serverEnd.close(closeCode, reason)
      assert.equal((await events.disconnected.next()).willReconnect, false)
      const { error } = await events.stopped.next()
      assert.equal(error?.code, code)
      clock.advance(24 * HOUR)
      assert.equal(server.connectionCount, 1)
      assert.equal(clock.next(), undefined)
    })
  }

  test('a renewal refused because of a revocation closes the connection at once', async t => {
    const { server, events, clock, serverEnd } = await startConnected(t)
    server.answer = () => problem(401, 'api_key_revoked')
    await keepAlive(clock, serverEnd, events, RENEWAL_AT_MS - 1)
    clock.advance(1)
    assert.equal((await events.stopped.next()).error?.code, 'api_key_revoked')
    await serverEnd.closed
  })

  test('an iteration over messages throws the error that stopped the agent', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const read = (async () => {
      for await (const _ of agent) serverEnd.close(4410, 'revoked')
    })()
    serverEnd.send({ type: 'message', id: '1', from: 'x', from_key_id: null, data: 1 })
    await assert.rejects(read, hasCode('revoked'))
  })

  test('close() and the abort signal stop without an error, and leave no timer', async t => {
    const controller = new AbortController()
    const { agent, events, clock, serverEnd } = await startConnected(t, { signal: controller.signal })
    const sending = agent.send('all', 'never acknowledged')
    controller.abort()
    await assert.rejects(sending, hasCode('closed'))
    assert.deepEqual(await events.stopped.next(), { error: undefined })
    assert.equal(clock.next(), undefined)
    assert.equal(await serverEnd.closed, 1000)
    assert.equal(events.disconnected.rest.length, 0)
  })
})

describe('reconnect', () => {
  for (const [code, reason, exchanges] of [
    [1012, 'restarting', 1],
    [1001, 'going_away', 1],
    [1011, 'internal', 1],
    [1013, 'try_again_later', 1],
    [4429, 'slow_consumer', 1],
    [4401, 'invalid_token', 2],
    [4408, 'token_expired', 2],
    [4999, 'never heard of', 1],
  ] as const) {
    test(`after ${code} ${reason} the agent reconnects with ${exchanges} exchange(s)`, async t => {
      const { server, events, clock, serverEnd } = await startConnected(t)
      serverEnd.close(code, reason)
      const { retryInMs } = await events.disconnected.next()
      assert.ok(retryInMs! <= 1000)
      clock.advance(1000)
      await events.ready.next()
      assert.equal(server.exchangeCount, exchanges)
    })
  }

  test('the back-off grows from 0.5 s to 20 s while the service is unreachable', async t => {
    const { server, events, clock } = await startConnected(t)
    clock.randomness = 0.999999
    await server.stop()
    const waits: number[] = []
    for (let attempt = 0; attempt < 9; attempt++) {
      const { retryInMs } = await events.disconnected.next()
      waits.push(retryInMs!)
      clock.advance(retryInMs! + 1)
    }
    assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000])
    await events.disconnected.next()
    await server.start()
    clock.advance(20_000)
    await events.ready.next()
  })

  test('Retry-After is honoured', async t => {
    const { events, clock } = await startAgent(t, {}, server => {
      const answerWithToken = server.answer
      server.answer = count => (count === 1 ? problem(429, 'rate_limited', 30) : answerWithToken(count))
    })
    const { retryInMs } = await events.disconnected.next()
    assert.ok(retryInMs! >= 30_000)
    clock.advance(retryInMs!)
    await events.ready.next()
  })

  test('connections that close soon after `ready` do not reset the back-off', async t => {
    const { server, events, clock, serverEnd } = await startConnected(t)
    clock.randomness = 0.999999
    serverEnd.close(4429, 'too_many_connections')
    const waits: number[] = []
    for (let round = 0; round < 4; round++) {
      const { retryInMs } = await events.disconnected.next()
      waits.push(retryInMs!)
      server.greet = next => {
        next.send(readyFrame(next.id, 900))
        next.close(4429, 'too_many_connections')
      }
      clock.advance(retryInMs! + 1)
    }
    assert.deepEqual(waits, [500, 1000, 2000, 4000])
  })

  test('a connection that drops packets is detected after 25 s of silence and a ping without pong', async t => {
    const { agent, events, clock, serverEnd } = await startConnected(t)
    clock.advance(25_000)
    assert.deepEqual(await serverEnd.frames.next(), { type: 'ping' })
    clock.advance(9_999)
    assert.equal(agent.connected, true)
    clock.advance(1)
    assert.equal(agent.connected, false)
    assert.equal((await events.disconnected.next()).reason, 'no answer to a ping')
    clock.advance(1000)
    await events.ready.next()
  })

  test('a pong keeps the connection open', async t => {
    const { agent, clock, serverEnd, events } = await startConnected(t)
    for (let round = 0; round < 3; round++) {
      clock.advance(25_000)
      assert.deepEqual(await serverEnd.frames.next(), { type: 'ping' })
      serverEnd.send({ type: 'pong' })
      serverEnd.send({ type: 'message', id: `m${round}`, from: 'x', from_key_id: null, data: null })
      await events.message.next()
    }
    clock.advance(24_999)
    assert.equal(agent.connected, true)
  })

  test('after a suspend of eight hours the agent detects the dead connection and reconnects', async t => {
    const { events, clock, serverEnd } = await startConnected(t)
    clock.wakeAfter(8 * HOUR)
    while ((await serverEnd.frames.next()).type !== 'token'); // the exchange is answered, so time may advance
    clock.advance(10_000)
    assert.equal((await events.disconnected.next()).willReconnect, true)
    clock.advance(1000)
    await events.ready.next()
  })

  test('steps of the wall clock have no effect', async t => {
    const originalNow = Date.now
    t.after(() => {
      Date.now = originalNow
    })
    const { server, clock, agent } = await startConnected(t)
    const nextTimerMs = clock.next()
    for (const step of [-12 * HOUR, 12 * HOUR, -50 * 365 * 24 * HOUR]) {
      Date.now = () => originalNow() + step
      clock.advance(1)
      await letIoFinish(3)
    }
    assert.equal(clock.next(), nextTimerMs! - 3)
    assert.equal(agent.connected, true)
    assert.equal(server.exchangeCount, 1)
  })
})

/** Drains the agent's connection; returns the server's end of its new one. */
async function moveAgent({
  server,
  events,
  clock,
  serverEnd,
}: Omit<Awaited<ReturnType<typeof startConnected>>, 'agent'>): Promise<ServerEnd> {
  serverEnd.send({ type: 'draining', close_in_seconds: 10 })
  await letIoFinish()
  clock.advance(1000)
  const successor = await server.connections.next()
  await events.ready.next()
  return successor
}

describe('move to another node', () => {
  test('on `draining` the agent keeps the old connection until its successor is ready', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    serverEnd.send({ type: 'draining', close_in_seconds: 10 })
    await letIoFinish()
    clock.advance(1000)
    const successor = await server.connections.next()
    assert.equal((await events.ready.next()).connectionId, 'connection-2')
    serverEnd.send({ type: 'message', id: 'late', from: 'x', from_key_id: null, data: 'over the old one' })
    assert.equal((await events.message.next()).data, 'over the old one')
    serverEnd.close(1012, 'restarting')
    const sending = agent.send('all', 'over the new one')
    const frame = (await successor.frames.next()) as { id: string }
    successor.send({ type: 'sent', id: frame.id, delivered: 2 })
    assert.deepEqual(await sending, { delivered: 2 })
    await serverEnd.closed
    await letIoFinish()
    assert.equal(events.disconnected.rest.length, 0)
    assert.equal(server.connectionCount, 2)
  })

  test('sends on the new connection wait for the acknowledgements of the old one', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    const sendsOnOld = [agent.send('all', 1), agent.send('all', 2)]
    const firstFrame = (await serverEnd.frames.next()) as { id: string }
    const secondFrame = (await serverEnd.frames.next()) as { id: string }
    const successor = await moveAgent({ server, events, clock, serverEnd })
    const sendOnNew = agent.send('all', 3)
    serverEnd.send({ type: 'sent', id: firstFrame.id, delivered: 1 })
    await sendsOnOld[0]
    await letIoFinish()
    assert.equal(successor.frames.rest.length, 0)
    serverEnd.send({ type: 'error', code: 'invalid_frame', detail: 'two', id: secondFrame.id })
    await assert.rejects(sendsOnOld[1]!)
    const thirdFrame = (await successor.frames.next()) as { id: string; data: unknown }
    assert.equal(thirdFrame.data, 3)
    successor.send({ type: 'sent', id: thirdFrame.id, delivered: 1 })
    await sendOnNew
  })

  test('sends that the old connection did not acknowledge are sent again over the new one', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    const sending = agent.send('all', 'once')
    await serverEnd.frames.next()
    const successor = await moveAgent({ server, events, clock, serverEnd })
    serverEnd.close(1012, 'restarting')
    const frame = (await successor.frames.next()) as { id: string; data: unknown }
    assert.equal(frame.data, 'once')
    successor.send({ type: 'sent', id: frame.id, delivered: 1 })
    assert.deepEqual(await sending, { delivered: 1 })
  })

  test('the old connection stays in use while no other node answers', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    server.greet = next => next.close(1012, 'restarting')
    serverEnd.send({ type: 'draining', close_in_seconds: 10 })
    await letIoFinish()
    clock.advance(1000)
    await server.connections.next()
    await letIoFinish()
    assert.equal(agent.connected, true)
    assert.equal(events.disconnected.rest.length, 0)
    server.greet = next => next.send(readyFrame(next.id, 900))
    serverEnd.close(1012, 'restarting')
    await events.disconnected.next()
    clock.advance(20_000)
    await events.ready.next()
  })

  test('a message received over both connections is emitted once', async t => {
    const { server, events, clock, serverEnd } = await startConnected(t)
    const successor = await moveAgent({ server, events, clock, serverEnd })
    const duplicate = { type: 'message', id: 'm', from: 'x', from_key_id: null, data: 1 }
    serverEnd.send(duplicate)
    successor.send(duplicate)
    successor.send({ ...duplicate, id: 'n', data: 2 })
    serverEnd.send({ type: 'pong' })
    assert.equal((await events.message.next()).id, 'm')
    assert.equal((await events.message.next()).id, 'n')
  })

  for (const [how, release] of [
    ['answers a ping', serverEnd => serverEnd.send({ type: 'pong' })],
    ['is closed', serverEnd => serverEnd.close(1012, 'restarting')],
    ['has been silent for longer than a hub waits', (_, clock) => clock.advance(2_500)],
  ] as [string, (serverEnd: ServerEnd, clock: ManualClock) => void][])
    test(`messages of the successor are buffered until the old connection ${how}`, async t => {
      const { server, events, clock, serverEnd } = await startConnected(t)
      const successor = await moveAgent({ server, events, clock, serverEnd })
      assert.deepEqual(await serverEnd.frames.next(), { type: 'ping' })
      const message = { type: 'message', from: 'x', from_key_id: null }
      successor.send({ ...message, id: 'second', data: 2 })
      await letIoFinish()
      assert.equal(events.message.rest.length, 0)
      serverEnd.send({ ...message, id: 'first', data: 1 })
      assert.equal((await events.message.next()).id, 'first')
      release(serverEnd, clock)
      assert.equal((await events.message.next()).id, 'second')
      successor.send({ ...message, id: 'third', data: 3 })
      assert.equal((await events.message.next()).id, 'third')
    })

  test('messages of the successor are buffered until the last ping of the old connection is answered', async t => {
    const { server, events, clock, serverEnd } = await startConnected(t)
    clock.advance(25_000)
    assert.deepEqual(await serverEnd.frames.next(), { type: 'ping' })
    const successor = await moveAgent({ server, events, clock, serverEnd })
    assert.deepEqual(await serverEnd.frames.next(), { type: 'ping' })
    const message = { type: 'message', from: 'x', from_key_id: null }
    successor.send({ ...message, id: 'second', data: 2 })
    successor.send({ type: 'pong' })
    await letIoFinish()
    serverEnd.send({ type: 'pong' })
    serverEnd.send({ ...message, id: 'first', data: 1 })
    assert.equal((await events.message.next()).id, 'first')
    serverEnd.send({ type: 'pong' })
    assert.equal((await events.message.next()).id, 'second')
  })

  test('messages of the successor are emitted if it closes first', async t => {
    const { server, events, clock, serverEnd } = await startConnected(t)
    const successor = await moveAgent({ server, events, clock, serverEnd })
    assert.deepEqual(await serverEnd.frames.next(), { type: 'ping' })
    successor.send({ type: 'message', id: 'brought', from: 'x', from_key_id: null, data: 1 })
    await letIoFinish()
    assert.equal(events.message.rest.length, 0)
    successor.close(1012, 'restarting')
    assert.equal((await events.message.next()).id, 'brought')
  })
})

describe('send', () => {
  test('queued sends survive a restart of the service, in order', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    const firstSend = agent.send('key', 1)
    await serverEnd.frames.next()
    await server.stop()
    await events.disconnected.next()
    const laterSends = [agent.send('key', 2), agent.send('key', 3)]
    await server.start()
    clock.advance(20_000)
    const nextEnd = await server.connections.next()
    for (const expected of [1, 2, 3]) {
      const frame = (await nextEnd.frames.next()) as { id: string; data: unknown }
      assert.equal(frame.data, expected)
      nextEnd.send({ type: 'sent', id: frame.id, delivered: 1 })
    }
    assert.deepEqual(await Promise.all([firstSend, ...laterSends]), Array(3).fill({ delivered: 1 }))
  })

  test('256 messages are queued, and the next one is refused', async t => {
    const { agent } = await startAgent(t, {}, server => {
      server.answer = () => 'hang'
    })
    for (let count = 0; count < 256; count++) agent.send('all', count).catch(() => {})
    await assert.rejects(agent.send('all', 256), hasCode('queue_full'))
  })

  test('1 MiB is queued, and more is refused; a frame over 64 KiB is refused at once', async t => {
    const { agent } = await startAgent(t, {}, server => {
      server.answer = () => 'hang'
    })
    for (let count = 0; count < 16; count++) agent.send('all', 'x'.repeat(65_000)).catch(() => {})
    await assert.rejects(agent.send('all', 'x'.repeat(65_000)), hasCode('queue_full'))
    await assert.rejects(agent.send('all', 'x'.repeat(65_536)), hasCode('too_large'))
  })

  test('a message that the hub refuses rejects its send', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const sending = agent.send('all', 1)
    const { id } = (await serverEnd.frames.next()) as { id: string }
    serverEnd.send({ type: 'error', code: 'insufficient_scope', detail: 'No.', id })
    await assert.rejects(sending, hasCode('insufficient_scope'))
    assert.equal(agent.connected, true)
  })

  test('a rate-limited message is sent again after a second', async t => {
    const { agent, clock, serverEnd } = await startConnected(t)
    const sending = agent.send('all', 'patience')
    const { id } = (await serverEnd.frames.next()) as { id: string }
    serverEnd.send({ type: 'error', code: 'rate_limited', detail: 'Slow down.', id })
    await letIoFinish()
    assert.equal(serverEnd.frames.rest.length, 0)
    clock.advance(1000)
    assert.equal(((await serverEnd.frames.next()) as { id: string }).id, id)
    serverEnd.send({ type: 'sent', id, delivered: 1 })
    assert.deepEqual(await sending, { delivered: 1 })
  })

  test('an aborted send is not sent later', async t => {
    const controller = new AbortController()
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    serverEnd.close(1012, 'restarting')
    await events.disconnected.next()
    const abortedSend = agent.send('all', 'given up', { signal: controller.signal })
    agent.send('all', 'kept').catch(() => {})
    controller.abort(new Error('changed my mind'))
    await assert.rejects(abortedSend, /changed my mind/)
    clock.advance(1000)
    const nextEnd = await server.connections.next()
    assert.equal(((await nextEnd.frames.next()) as { data: unknown }).data, 'kept')
  })
})

describe('receive', () => {
  test('an iteration yields messages with their sender', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const iterator = agent[Symbol.asyncIterator]()
    serverEnd.send({ type: 'message', id: '7', from: 'api', from_key_id: 'k', data: { a: [1] } })
    const expected = { id: '7', from: 'api', fromKeyId: 'k', data: { a: [1] } }
    assert.deepEqual(await iterator.next(), { value: expected, done: false })
  })

  test('invalid frames and unknown types are ignored', async t => {
    const { agent, events, serverEnd } = await startConnected(t)
    for (const raw of ['', 'null', '[]', '{', '{"type":1}', '"x"', '{"type":"hologram"}'])
      serverEnd.sendRaw(raw)
    serverEnd.sendRaw(Buffer.from([0, 1, 2]))
    serverEnd.send({ type: 'message', id: '1', from: 'x', from_key_id: null, data: 'still here' })
    assert.equal((await events.message.next()).data, 'still here')
    assert.equal(agent.connected, true)
  })
})

describe('renewal', () => {
  test('the token is renewed in place between 70 and 80 % of its lifetime', async t => {
    for (const [randomness, seconds] of [
      [0, 720],
      [0.999999, 630.01],
    ] as const) {
      const server = await startProtocolServer(t)
      const { createManualClock } = await import('./support/manual-clock.ts')
      const clock = createManualClock()
      clock.randomness = randomness
      const agent = new Agent({ url: server.url, apiKey: TEST_KEY, clock, WebSocket: platformWebSocket })
      t.after(() => agent.close())
      const events = record(agent)
      const serverEnd = await server.connections.next()
      await events.ready.next()
      await keepAlive(clock, serverEnd, events, seconds * 1000 - 100)
      assert.equal(server.exchangeCount, 1)
      clock.advance(100)
      const frame = (await nextFrameOfType(serverEnd, 'token')) as { token: string }
      assert.equal(frame.token, 'token-2')
      serverEnd.send({ type: 'token_accepted', expires_at: '', expires_in: 900 })
      assert.deepEqual(await events.renewed.next(), { expiresIn: 900 })
      assert.equal(server.connectionCount, 1)
    }
  })

  test('a failed exchange is retried while the old token is valid', async t => {
    const { server, events, clock, serverEnd } = await startConnected(t, {}, server => {
      const answerWithToken = server.answer
      server.answer = count =>
        count === 2 ? problem(503, 'unavailable') : count === 3 ? 'drop' : answerWithToken(count)
    })
    await keepAlive(clock, serverEnd, events, RENEWAL_AT_MS - 1)
    clock.advance(1)
    for (let round = 0; round < 4; round++) {
      await letIoFinish()
      clock.advance(1000)
    }
    assert.equal(((await nextFrameOfType(serverEnd, 'token')) as { token: string }).token, 'token-4')
    assert.equal(server.connectionCount, 1)
    assert.equal(events.disconnected.rest.length, 0)
  })

  test('a refused token is replaced by a new one, and the connection stays open', async t => {
    const { clock, serverEnd, events } = await startConnected(t)
    await keepAlive(clock, serverEnd, events, RENEWAL_AT_MS - 1)
    clock.advance(1)
    await nextFrameOfType(serverEnd, 'token')
    serverEnd.send({ type: 'error', code: 'invalid_token', detail: 'No.' })
    await letIoFinish()
    clock.advance(1000)
    assert.equal(((await nextFrameOfType(serverEnd, 'token')) as { token: string }).token, 'token-3')
    assert.equal(events.disconnected.rest.length, 0)
  })

  test('a token that was refused at a renewal is not used for the next connection', async t => {
    const { server, clock, serverEnd, events } = await startConnected(t)
    await keepAlive(clock, serverEnd, events, RENEWAL_AT_MS - 1)
    clock.advance(1)
    assert.equal(((await nextFrameOfType(serverEnd, 'token')) as { token: string }).token, 'token-2')
    serverEnd.send({ type: 'error', code: 'invalid_token', detail: 'No.' })
    serverEnd.close(1011, 'internal')
    const { retryInMs } = await events.disconnected.next()
    clock.advance(retryInMs!)
    const nextEnd = await server.connections.next()
    assert.equal(nextEnd.token, 'token-3')
  })

  test('`token_expiring` triggers the renewal', async t => {
    const { clock, serverEnd } = await startConnected(t)
    serverEnd.send({ type: 'token_expiring', expires_at: '', expires_in: 60 })
    await letIoFinish()
    clock.advance(0)
    assert.equal(((await nextFrameOfType(serverEnd, 'token')) as { token: string }).token, 'token-2')
  })

  test('an agent whose key is about to expire does not exchange in a tight loop', async t => {
    const { server, clock, serverEnd } = await startConnected(t, {}, server => {
      server.expiresIn = 20
    })
    for (let second = 0; second < 20; second++) {
      clock.advance(1000)
      await letIoFinish(4)
      serverEnd.send({ type: 'token_accepted', expires_at: '', expires_in: 20 - second })
      serverEnd.send({ type: 'token_expiring', expires_at: '', expires_in: 20 - second })
      await letIoFinish(4)
    }
    assert.ok(server.exchangeCount <= 5, `${server.exchangeCount} exchanges`)
  })

  for (const nonsense of [0, -900, 1e300, null, 'soon', undefined, {}]) {
    test(`an expires_in of ${JSON.stringify(nonsense)} causes neither a stop nor a tight loop`, async t => {
      const { server, agent, clock, serverEnd } = await startConnected(t, {}, server => {
        server.expiresIn = nonsense
      })
      for (let minute = 0; minute < 10; minute++) {
        clock.advance(20_000)
        serverEnd.send({ type: 'pong' })
        await letIoFinish(4)
      }
      assert.equal(agent.connected, true)
      assert.ok(server.exchangeCount < 30, `${server.exchangeCount} exchanges in 200 s`)
    })
  }
})

/** Advances time by `ms`. A message at least every 20 seconds keeps the agent from sending pings. */
async function keepAlive(
  clock: { advance(ms: number): void },
  serverEnd: ServerEnd,
  events: RecordedEvents,
  ms: number,
): Promise<void> {
  for (let remaining = ms; remaining > 0; remaining -= 20_000) {
    clock.advance(Math.min(20_000, remaining))
    serverEnd.send({ type: 'message', id: `heard-${remaining}`, from: 'x', from_key_id: null, data: null })
    await events.message.next()
  }
}

async function nextFrameOfType(
  serverEnd: { frames: { next(): Promise<{ type: string }> } },
  type: string,
): Promise<unknown> {
  for (;;) {
    const frame = await serverEnd.frames.next()
    if (frame.type === type) return frame
  }
}
