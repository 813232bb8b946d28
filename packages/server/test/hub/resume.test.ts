import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { HUB_PROTOCOL, type ServerFrame } from '@keyway/sdk/protocol'
import { type Event, MAX_ADOPTED, type RelayMessage } from '../../src/events.ts'
import type { HubDeps } from '../../src/hub/hub.ts'
import { MAX_KEPT_MESSAGES } from '../../src/hub/message-log.ts'
import { RESUME_SECONDS } from '../../src/hub/resume-token.ts'
import { MAX_ADOPTING } from '../../src/hub/resumptions.ts'
import { newId } from '../../src/ids.ts'
import { altered } from '../support/altered.ts'
import { until } from '../support/patience.ts'
import type { Services } from '../support/services.ts'
import { caller, openServices } from '../support/services.ts'
import { Client, makeKey, open, openHub, type TestKey, tokenOf } from './fixture.ts'

type Ready = Extract<ServerFrame, { type: 'ready' }>
type Resumable = Client & { ready: Ready }

/** Connects, and asks to resume the connection of `resume`, if given. */
async function connect(
  services: Services,
  url: string,
  key: TestKey,
  resume?: { ready: Ready; lastSeq: number; tokenIn?: 'header' | 'subprotocol' },
): Promise<Resumable> {
  const token = await tokenOf(services, key)
  const text = resume && `${resume.ready.resume_token}.${resume.lastSeq}`
  const client =
    text && resume.tokenIn === 'subprotocol'
      ? new Client(url, null, { protocols: [HUB_PROTOCOL, `bearer.${token}`, `resume.${text}`] })
      : new Client(url, token, { headers: text ? { 'keyway-resume': text } : {} })
  return Object.assign(client, { ready: await client.next('ready') })
}

/** Breaks a connection without a close frame; resolves when the hub has noticed that, and keeps it for a resumption. */
async function cut(client: Resumable, isListed: () => Promise<boolean>): Promise<void> {
  client.socket.terminate()
  await until('the hub noticed the break', async () => !(await isListed()))
}

async function openPair(t: TestContext, overrides: Partial<HubDeps> = {}) {
  const node = await open('sqlite', t, overrides)
  const { services, url, key, hub, userId } = node
  const sender = await connect(services, url, key)
  const receiverKey = await makeKey(services, userId)
  const receiver = await connect(services, url, receiverKey)
  const isListed = async () =>
    (await hub.connections(userId)).some(row => row.connectionId === receiver.ready.connection_id)
  let count = 0
  const send = async (data: string | number, to = receiver.ready.connection_id) => {
    sender.send({ type: 'send', id: `${++count}`, to, data })
    const { delivered, held } = await sender.next('sent')
    return { delivered, held }
  }
  return { ...node, sender, receiver, receiverKey, isListed, send }
}

async function messages(client: Client, count: number): Promise<[seq: number | undefined, data: unknown][]> {
  const numberedData: [number | undefined, unknown][] = []
  for (let n = 0; n < count; n++) {
    const { seq, data } = await client.next('message')
    numberedData.push([seq, data])
  }
  return numberedData
}

