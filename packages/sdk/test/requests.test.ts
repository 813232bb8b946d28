import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../server/test/support/patience.ts'
import { Agent } from '../src/agent.ts'
import { KeywayError } from '../src/errors.ts'
import type { AgentFrame, Json } from '../src/protocol.ts'
import { MAX_PENDING_REQUESTS } from '../src/requests.ts'
import { platformWebSocket, startAgent, startConnected } from './support/agents.ts'
import { sharedKeyway } from './support/keyway-server.ts'
import type { ServerEnd } from './support/protocol-server.ts'
import { record } from './support/recorder.ts'

type Send = Extract<AgentFrame, { type: 'send' }>

const hasCode = (code: string, reason?: string) => (error: unknown) =>
  error instanceof KeywayError && error.code === code && error.reason === reason
const nextSend = async (serverEnd: ServerEnd) => (await serverEnd.frames.next()) as Send
const message = (id: string, data: Json, from = 'asker', reply_to?: string) => ({
  type: 'message',
  id,
  from,
  from_key_id: 'their key',
  data,
  reply_to,
})

describe('a request', () => {
  test('is a message with an unguessable id, and resolves with the result that replies to it', async t => {
    const { agent, events, serverEnd } = await startConnected(t)
    const requests = [agent.request('printer', { pages: 1 }), agent.request('printer', { pages: 2 })]
    const [first, second] = [await nextSend(serverEnd), await nextSend(serverEnd)]
    assert.match(first.id, /^request\.[0-9a-f]{32}-1$/)
    assert.deepEqual([first.to, first.data, first.reply_to], ['printer', { pages: 1 }, undefined])
    serverEnd.send({ type: 'sent', id: second.id, delivered: 1 })
    serverEnd.send(message('a', { result: null }, 'printer', second.id))
    serverEnd.send(message('b', { result: ['printed'] }, 'printer', first.id)) // before its acknowledgement
    serverEnd.send({ type: 'sent', id: first.id, delivered: 1 })
    assert.deepEqual(await Promise.all(requests), [['printed'], null])
    serverEnd.send(message('c', { result: 'too late' }, 'printer', first.id))
    serverEnd.send(message('d', 'plain', 'printer', 'some message'))
    const plainMessage = await events.message.next()
    assert.deepEqual(
      [plainMessage.id, plainMessage.replyTo],
      ['d', 'some message'],
      'late answers are no messages',
    )
  })

  test('resolves with data that is no `Answer`, as agents may send over HTTP, as the result itself', async t => {
    const { agent, serverEnd } = await startConnected(t)
    for (const data of [7, null, ['x'], { error: 'paper' }, { page: 1 }] as Json[]) {
      const answer = agent.request('printer', 1)
      serverEnd.send(message('a', data, 'api', (await nextSend(serverEnd)).id))
      assert.deepEqual(await answer, data)
    }
  })

  test('fails at once when nobody is there, but waits for a held connection', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const failedRequest = agent.request('printer', 1)
    serverEnd.send({ type: 'sent', id: (await nextSend(serverEnd)).id, delivered: 0 })
    await assert.rejects(failedRequest, hasCode('no_responders'))
    const heldRequest = agent.request('printer', 2)
    const { id } = await nextSend(serverEnd)
    serverEnd.send({ type: 'sent', id, delivered: 0, held: 1 })
    serverEnd.send(message('a', { result: 'back' }, 'printer', id))
    assert.equal(await heldRequest, 'back')
  })

  test('to several waits for a result until all of them have answered with an error', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const error = (code: string) => ({ error: { code, message: `It is ${code}.` } })
    const succeedingRequest = agent.request('all', 1)
    const firstId = (await nextSend(serverEnd)).id
    serverEnd.send(message('a', error('no_handler'), 'one', firstId))
    serverEnd.send(message('b', error('no_handler'), 'one', firstId)) // counts once
    serverEnd.send({ type: 'sent', id: firstId, delivered: 2 })
    serverEnd.send(message('c', { result: 'two' }, 'two', firstId))
    assert.equal(await succeedingRequest, 'two')

    for (const [code, expected] of [
      ['no_handler', hasCode('request_failed', 'busy')],
      ['failed', hasCode('request_failed', 'failed')],
      ['out_of_paper', hasCode('request_failed', 'out_of_paper')],
    ] as const) {
      const failingRequest = agent.request('all', 1)
      const { id } = await nextSend(serverEnd)
      serverEnd.send(message('a', error('busy'), 'one', id))
      serverEnd.send({ type: 'sent', id, delivered: 2 })
      serverEnd.send(message('b', error(code), 'two', id))
      await assert.rejects(failingRequest, expected)
    }
  })

  test('ends with its timeout, with its signal and with the agent', async t => {
    const { agent, clock, serverEnd } = await startConnected(t)
    const timedOutRequest = agent.request('printer', 1, { timeout: 50 })
    serverEnd.send({ type: 'sent', id: (await nextSend(serverEnd)).id, delivered: 1 })
    clock.advance(49)
    clock.advance(1)
    await assert.rejects(timedOutRequest, hasCode('timeout'))

    const controller = new AbortController()
    const abortedRequest = agent.request('printer', 2, { signal: controller.signal })
    await nextSend(serverEnd)
    controller.abort(new Error('changed my mind'))
    await assert.rejects(abortedRequest, /changed my mind/)
    await assert.rejects(agent.request('printer', 3, { signal: controller.signal }), /changed my mind/)

    const requestAtClose = agent.request('printer', 4)
    agent.close()
    await assert.rejects(requestAtClose, hasCode('closed'))
    await assert.rejects(agent.request('printer', 5), hasCode('closed'))
    assert.equal(clock.next(), undefined)
  })

  test('that timed out before the agent was connected is not sent later', async t => {
    const { agent, server, clock, events } = await startAgent(t, {}, server => {
      server.answer = () => 'hang'
    })
    const timedOutRequest = agent.request('printer', 'late', { timeout: 5 })
    await server.exchanges.next()
    clock.advance(5)
    await assert.rejects(timedOutRequest, hasCode('timeout'))
    server.answer = () => ({ status: 200, body: { token: 't', agent_id: 'a', expires_in: 900 } })
    clock.advance(8_000)
    await events.disconnected.next()
    clock.advance(1000)
    const serverEnd = await server.connections.next()
    agent.send('printer', 'in time').catch(() => {})
    assert.equal((await nextSend(serverEnd)).data, 'in time')
  })

  test('is refused beyond the limit of unanswered requests, and with an impossible timeout', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const requests: Promise<unknown>[] = []
    for (let n = 0; n < MAX_PENDING_REQUESTS; n++) {
      requests.push(agent.request('printer', n))
      serverEnd.send({ type: 'sent', id: (await nextSend(serverEnd)).id, delivered: 1 })
    }
    await assert.rejects(agent.request('printer', 1), hasCode('queue_full'))
    for (const timeout of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 86_400_001])
      await assert.rejects(agent.request('printer', 1, { timeout }), hasCode('invalid_configuration'))
    agent.close()
    assert.ok((await Promise.allSettled(requests)).every(({ status }) => status === 'rejected'))
  })
})

