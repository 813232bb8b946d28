import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KeywayError } from '../src/errors.ts'
import { startConnected } from './support/agents.ts'
import { type ProtocolServer, readyFrame, type ServerEnd } from './support/protocol-server.ts'

type Send = { type: 'send'; id: string; data: unknown; seq?: number }

/** Waits for I/O that is in progress and cannot be awaited. */
const letIoFinish = async () => {
  for (let round = 0; round < 20; round++) await new Promise(resolve => setTimeout(resolve, 1))
}

function sendReady(serverEnd: ServerEnd, resumed: boolean, connectionId = serverEnd.id): void {
  const resumption = { resume_token: `token-of-${serverEnd.id}`, resume_seconds: 120, resumed }
  serverEnd.send({ ...readyFrame(connectionId, 900), ...resumption })
}

/** Makes the server resume every connection that an agent asks to resume. */
function resumeAll(server: ProtocolServer): void {
  server.greet = serverEnd => sendReady(serverEnd, serverEnd.resume !== undefined, 'connection-1')
}

function message(seq: number, id = `m${seq}`) {
  return { type: 'message', seq, id, from: 'x', from_key_id: null, data: seq } as const
}

async function start(t: Parameters<typeof startConnected>[0]) {
  const { server, agent, events, clock, serverEnd } = await startConnected(t, {}, resumeAll)
  /** Waits until the agent has reconnected; returns the server's end of the new socket. */
  const nextSocket = async () => {
    await letIoFinish()
    clock.advance(1000)
    return server.connections.next()
  }
  return { server, agent, events, clock, serverEnd, nextSocket }
}

async function nextSends(
  serverEnd: ServerEnd,
  count: number,
): Promise<[data: unknown, seq: number | undefined][]> {
  const sends: [unknown, number | undefined][] = []
  for (let n = 0; n < count; n++) {
    const { data, seq } = (await serverEnd.frames.next()) as Send
    sends.push([data, seq])
  }
  return sends
}

describe('an agent whose connection broke', () => {
  test('resumes it after the last message that it received, and gets each message once', async t => {
    const { events, serverEnd, nextSocket } = await start(t)
    assert.equal(serverEnd.resume, undefined)
    for (const seq of [1, 2, 3]) serverEnd.send(message(seq))
    await events.message.next()
    await events.message.next()
    await events.message.next()
    serverEnd.cut()
    const secondEnd = await nextSocket()
    assert.equal(secondEnd.resume, 'token-of-connection-1.3')
    const readyEvent = await events.ready.next()
    assert.deepEqual([readyEvent.resumed, readyEvent.connectionId], [true, 'connection-1'])
    for (const seq of [3, 4]) secondEnd.send(message(seq, 'of a sender that repeats ids'))
    secondEnd.send(message(5, 'of a sender that repeats ids'))
    assert.deepEqual([(await events.message.next()).data, (await events.message.next()).data], [4, 5])
    assert.equal(events.gap.rest.length, 0)
  })

  test('emits `gap` when it cannot be resumed, and restarts its numbering', async t => {
    const { server, events, serverEnd, nextSocket } = await start(t)
    serverEnd.send(message(7))
    await events.message.next()
    server.greet = each => sendReady(each, false)
    serverEnd.cut()
    const secondEnd = await nextSocket()
    assert.equal((await events.ready.next()).resumed, false)
    assert.deepEqual(await events.gap.next(), {
      connectionId: 'connection-2',
      previousConnectionId: 'connection-1',
    })
    secondEnd.send(message(1))
    assert.equal((await events.message.next()).data, 1)
    secondEnd.cut()
    assert.equal((await nextSocket()).resume, 'token-of-connection-2.1')
  })

  test('does not ask to resume later than the hub allows', async t => {
    const { server, events, clock, serverEnd } = await start(t)
    await server.stop()
    serverEnd.cut()
    await events.disconnected.next()
    clock.advance(120_001)
    await server.start()
    for (let round = 0; round < 60 && server.connectionCount < 2; round++) {
      await letIoFinish()
      clock.advance(1000)
    }
    assert.equal((await server.connections.next()).resume, undefined)
  })

  test('does not resume with a hub that cannot, and sends without numbers', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    agent.send('all', 'old').catch(() => {})
    assert.deepEqual(await nextSends(serverEnd, 1), [['old', undefined]])
    serverEnd.cut()
    await letIoFinish()
    clock.advance(1000)
    const secondEnd = await server.connections.next()
    assert.equal(secondEnd.resume, undefined)
    assert.deepEqual(await nextSends(secondEnd, 1), [['old', undefined]])
    assert.equal(events.gap.rest.length, 0)
  })

  test('closes permanently with 1000, and abandons a dead socket with another code', async t => {
    const { clock, agent, serverEnd, nextSocket } = await start(t)
    await letIoFinish()
    clock.advance(25_000)
    await letIoFinish()
    clock.advance(10_000)
    assert.equal(await serverEnd.closed, 4000)
    const secondEnd = await nextSocket()
    await letIoFinish()
    agent.close()
    assert.equal(await secondEnd.closed, 1000)
  })
})