describe('a connection that broke', () => {
  test('is resumed with the same id and all missed messages in order, asked for by header or subprotocol', async t => {
    for (const tokenIn of ['header', 'subprotocol'] as const) {
      const { services, url, key, userId } = await open('sqlite', t)
      const receiverKey = await makeKey(services, userId)
      const sender = await connect(services, url, key)
      const first = await connect(services, url, receiverKey)
      const to = first.ready.connection_id
      assert.equal(first.ready.resumed, false)
      for (let n = 1; n <= 3; n++) sender.send({ type: 'send', id: `${n}`, to, data: n })
      assert.deepEqual(await messages(first, 3), [
        [1, 1],
        [2, 2],
        [3, 3],
      ])
      first.socket.terminate()
      await until('it is held', async () => {
        sender.send({ type: 'send', id: 'x', to: first.ready.key_id, data: 'probe' })
        let sent = await sender.next('sent')
        while (sent.id !== 'x') sent = await sender.next('sent')
        return sent.held === 1 && sent.delivered === 0
      })
      sender.send({ type: 'send', id: '4', to, data: 'held' })
      // The second message was written before the break; the agent says that it has processed only one.
      const second = await connect(services, url, receiverKey, { ready: first.ready, lastSeq: 1, tokenIn })
      assert.equal(second.ready.resumed, true)
      assert.equal(second.ready.connection_id, to)
      assert.notEqual(second.ready.resume_token, first.ready.resume_token)
      const missedMessages = await messages(second, 4)
      assert.deepEqual(missedMessages.slice(0, 3), [
        [2, 2],
        [3, 3],
        [4, 'probe'],
      ])
      assert.deepEqual(
        missedMessages.map(([seq]) => seq),
        [2, 3, 4, 5],
      )
    }
  })

  test('is not resumed when its node missed events meanwhile', async t => {
    const { services, url, receiver, receiverKey, isListed, send } = await openPair(t)
    await cut(receiver, isListed)
    await services.storage.events.publish({ type: 'events.gap' })
    await until('it ended', async () => (await send('x')).held === 0)
    const reconnectedClient = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(reconnectedClient.ready.resumed, false)
  })

  test('is in no list, is not counted as delivered, and can be written to over the API', async t => {
    const { hub, userId, receiver, receiverKey, services, url, isListed, send } = await openPair(t)
    const id = receiver.ready.connection_id
    assert.deepEqual(await send('open'), { delivered: 1, held: 0 })
    await cut(receiver, isListed)
    assert.equal(hub.connectionCount, 1)
    assert.deepEqual(await send('held'), { delivered: 0, held: 1 })
    assert.deepEqual(await send('held', 'all'), { delivered: 0, held: 1 })
    assert.deepEqual(await hub.sendTo(userId, id, 'api'), { delivered: 0, held: 1 })
    const resumedAgent = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 1 })
    assert.deepEqual(await messages(resumedAgent, 3), [
      [2, 'held'],
      [3, 'held'],
      [4, 'api'],
    ])
    assert.equal(await isListed(), true)
  })

  test('can be resumed for 120 seconds, and not later', async t => {
    const { services, url, hub, userId, receiver, receiverKey, isListed, later } = await openPair(t)
    await cut(receiver, isListed)
    await later(RESUME_SECONDS * 1000 - 1)
    const reconnectedClient = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(reconnectedClient.ready.resumed, true)
    await cut(reconnectedClient, isListed)
    await later(RESUME_SECONDS * 1000)
    const lateClient = await connect(services, url, receiverKey, {
      ready: reconnectedClient.ready,
      lastSeq: 0,
    })
    assert.equal(lateClient.ready.resumed, false)
    assert.notEqual(lateClient.ready.connection_id, receiver.ready.connection_id)
    assert.equal(await hub.sendTo(userId, receiver.ready.connection_id, 'x'), null)
  })

  test('ends when its agent closes it with 1000 or without a code, and is held after any other code', async t => {
    const { services, url, key, hub, userId } = await open('sqlite', t)
    for (const [code, isHeld] of [
      [1000, false],
      [undefined, false],
      [1001, true],
      [4000, true],
    ] as const) {
      const client = await connect(services, url, key)
      client.socket.close(code)
      await client.end()
      const outcome = await hub.sendTo(userId, client.ready.connection_id, 'x')
      assert.deepEqual(outcome, isHeld ? { delivered: 0, held: 1 } : null, `${code}`)
    }
  })

  test('ends with a violation of the protocol, and with a close by its owner', async t => {
    const { services, url, key, hub, userId } = await open('sqlite', t)
    const clientWithBadMessage = await connect(services, url, key)
    clientWithBadMessage.socket.send('no object')
    assert.equal(await clientWithBadMessage.end(), '4400 bad_message')
    const invalidSender = await connect(services, url, key)
    invalidSender.socket.send('{}', { mask: false })
    assert.match(await invalidSender.end(), /^1002/)
    const closedAgent = await connect(services, url, key)
    await hub.disconnect(userId, closedAgent.ready.connection_id)
    assert.equal(await closedAgent.end(), '1001 going_away')
    for (const { ready } of [clientWithBadMessage, invalidSender, closedAgent]) {
      assert.equal(await hub.sendTo(userId, ready.connection_id, 'x'), null)
      assert.equal((await connect(services, url, key, { ready, lastSeq: 0 })).ready.resumed, false)
    }
  })

  test('ends at once when its key is revoked', async t => {
    const { services, userId, receiver, receiverKey, isListed, send } = await openPair(t)
    await cut(receiver, isListed)
    assert.deepEqual(await send(1), { delivered: 0, held: 1 })
    await services.apiKeys.revoke(userId, receiverKey.id, caller())
    await until('it ended', async () => (await send(2)).held === 0)
  })

  test('ends when its owner is suspended, and when the networks of its key exclude it', async t => {
    const { services, userId, url, receiver, receiverKey, isListed, send } = await openPair(t)
    const excludeNetwork = () =>
      services.apiKeys.update(userId, receiverKey.id, { allowedNetworks: ['192.0.2.0/24'] }, 'person')
    await cut(receiver, isListed)
    await excludeNetwork()
    await until('it ended', async () => (await send(1)).held === 0)
    const { user } = await services.signIn('grace@example.com')
    const key = await makeKey(services, user.id)
    const { hub } = await openHub(services, t)
    const [another, watching] = [await connect(services, url, key), await connect(services, url, key)]
    another.socket.terminate()
    watching.send({ type: 'send', id: 'x', to: another.ready.connection_id, data: 'x' })
    await watching.next('sent')
    await services.users.suspend(user.id)
    await watching.end()
    await services.users.activate(user.id)
    const refusedResumption = await connect(services, url, key, { ready: another.ready, lastSeq: 0 })
    assert.equal(refusedResumption.ready.resumed, false)
    const sendAgain = () => hub.sendTo(user.id, another.ready.connection_id, 'x')
    await until('its presence row is deleted', async () => (await sendAgain()) === null)
  })

  test('is held when its token expires or it falls silent, and ends when its key expires', async t => {
    const { services, url, key, hub, userId, later } = await open('sqlite', t)
    const expiringKey = await makeKey(services, userId, { expiresAt: services.clock.now() + 1_000_000 })
    const expiringAgent = await connect(services, url, expiringKey)
    const silentAgent = new Client(url, await tokenOf(services, key), { autoPong: false })
    const { connection_id } = await silentAgent.next('ready')
    for (let passed = 0; passed < 900_000; passed += 30_000) {
      await expiringAgent.flush()
      await later(30_000)
      if (passed === 30_000) {
        await silentAgent.end()
        assert.equal((await hub.sendTo(userId, connection_id, 'x'))?.delivered, 0)
      }
    }
    assert.equal(await expiringAgent.end(), '4408 token_expired')
    assert.equal((await hub.sendTo(userId, expiringAgent.ready.connection_id, 'x'))?.delivered, 0)
    await later(100_000)
    assert.equal(await hub.sendTo(userId, expiringAgent.ready.connection_id, 'x'), null)
  })

  test('ends when more arrives for it than is kept, and says so by `resumed: false`', async t => {
    const { services, url, hub, userId, receiver, receiverKey, isListed } = await openPair(t)
    const id = receiver.ready.connection_id
    await cut(receiver, isListed)
    for (let n = 0; n < MAX_KEPT_MESSAGES; n++) assert.equal((await hub.sendTo(userId, id, n))?.delivered, 0)
    const fullyResumed = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(fullyResumed.ready.resumed, true)
    assert.deepEqual((await messages(fullyResumed, MAX_KEPT_MESSAGES)).at(-1), [256, 255])
    await cut(fullyResumed, isListed)
    for (let n = 0; n < MAX_KEPT_MESSAGES; n++) assert.equal((await hub.sendTo(userId, id, n))?.delivered, 0)
    assert.equal(await hub.sendTo(userId, id, 'too much'), null)
    const clientAfterOverflow = await connect(services, url, receiverKey, {
      ready: fullyResumed.ready,
      lastSeq: 256,
    })
    assert.equal(clientAfterOverflow.ready.resumed, false)
  })

  test('ends when more than a MiB arrives for it', async t => {
    const { services, url, hub, userId, receiver, receiverKey, isListed } = await openPair(t)
    const id = receiver.ready.connection_id
    await cut(receiver, isListed)
    const data = 'x'.repeat(60_000)
    // The hub keeps a MiB for a broken connection: 17 of these messages together are smaller, 18 are larger.
    for (let n = 0; n < 17; n++) assert.equal((await hub.sendTo(userId, id, data))?.held, 1)
    const fullyResumed = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(fullyResumed.ready.resumed, true)
    await messages(fullyResumed, 17)
    await cut(fullyResumed, isListed)
    for (let n = 0; n < 17; n++) assert.equal((await hub.sendTo(userId, id, data))?.held, 1)
    assert.equal(await hub.sendTo(userId, id, data), null)
  })

  test('is not resumed when a missed message is no longer kept, though later ones are', async t => {
    const { services, url, hub, userId, receiver, receiverKey, isListed } = await openPair(t)
    const id = receiver.ready.connection_id
    for (let n = 0; n <= MAX_KEPT_MESSAGES; n++) await hub.sendTo(userId, id, n)
    await messages(receiver, MAX_KEPT_MESSAGES + 1)
    await cut(receiver, isListed)
    const reconnectedClient = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(reconnectedClient.ready.resumed, false)
    assert.notEqual(reconnectedClient.ready.connection_id, id)
  })

  test('keeps no message that its agent has certainly received', async t => {
    const { services, url, receiver, receiverKey, later, isListed, send } = await openPair(t)
    await send('before the ping')
    await receiver.next('message')
    await later(25_000)
    // Once the flush is answered, the hub has also received the receiver's pong, which proves that the message arrived.
    await receiver.flush()
    await cut(receiver, isListed)
    const refusedClient = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(refusedClient.ready.resumed, false)
  })

  test('does not count towards the connection limit; of more held ones than that limit the oldest ends', async t => {
    const { services, url, key, hub, userId } = await open('sqlite', t, { maxConnectionsPerUser: 2 })
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      const client = await connect(services, url, key)
      ids.push(client.ready.connection_id)
      client.socket.close(4000)
      await client.end()
    }
    const outcomes = await Promise.all(ids.map(id => hub.sendTo(userId, id, 'x')))
    assert.deepEqual(
      outcomes.map(outcome => outcome?.held),
      [undefined, 1, 1],
    )
  })
})