describe('the handler of requests', () => {
  test('answers the asking connection, and its errors are answers too', async t => {
    const { agent, events, serverEnd } = await startConnected(t)
    const receivedRequests: unknown[] = []
    agent.onRequest(async request => {
      receivedRequests.push(request)
      if (request.data === 'refuse')
        throw new KeywayError('request_failed', 'Load A4.', { reason: 'out_of_paper' })
      if (request.data === 'fail') throw new Error('jammed')
      if (request.data === 'long') return 'x'.repeat(65_536)
      if (request.data === 'circular') return circular()
      return request.data === 'nothing' ? undefined : { done: request.data }
    })
    const expected: [Json, unknown][] = [
      ['print', { result: { done: 'print' } }],
      ['nothing', { result: null }],
      ['refuse', { error: { code: 'out_of_paper', message: 'Load A4.' } }],
      ['fail', { error: { code: 'failed', message: 'jammed' } }],
      ['long', /too_large|bytes/],
      ['circular', /circular/i],
    ]
    for (const [data, answer] of expected) {
      serverEnd.send(message(`request.${data}`, data))
      const sentAnswer = await nextSend(serverEnd)
      assert.deepEqual([sentAnswer.to, sentAnswer.reply_to], ['asker', `request.${data}`])
      if (answer instanceof RegExp) assert.match(JSON.stringify(sentAnswer.data), answer)
      else assert.deepEqual(sentAnswer.data, answer)
      serverEnd.send({ type: 'sent', id: sentAnswer.id, delivered: 1 })
    }
    assert.deepEqual(receivedRequests[0], {
      id: 'request.print',
      from: 'asker',
      fromKeyId: 'their key',
      data: 'print',
    })
    assert.equal(events.message.rest.length, 0, 'requests are no messages')
  })

  test('is called once for a request that arrives again, and the answer goes to the connection that sent it last', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const { promise, resolve } = Promise.withResolvers<Json>()
    let calls = 0
    agent.onRequest(() => {
      calls++
      return promise
    })
    serverEnd.send(message('request.1', 1, 'before'))
    serverEnd.send(message('request.1', 1, 'after'))
    serverEnd.send(message('request.2', 2, 'before'))
    await until('both are handled', () => calls === 2)
    resolve('once')
    assert.deepEqual([(await nextSend(serverEnd)).to, (await nextSend(serverEnd)).to], ['after', 'before'])
    serverEnd.send(message('request.1', 1, 'much later'))
    const repeatedAnswer = await nextSend(serverEnd)
    assert.deepEqual([repeatedAnswer.to, repeatedAnswer.data, calls], ['much later', { result: 'once' }, 2])
  })

  test('runs for at most 100 requests at a time; an agent without a handler says so', async t => {
    const { agent, serverEnd } = await startConnected(t)
    serverEnd.send(message('request.early', 1))
    assert.match(JSON.stringify((await nextSend(serverEnd)).data), /"no_handler"/)
    agent.onRequest(() => new Promise(() => {}))
    for (let n = 0; n < 101; n++) serverEnd.send(message(`request.${n}`, n))
    const busyAnswer = await nextSend(serverEnd)
    assert.equal(busyAnswer.reply_to, 'request.100')
    assert.match(JSON.stringify(busyAnswer.data), /"busy"/)
  })
})

