import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openServer } from '../support/http.ts'
import type { Services } from '../support/services.ts'
import { Client, connect, makeKey, open, type TestKey, tokenOf } from './fixture.ts'

/** Connects `size` receivers of one owner, so that a message to `all` costs that many deliveries. */
async function connectMany(services: Services, url: string, key: TestKey, size: number): Promise<Client[]> {
  return Promise.all(Array.from({ length: size }, () => connect(services, url, key)))
}

/** Sends until a message is refused; returns the number of accepted ones and the id in the refusal. */
async function sendUntilRefused(sender: Client, data: string): Promise<{ passed: number; refused?: string }> {
  for (let passed = 0; passed < 190; passed++) {
    sender.send({ type: 'send', id: `send ${passed}`, to: 'all', data })
    const answer = await sender.until(() =>
      sender.received.find(frame => frame.type === 'sent' || frame.type === 'error'),
    )
    sender.received.length = 0
    if (answer.type === 'error') {
      assert.equal(answer.code, 'rate_limited')
      return { passed, refused: answer.id }
    }
  }
  return { passed: 190 }
}

describe('the delivery limits of one owner', () => {
  test('an owner may cause the deliveries of two seconds at once and of one a second, and owners do not share the limit', async t => {
    const { services, url, key, userId, hub, later } = await open('sqlite', t, { deliveriesPerUser: 2500 })
    await connectMany(services, url, key, 50)
    const sender = await connect(services, url, key)
    assert.deepEqual(await sendUntilRefused(sender, 'x'), { passed: 100, refused: 'send 100' })
    const oversizedData = 'x'.repeat(65_400)
    for (const data of ['x', oversizedData])
      await assert.rejects(hub.sendTo(userId, 'all', data), { code: 'rate_limited' })
    // The limit is checked before the message is encoded, so its excessive length is not noticed.
    sender.send({ type: 'send', id: 'too long', to: 'all', data: oversizedData })
    assert.equal((await sender.next('error')).code, 'rate_limited')

    const { user } = await services.signIn('eve@example.com')
    const strangers = await connectMany(services, url, await makeKey(services, user.id), 2)
    strangers[0]!.send({ type: 'send', id: 'mine', to: 'all', data: 1 })
    assert.equal((await strangers[0]!.next('sent')).delivered, 1)

    await later(1000)
    // A message passes while anything is left in the owner's token bucket; its cost may make the bucket's level negative.
    assert.deepEqual(await sendUntilRefused(sender, 'x'), { passed: 50, refused: 'send 50' })
  })

  test('an owner may cause the bytes of two seconds at once and of one a second', async t => {
    const { services, url, key, later } = await open('sqlite', t, { deliveryMibPerUser: 8 })
    await connectMany(services, url, key, 32)
    const sender = await connect(services, url, key)
    // With the other fields each frame has just under 64 KiB; a message to all is 32 frames, just under 2 MiB.
    const data = 'x'.repeat(65_250)
    assert.equal((await sendUntilRefused(sender, data)).passed, 9)
    await later(1000)
    assert.ok([4, 5].includes((await sendUntilRefused(sender, data)).passed))
  })
})

test('the settings of connections, deliveries and MiB are those of a running hub', async t => {
  const settings = {
    KEYWAY_HUB_MAX_CONNECTIONS: '1',
    KEYWAY_HUB_DELIVERIES: '50',
    KEYWAY_HUB_DELIVERY_MIB: '1',
  }
  const { hub, ...server } = await openServer('sqlite', t, { settings })
  const { user } = await server.signIn('ada@example.com')
  const countPassed = async (data: string) => {
    for (let count = 0; count < 1000; count++) {
      const isRefused = await hub.sendTo(user.id, 'unknown', data).then(
        () => false,
        () => true,
      )
      if (isRefused) return count
    }
    return 'not limited'
  }
  assert.equal(await countPassed('x'), 100)
  server.clock.advance(60_000)
  await hub.sweep()
  // Each frame has more than 60,000 bytes, and two MiB may pass at once.
  assert.equal(await countPassed('x'.repeat(60_000)), 35)

  const key = await makeKey(server, user.id)
  const url = `${server.url.replace('http', 'ws')}/hub`
  await connect(server, url, key)
  const secondClient = new Client(url, await tokenOf(server, key))
  assert.equal(await secondClient.end(), '4429 too_many_connections')
})

test('a message without a receiver counts as one delivery', async t => {
  const { services, url, key, userId, hub } = await open('sqlite', t, { deliveriesPerUser: 500 })
  await connect(services, url, key)
  for (let n = 0; n < 1000; n++) assert.equal(await hub.sendTo(userId, 'unknown', n), null)
  await assert.rejects(hub.sendTo(userId, 'unknown', 1), { code: 'rate_limited' })
})