describe('a resume token', () => {
  test('is good once, for the same owner and key only, and another use changes nothing', async t => {
    const { services, url, userId, receiver, receiverKey, isListed } = await openPair(t)
    const { ready } = receiver
    const eve = await services.signIn('eve@example.com')
    const strangersKey = await makeKey(services, eve.user.id)
    const otherKey = await makeKey(services, userId)
    await cut(receiver, isListed)
    for (const key of [strangersKey, otherKey]) {
      assert.equal((await connect(services, url, key, { ready, lastSeq: 0 })).ready.resumed, false)
    }
    const forgedReady = { ...ready, resume_token: altered(ready.resume_token!) }
    assert.equal(
      (await connect(services, url, receiverKey, { ready: forgedReady, lastSeq: 0 })).ready.resumed,
      false,
    )
    const firstResumption = await connect(services, url, receiverKey, { ready, lastSeq: 0 })
    assert.equal(firstResumption.ready.resumed, true)
    assert.equal((await connect(services, url, receiverKey, { ready, lastSeq: 0 })).ready.resumed, false)
    await firstResumption.flush()
  })

  test('resumes one connection in twenty concurrent uses', async t => {
    const { services, url, receiver, receiverKey, isListed } = await openPair(t)
    await cut(receiver, isListed)
    const resumptions = await Promise.all(
      Array.from({ length: 20 }, () =>
        connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 }),
      ),
    )
    assert.equal(resumptions.filter(({ ready }) => ready.resumed).length, 1)
  })

  test('that is malformed, or offered twice, is refused with 400', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const { ready } = await connect(services, url, key)
    const validOffer = `${ready.resume_token}.0`
    for (const text of [
      '',
      'x',
      `${ready.resume_token}`,
      `${validOffer}x`,
      `${validOffer}.1`,
      `x${validOffer}`,
      `${validOffer}${'1'.repeat(20)}`,
    ]) {
      const { status, problem } = await new Client(url, token, {
        headers: { 'keyway-resume': text },
      }).refusal()
      assert.deepEqual([status, problem.code], [400, 'invalid_request'], text)
    }
    const clientWithTwoOffers = new Client(url, token, {
      protocols: [HUB_PROTOCOL, `resume.${validOffer}`],
      headers: { 'keyway-resume': validOffer },
    })
    assert.equal((await clientWithTwoOffers.refusal()).status, 400)
  })

  test('resumes a connection that is still open: the old socket is closed with 4409 before `ready`', async t => {
    const { services, url, receiver, receiverKey, send, isListed } = await openPair(t)
    await send(1)
    await receiver.next('message')
    const resumedClient = await connect(services, url, receiverKey, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(await receiver.end(), '4409 resumed_elsewhere')
    assert.equal(resumedClient.ready.resumed, true)
    assert.deepEqual(await send(2), { delivered: 1, held: 0 })
    assert.deepEqual(await messages(resumedClient, 2), [
      [1, 1],
      [2, 2],
    ])
    assert.equal(await isListed(), true)
  })
})