describe('requests through the real hub', () => {
  const newPerson = sharedKeyway()

  test('an agent asks another and gets its answer, and typed errors', async t => {
    const { url, keyway } = await newPerson()
    const connect = async (name: string) => {
      const { key } = await keyway.apiKeys.create({ name })
      const agent = new Agent({ url, apiKey: key, WebSocket: platformWebSocket })
      t.after(() => agent.close())
      const events = record(agent)
      return { agent, events, ready: await events.ready.next() }
    }
    const [asker, printer, mute] = await Promise.all([connect('asker'), connect('printer'), connect('mute')])
    printer.agent.onRequest(({ data }) => {
      if (data === 'jam') throw new Error('The paper is jammed.')
      return { printed: data }
    })
    assert.deepEqual(await asker.agent.request(printer.ready.keyId, 'hello'), { printed: 'hello' })
    assert.deepEqual(await asker.agent.request('all', 'hello'), { printed: 'hello' })
    await assert.rejects(
      asker.agent.request(printer.ready.connectionId, 'jam'),
      hasCode('request_failed', 'failed'),
    )
    await assert.rejects(asker.agent.request(mute.ready.connectionId, 1), hasCode('no_responders'))
    await assert.rejects(asker.agent.request(crypto.randomUUID(), 1), hasCode('no_responders'))

    const delivery = await asker.agent.send(mute.ready.connectionId, 'a message', { replyTo: 'some message' })
    assert.equal(delivery.delivered, 1)
    assert.equal((await mute.events.message.next()).replyTo, 'some message')
    await keyway.agents.send(mute.ready.connectionId, 'over HTTP', { replyTo: 'another' })
    assert.equal((await mute.events.message.next()).replyTo, 'another')
    await assert.rejects(
      keyway.agents.send(mute.ready.connectionId, 1, { replyTo: '' }),
      hasCode('invalid_request'),
    )
  })
})

function circular(): Json {
  const value: { [name: string]: Json } = {}
  value.self = value
  return value
}