describe('limits over all connections of one owner', () => {
  test('unsent bytes count over all connections of an owner, and the connection that exceeds the limit is closed', async t => {
    const { services, url, key, userId, hub } = await open('sqlite', t, { maxUnsentBytesPerUser: 100_000 })
    const quickAgent = await connect(services, url, key)
    const slowAgent = await connect(services, url, key)
    slowAgent.socket.pause()
    // The slow connection stays below the limit of one connection, 1 MiB, so every message is written until a tick
    // closes it because of its owner's limit.
    for (let n = 0; hub.connectionCount === 2; n++) {
      assert.ok(n < 200)
      assert.equal((await hub.sendTo(userId, slowAgent.id, 'x'.repeat(60_000)))?.delivered, 1)
      hub.tick()
    }
    slowAgent.socket.resume()
    assert.equal(await slowAgent.end(), '4429 slow_consumer')
    await quickAgent.flush()
  })

  test('frames count over all connections of an owner, large ones several times, and owners do not share the limit', async t => {
    const { services, url, key, later } = await open('sqlite', t, { maxConnectionsPerUser: 100 })
    // The owner's limit is 1000 at once and 200 a second: five connections stay below it, six exceed it.
    const agents = await connectMany(services, url, key, 6)
    const isRefused = (agent: Client) => agent.received.some(frame => frame.type === 'error')
    const flood = async (agent: Client) => {
      for (let n = 0; n < 190; n++) agent.send({ type: 'ping' })
      await agent.until(() => (agent.received.length === 190 ? true : undefined))
    }
    for (const agent of agents) await flood(agent)
    assert.deepEqual(agents.map(isRefused), [false, false, false, false, false, true])

    const { user } = await services.signIn('eve@example.com')
    const strangersClient = await connect(services, url, await makeKey(services, user.id))
    await strangersClient.flush()

    await later(1000)
    const [one, other] = agents as [Client, Client]
    one.received.length = 0
    // The 140 frames beyond the limit of 1000 count too, so after a second 60 of the next 200 are left. Each of the 7
    // messages of 60 KB counts as 8.
    for (let n = 0; n < 7; n++)
      one.send({ type: 'send', id: `${n}`, to: 'unknown', data: 'x'.repeat(60_000) })
    for (let n = 0; n < 7; n++) await one.next('sent')
    other.received.length = 0
    for (let n = 0; n < 5; n++) other.send({ type: 'ping' })
    await other.until(() => (other.received.length === 5 ? true : undefined))
    assert.deepEqual(
      other.received.map(frame => frame.type),
      ['pong', 'pong', 'pong', 'pong', 'error'],
    )
  })

  test('a connection with which its owner goes far beyond the limit is closed with 4429', async t => {
    const { services, url, key, hub } = await open('sqlite', t, { maxConnectionsPerUser: 100 })
    const [flooding] = await connectMany(services, url, key, 2)
    // For the owner's limit each message counts as eight frames: 125 messages use it up, and 250 exceed it by as much
    // again. For the connection's own limit, which closes it after 400 frames, each counts as one.
    for (let n = 0; n < 251; n++)
      flooding!.send({ type: 'send', id: `${n}`, to: 'unknown', data: 'x'.repeat(60_000) })
    assert.equal(await flooding!.end(), '4429 rate_limited')
    assert.equal(hub.connectionCount, 1, 'the other one stays open')
  })

  test('the message with which a flooding connection is closed is not delivered', async t => {
    const { services, url, key, hub, userId } = await open('sqlite', t)
    const [flooding, receiver] = await connectMany(services, url, key, 2)
    for (let n = 0; n < 401; n++) flooding!.send({ type: 'send', id: `${n}`, to: 'all', data: n })
    assert.equal(await flooding!.end(), '4429 rate_limited')
    await hub.sendTo(userId, 'all', 'the end')
    const received = await receiver!.until(() => {
      const messages = receiver!.received.flatMap(frame => (frame.type === 'message' ? [frame.data] : []))
      return messages.includes('the end') ? messages : undefined
    })
    assert.equal(received.length, 201)
  })

  test('the number of connects is limited, and reconnecting does not reset it', async t => {
    const { services, url, key, later } = await open('sqlite', t, { maxConnectionsPerUser: 100 })
    const token = await tokenOf(services, key)
    const connectOnce = async () => {
      const client = new Client(url, token)
      const firstFrame = await client.until(() => client.received[0] ?? client.closed ?? undefined)
      client.socket.terminate()
      await client.end()
      return 'code' in firstFrame ? firstFrame.code : 'ready'
    }
    for (let n = 0; n < 500; n++) assert.equal(await connectOnce(), 'ready', `connect ${n}`)
    assert.equal(await connectOnce(), 4429)
    const { user } = await services.signIn('eve@example.com')
    await connect(services, url, await makeKey(services, user.id))
    await later(1000)
    for (let n = 0; n < 10; n++) assert.equal(await connectOnce(), 'ready', `connect ${n}`)
    assert.equal(await connectOnce(), 4429)
  })
})

test('a node whose database is closed renews no token, and closes all connections with 1013 after ten seconds', async t => {
  const { services, url, key, hub, later } = await open('sqlite', t)
  const client = await connect(services, url, key)
  const [renewalToken, connectToken] = [await tokenOf(services, key), await tokenOf(services, key)]
  await services.opened.close()
  await later(5000)
  client.send({ type: 'token', token: renewalToken })
  const waitingClient = new Client(url, connectToken)
  await client.flush()
  await later(4999)
  await client.flush()
  assert.deepEqual([client.received, waitingClient.received], [[], []])
  await later(1)
  assert.equal(await client.end(), '1013 try_again_later')
  assert.equal(await waitingClient.end(), '1013 try_again_later')
  const lateClient = new Client(url, connectToken)
  await lateClient.until(() => lateClient.closed ?? lateClient.refused ?? undefined)
  assert.ok(lateClient.closed?.code === 1013 || lateClient.refused?.status === 503)
  assert.equal(hub.connectionCount, 0)
})