/** Reconnects until a resumption is refused; returns how many succeeded, the close status and the last ready client. */
async function resumeUntilRefused(
  services: Services,
  urls: readonly string[],
  receiver: Resumable,
  key: TestKey,
  lastSeq: number,
): Promise<{ resumed: number; closed: string; last: Resumable }> {
  let lastClient = receiver
  for (let resumed = 0; ; resumed++) {
    const headers = { 'keyway-resume': `${lastClient.ready.resume_token}.${lastSeq}` }
    const resumedClient = new Client(urls[resumed % urls.length]!, await tokenOf(services, key), { headers })
    await resumedClient.until(
      () => resumedClient.closed ?? resumedClient.received.find(({ type }) => type === 'ready'),
    )
    if (resumedClient.closed) return { resumed, closed: await resumedClient.end(), last: lastClient }
    lastClient = Object.assign(resumedClient, { ready: await resumedClient.next('ready') })
    assert.equal(lastClient.ready.resumed, true)
  }
}

/** Allows 50 KiB a second, and twice as much at once. */
const LOW_DELIVERY_LIMIT = { deliveryMibPerUser: 50 / 1024 }

describe('messages that are sent again', () => {
  test('count as deliveries of their owner: a resumption above the limit is closed with 4429, and possible later', async t => {
    const { services, url, receiver, receiverKey, send, later } = await openPair(t, LOW_DELIVERY_LIMIT)
    for (let n = 0; n < 2; n++) await send('x'.repeat(40_000))
    const { resumed, closed, last } = await resumeUntilRefused(services, [url], receiver, receiverKey, 0)
    assert.deepEqual([resumed, closed], [1, '4429 rate_limited'])
    await later(2000)
    const resumedClient = await connect(services, url, receiverKey, { ready: last.ready, lastSeq: 0 })
    assert.equal(resumedClient.ready.resumed, true)
    assert.equal((await messages(resumedClient, 2)).length, 2)
  })

  test('count fourfold where they only move between nodes, which costs more', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const nodes = [
      await openHub(services, t, LOW_DELIVERY_LIMIT),
      await openHub(services, t, LOW_DELIVERY_LIMIT),
    ]
    const [key, senderKey] = [await makeKey(services, user.id), await makeKey(services, user.id)]
    const receiver = await connect(services, nodes[0]!.url, key)
    const sender = await connect(services, nodes[0]!.url, senderKey)
    for (let n = 0; n < 2; n++) {
      sender.send({ type: 'send', id: `${n}`, to: receiver.ready.connection_id, data: 'x'.repeat(40_000) })
      await sender.next('sent')
    }
    const urls = [nodes[1]!.url, nodes[0]!.url]
    const { resumed, closed } = await resumeUntilRefused(services, urls, receiver, key, 2)
    assert.deepEqual([resumed, closed], [2, '4429 rate_limited'])
  })
})