describe('an agent whose connection is resumed while its old socket is open', () => {
  test('treats 4409 after `draining` as the end of the old socket', async t => {
    const { events, clock, server, serverEnd } = await start(t)
    server.greet = () => {}
    serverEnd.send({ type: 'draining', close_in_seconds: 10 })
    await letIoFinish()
    clock.advance(1000)
    const secondEnd = await server.connections.next()
    assert.equal(secondEnd.resume, 'token-of-connection-1.0')
    serverEnd.close(4409, 'resumed_elsewhere')
    await serverEnd.closed
    await letIoFinish()
    sendReady(secondEnd, true, 'connection-1')
    assert.equal((await events.ready.next()).resumed, true)
    secondEnd.send(message(1))
    await events.message.next()
    assert.deepEqual([events.disconnected.rest.length, events.stopped.rest.length], [0, 0])
  })

  test('stops when another program resumed its connection', async t => {
    const { events, serverEnd } = await start(t)
    serverEnd.close(4409, 'resumed_elsewhere')
    const { error } = await events.stopped.next()
    assert.match(error?.message ?? '', /Another program resumed this connection/)
  })

  test('reconnects when an abandoned attempt had resumed its connection', async t => {
    const { server, events, clock, serverEnd } = await start(t)
    server.greet = () => {}
    serverEnd.send({ type: 'draining', close_in_seconds: 60 })
    await letIoFinish()
    clock.advance(1000)
    await server.connections.next()
    clock.advance(10_000) // no `ready` in time
    await letIoFinish()
    resumeAll(server)
    serverEnd.close(4409, 'resumed_elsewhere')
    for (let round = 0; round < 30 && events.ready.rest.length === 0; round++) {
      await letIoFinish()
      clock.advance(1000)
    }
    await events.ready.next()
    assert.equal(events.stopped.rest.length, 0)
  })
})

describe('numbered sends', () => {
  test('keep their numbers when the connection is resumed, and get new ones when it is not', async t => {
    const { server, agent, events, serverEnd, nextSocket } = await start(t)
    const sending = [1, 2, 3].map(n => agent.send('all', n))
    assert.deepEqual(await nextSends(serverEnd, 3), [
      [1, 1],
      [2, 2],
      [3, 3],
    ])
    serverEnd.cut()
    const secondEnd = await nextSocket()
    await events.ready.next()
    const [first, ...rest] = (await Promise.all([1, 2, 3].map(() => secondEnd.frames.next()))) as Send[]
    assert.deepEqual(
      [first, ...rest].map(frame => frame?.seq),
      [1, 2, 3],
    )
    secondEnd.send({ type: 'sent', id: first!.id, delivered: 1, held: 2 })
    assert.deepEqual(await sending[0], { delivered: 1, held: 2 })
    server.greet = each => sendReady(each, false)
    secondEnd.cut()
    const thirdEnd = await nextSocket()
    assert.deepEqual(await nextSends(thirdEnd, 2), [
      [2, 1],
      [3, 2],
    ])
    agent.close()
    await Promise.allSettled(sending)
  })

  test('are sent again in order after `rate_limited` and `out_of_order`', async t => {
    const { agent, clock, serverEnd } = await start(t)
    const sending = [1, 2, 3].map(n => agent.send('all', n))
    const frames = (await Promise.all([1, 2, 3].map(() => serverEnd.frames.next()))) as Send[]
    serverEnd.send({ type: 'sent', id: frames[0]!.id, delivered: 1, held: 0 })
    serverEnd.send({ type: 'error', code: 'rate_limited', detail: '', id: frames[1]!.id })
    serverEnd.send({ type: 'error', code: 'out_of_order', detail: '', id: frames[2]!.id })
    await sending[0]
    await letIoFinish()
    clock.advance(1000)
    assert.deepEqual(await nextSends(serverEnd, 2), [
      [2, 2],
      [3, 3],
    ])
    agent.close()
    await Promise.allSettled(sending)
  })

  test('that are refused permanently keep their number, and aborted ones are sent again while their session lasts', async t => {
    const { agent, serverEnd, events, nextSocket } = await start(t)
    const abort = new AbortController()
    const refusedSend = agent.send('all', 1)
    const abortedSend = agent.send('all', 2, { signal: abort.signal })
    const thirdSend = agent.send('all', 3)
    const frames = (await Promise.all([1, 2, 3].map(() => serverEnd.frames.next()))) as Send[]
    serverEnd.send({ type: 'error', code: 'insufficient_scope', detail: 'no', id: frames[0]!.id })
    await assert.rejects(refusedSend, (error: unknown) => error instanceof KeywayError)
    abort.abort(new Error('changed my mind'))
    await assert.rejects(abortedSend, /changed my mind/)
    serverEnd.cut()
    const secondEnd = await nextSocket()
    await events.ready.next()
    assert.deepEqual(await nextSends(secondEnd, 2), [
      [2, 2],
      [3, 3],
    ])
    agent.close()
    await Promise.allSettled([thirdSend])
  })
})