describe('on two nodes, a connection', () => {
  async function openTwo(t: TestContext) {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const nodes = [await openHub(services, t), await openHub(services, t)] as const
    const key = await makeKey(services, user.id)
    const sender = await connect(services, nodes[1].url, await makeKey(services, user.id))
    const receiver = await connect(services, nodes[0].url, key)
    const send = async (data: string | number) => {
      sender.send({ type: 'send', id: `${data}`.slice(0, 20), to: receiver.ready.connection_id, data })
      return sender.next('sent')
    }
    const untilHeld = () => until('it is held', async () => (await send('probe')).held === 1)
    return { services, user, nodes, key, sender, receiver, send, untilHeld }
  }

  test('is resumed on the other one, with what was written before the break and held since', async t => {
    const { services, nodes, key, receiver, send, untilHeld } = await openTwo(t)
    await send('x'.repeat(40_000))
    await send('2')
    await receiver.next('message')
    receiver.socket.terminate()
    await untilHeld()
    await send('ü'.repeat(20_000))
    const resumedClient = await connect(services, nodes[1].url, key, { ready: receiver.ready, lastSeq: 1 })
    assert.equal(resumedClient.ready.resumed, true)
    assert.equal(resumedClient.ready.connection_id, receiver.ready.connection_id)
    const [second, ...more] = await messages(resumedClient, 2)
    assert.deepEqual(second, [2, '2'])
    assert.equal(more.length, 1)
    while ((await resumedClient.next('message')).data === 'probe');
    assert.equal((await send('after')).delivered, 1)
    const secondResumption = await connect(services, nodes[0].url, key, { ready: receiver.ready, lastSeq: 1 })
    assert.equal(secondResumption.ready.resumed, false)
  })

  /** Two nodes, of which the first hands a connection over to the second only after `handOver()`. */
  async function openWithSlowHandover(t: TestContext) {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const { promise: handedOver, resolve: handOver } = Promise.withResolvers<void>()
    const { promise: asked, resolve: noteAsked } = Promise.withResolvers<void>()
    const events: HubDeps['events'] = {
      ...services.storage.events,
      async publish(event, to) {
        if (event.type === 'hub.relay' && event.message.kind === 'released') {
          noteAsked()
          await handedOver
        }
        await services.storage.events.publish(event, to)
      },
    }
    const [from, to] = [await openHub(services, t, { events }), await openHub(services, t)]
    const startResuming = async (key: TestKey, { ready }: Resumable, times: number) => {
      const attempts = Array.from({ length: times }, () =>
        connect(services, to.url, key, { ready, lastSeq: 0 }),
      )
      await until('all ask', () => to.hub.connectionCount === times)
      await asked
      return attempts
    }
    const later = async (ms: number) => {
      services.clock.advance(ms)
      await to.hub.sweep()
      to.hub.tick()
    }
    return { services, user, from, to, handOver, startResuming, later }
  }

  test('that five agents ask for at once ends with its key like any other', async t => {
    const { services, user, from, to, handOver, startResuming, later } = await openWithSlowHandover(t)
    const key = await makeKey(services, user.id, { expiresAt: services.clock.now() + 50_000 })
    const attempts = await startResuming(key, await connect(services, from.url, key), 5)
    handOver()
    const clients = await Promise.all(attempts)
    const [resumed, ...others] = clients.filter(({ ready }) => ready.resumed)
    assert.equal(others.length, 0)
    await later(50_000)
    assert.equal(await resumed!.end(), '4408 token_expired')
    assert.equal(to.hub.connectionCount, 0)
  })

  test('whose key gets an earlier expiry while the connection moves ends with the key', async t => {
    const { services, user, from, handOver, startResuming, later } = await openWithSlowHandover(t)
    const key = await makeKey(services, user.id)
    const [asking] = await startResuming(key, await connect(services, from.url, key), 1)
    await services.apiKeys.rotate(user.id, key.id, 50, caller())
    await later(0)
    // Lets the new node read the key's new expiry before the old one hands the connection over.
    for (let read = 0; read < 3; read++) {
      await setImmediate()
      await services.apiKeys.findMany([key.id])
    }
    handOver()
    const resumedClient = await asking!
    assert.equal(resumedClient.ready.resumed, true)
    await later(50_000)
    assert.equal(await resumedClient.end(), '4408 token_expired')
  })

  test('that is still open is closed with 4409 on the old one', async t => {
    const { services, nodes, key, receiver, send } = await openTwo(t)
    const resumedClient = await connect(services, nodes[1].url, key, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(await receiver.end(), '4409 resumed_elsewhere')
    assert.equal(resumedClient.ready.resumed, true)
    assert.deepEqual(await send('x'), { type: 'sent', id: 'x', delivered: 1, held: 0 })
  })

  test('is handed over by a node that shuts down, and resumed on another', async t => {
    const { services, nodes, key, receiver, send, untilHeld } = await openTwo(t)
    const openClient = await connect(services, nodes[0].url, key)
    receiver.socket.terminate()
    await untilHeld()
    const draining = nodes[0].hub.drain(1000)
    assert.equal(await openClient.end(), '1012 restarting')
    await draining
    await nodes[0].hub.stop()
    assert.deepEqual(await send('held elsewhere'), {
      type: 'sent',
      id: 'held elsewhere',
      delivered: 0,
      held: 1,
    })
    for (const { ready } of [receiver, openClient]) {
      const resumedClient = await connect(services, nodes[1].url, key, { ready, lastSeq: 0 })
      assert.equal(resumedClient.ready.resumed, true)
      assert.equal(resumedClient.ready.connection_id, ready.connection_id)
    }
  })

  test('is held for 120 seconds in all when the node that held it shuts down', async t => {
    const { services, nodes, key, receiver, send, untilHeld } = await openTwo(t)
    receiver.socket.terminate()
    await untilHeld()
    services.clock.advance(5000)
    await nodes[0].hub.drain(1000)
    await nodes[0].hub.stop()
    assert.equal((await send('held elsewhere')).held, 1)
    services.clock.advance(RESUME_SECONDS * 1000 - 5000)
    await nodes[1].hub.sweep()
    nodes[1].hub.tick()
    const resumedClient = await connect(services, nodes[1].url, key, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(resumedClient.ready.resumed, false)
  })

  test('is taken over with at most 200 others at a time; the rest is requested when it is offered again', async t => {
    const services = await openServices('sqlite', t)
    const publishedMessages: RelayMessage[] = []
    const listeners: ((event: Event) => void)[] = []
    const events: HubDeps['events'] = {
      subscribe: listener => {
        listeners.push(listener)
        return () => {}
      },
      publish: async event => {
        if (event.type === 'hub.relay') publishedMessages.push(event.message)
      },
    }
    const { nodeId } = await openHub(services, t, { events })
    const { user } = await services.signIn('ada@example.com')
    const { id: keyId } = await makeKey(services, user.id)
    const from = newId(services.clock.now())
    const connections = Array.from({ length: 300 }, () => newId(services.clock.now())).map(connectionId => ({
      ...{ connectionId, userId: user.id, keyId },
    }))
    const deliverMessage = (message: RelayMessage) => {
      for (const listener of listeners) listener({ type: 'hub.relay', to: [nodeId], message })
    }
    const offerConnections = () => {
      for (let start = 0; start < connections.length; start += MAX_ADOPTED)
        deliverMessage({ kind: 'adopt', from, connections: connections.slice(start, start + MAX_ADOPTED) })
    }
    const requestedMoves = () =>
      publishedMessages.flatMap(message => (message.kind === 'release' ? message : []))
    offerConnections()
    await until('they are requested', () => requestedMoves().length === MAX_ADOPTING)
    offerConnections()
    for (const { question } of requestedMoves().slice(0, 60))
      deliverMessage({ kind: 'released', from, question, part: 0, parts: 0, text: '' })
    await setImmediate()
    offerConnections()
    await until('the others too', () => requestedMoves().length === MAX_ADOPTING + 60)
    assert.equal(new Set(requestedMoves().map(({ question }) => question)).size, MAX_ADOPTING + 60)
  })

  test('is lost when its node crashes: `resumed: false`', async t => {
    const { services, nodes, key, receiver } = await openTwo(t)
    await nodes[0].hub.stop()
    const resumedClient = await connect(services, nodes[1].url, key, { ready: receiver.ready, lastSeq: 0 })
    assert.equal(resumedClient.ready.resumed, false)
  })

  test('that moves after the revocation of its key ends on its new node', async t => {
    const { services, user, nodes, key, receiver, send, untilHeld } = await openTwo(t)
    receiver.socket.terminate()
    await untilHeld()
    const draining = nodes[0].hub.drain(1000)
    await services.apiKeys.revoke(user.id, key.id, caller())
    await draining
    await until('it ended', async () => (await send('x')).held === 0)
  })
})

describe('numbered sends', () => {
  test('are accepted once each and in order: repeated ones are acknowledged again, a gap is `out_of_order`', async t => {
    const { sender, receiver } = await openPair(t)
    const to = receiver.ready.connection_id
    const send = (seq: number) => sender.send({ type: 'send', id: `n${seq}`, to, data: seq, seq })
    const answerTo = async (seq: number) => {
      send(seq)
      return sender.until(() => sender.received.shift())
    }
    const expectedAcknowledgement = (seq: number) => ({ type: 'sent', id: `n${seq}`, delivered: 1, held: 0 })
    assert.deepEqual(await answerTo(1), expectedAcknowledgement(1))
    assert.deepEqual(await answerTo(1), expectedAcknowledgement(1))
    const gapAnswer = await answerTo(3)
    assert.deepEqual(
      [gapAnswer.type, gapAnswer.type === 'error' && gapAnswer.code],
      ['error', 'out_of_order'],
    )
    assert.deepEqual(await answerTo(2), expectedAcknowledgement(2))
    assert.deepEqual(await answerTo(3), expectedAcknowledgement(3))
    sender.send({ type: 'send', id: 'free', to, data: 'without a number' })
    await sender.next('sent')
    await receiver.flush()
    assert.deepEqual(
      (await messages(receiver, 4)).map(([, data]) => data),
      [1, 2, 3, 'without a number'],
    )
  })

  test('continue when their connection is resumed, also on another node', async t => {
    const services = await openServices('sqlite', t)
    const { user } = await services.signIn('ada@example.com')
    const nodes = [await openHub(services, t), await openHub(services, t)] as const
    const [key, receiverKey] = [await makeKey(services, user.id), await makeKey(services, user.id)]
    const receiver = await connect(services, nodes[0].url, receiverKey)
    let sender = await connect(services, nodes[0].url, key)
    const send = async (seq: number) => {
      sender.send({ type: 'send', id: `${seq}`, to: 'all', data: seq, seq })
      return (await sender.next('sent')).delivered
    }
    assert.deepEqual([await send(1), await send(2)], [1, 1])
    for (const { url } of nodes) {
      sender = await connect(services, url, key, { ready: sender.ready, lastSeq: 0 })
      assert.equal(sender.ready.resumed, true)
      assert.equal(await send(2), 1)
    }
    assert.equal(await send(3), 1)
    assert.deepEqual(await messages(receiver, 3), [
      [1, 1],
      [2, 2],
      [3, 3],
    ])
    await receiver.flush()
    assert.deepEqual(receiver.received, [])
  })

  test('that are refused permanently consume their number, and rate-limited ones do not', async t => {
    const { services, sender, receiver, hub, userId } = await openPair(t)
    const to = receiver.ready.connection_id
    const answerTo = async (frame: object) => {
      sender.send({ type: 'send', id: 'x', to, ...frame } as never)
      const received = await sender.until(() => sender.received.shift())
      return received.type === 'error' ? received.code : received.type
    }
    assert.equal(await answerTo({ seq: 1 }), 'invalid_frame') // without data
    assert.equal(await answerTo({ seq: 2, data: 'x'.repeat(65_400) }), 'invalid_frame')
    assert.equal(await answerTo({ seq: 2, data: 'x'.repeat(65_400) }), 'invalid_frame')
    for (const seq of [0, -1, 1.5, '3', true]) assert.equal(await answerTo({ seq, data: 1 }), 'invalid_frame')
    while (
      await hub.sendTo(userId, to, 'x').then(
        () => true,
        () => false,
      )
    );
    assert.equal(await answerTo({ seq: 3, data: 1 }), 'rate_limited')
    assert.equal(await answerTo({ seq: 4, data: 1 }), 'out_of_order')
    // Both are refused before the message is encoded, so its excessive length is not noticed.
    assert.equal(await answerTo({ seq: 3, data: 'x'.repeat(65_400) }), 'rate_limited')
    assert.equal(await answerTo({ seq: 4, data: 'x'.repeat(65_400) }), 'out_of_order')
    services.clock.advance(10_000)
    assert.equal(await answerTo({ seq: 3, data: 1 }), 'sent')
    assert.equal(await answerTo({ seq: 4, data: 1 }), 'sent')
  })

  test('without the scope consume their number as well', async t => {
    const { services, url, userId } = await open('sqlite', t)
    const client = await connect(
      services,
      url,
      await makeKey(services, userId, { scopes: ['agent:connect'] }),
    )
    for (const seq of [1, 2]) {
      client.send({ type: 'send', id: 'x', to: 'all', data: 1, seq })
      assert.equal((await client.next('error')).code, 'insufficient_scope')
    }
  })
})
