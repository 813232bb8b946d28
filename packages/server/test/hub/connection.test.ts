import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json } from '@keyway/sdk/protocol'
import fc from 'fast-check'
import { SECOND } from '../../src/clock.ts'
import { HEARTBEAT_SECONDS } from '../../src/hub/agent-connection.ts'
import { inTime, onceInTime } from '../support/patience.ts'
import { caller } from '../support/services.ts'
import { Client, connect, makeKey, open, tokenOf } from './fixture.ts'

describe('frames', () => {
  test('`ping` is answered with `pong`, and an unknown or invalid frame with an error that leaves the connection open', async t => {
    const { services, url, key } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const invalidFrames: [Json, string][] = [
      [{ type: 'dance', id: 'a' }, 'unknown_type'],
      [{ typ: 'ping' }, 'invalid_frame'],
      [{ type: 7 }, 'invalid_frame'],
      [{ type: 'token' }, 'invalid_frame'],
      [{ type: 'token', token: 'x'.repeat(8193) }, 'invalid_frame'],
      [{ type: 'token', token: 'x' }, 'invalid_token'],
      [{ type: 'send', to: 'all', data: 1 }, 'invalid_frame'],
      [{ type: 'send', id: '', to: 'all', data: 1 }, 'invalid_frame'],
      [{ type: 'send', id: 'x'.repeat(129), to: 'all', data: 1 }, 'invalid_frame'],
      [{ type: 'send', id: 'a', to: 7, data: 1 }, 'invalid_frame'],
      [{ type: 'send', id: 'a', to: 'all' }, 'invalid_frame'],
      [{ type: 'send', id: 'a', to: 'all', data: 'x'.repeat(65_450) }, 'invalid_frame'],
    ]
    for (const [frame, code] of invalidFrames) {
      client.send(frame)
      const error = await client.next('error')
      assert.equal(error.code, code, JSON.stringify(frame).slice(0, 80))
    }
    client.send(Buffer.from('x')) // binary, see the next test
    assert.equal(await client.end(), '4400 bad_message')
  })

  test('a message that is not one JSON object as text closes with 4400, and one over 64 KiB with 1009', async t => {
    const { services, url, key } = await open('sqlite', t)
    for (const text of ['', 'null', '[]', '"ping"', '{"type":"ping"', '{} {}', '7']) {
      const client = await connect(services, url, key)
      client.socket.send(text)
      assert.equal(await client.end(), '4400 bad_message', text)
    }
    const oversizedSender = await connect(services, url, key)
    oversizedSender.socket.send(' '.repeat(65_537))
    assert.match(await oversizedSender.end(), /^1009/)
  })

  test('a message reaches the owner’s other connections by connection id, key id or `all`, in order, and no other owner’s', async t => {
    const { services, url, key, userId } = await open('sqlite', t)
    const otherKey = await makeKey(services, userId)
    const { user } = await services.signIn('eve@example.com')
    const sender = await connect(services, url, key)
    const [a, b] = [await connect(services, url, otherKey), await connect(services, url, otherKey)]
    const strangersClient = await connect(services, url, await makeKey(services, user.id))
    const countDelivered = async (to: string, data: Json) => {
      sender.send({ type: 'send', id: `to ${to}`, to, data, from: strangersClient.id, agent_id: user.id })
      const acknowledgement = await sender.next('sent')
      assert.equal(acknowledgement.id, `to ${to}`)
      return acknowledgement.delivered
    }
    assert.equal(await countDelivered(a.id, { n: 1 }), 1)
    assert.equal(await countDelivered(otherKey.id, 2), 2)
    assert.equal(await countDelivered('all', null), 2)
    assert.equal(await countDelivered(sender.id, 0), 0)
    assert.equal(await countDelivered(key.id, 0), 0)
    assert.equal(await countDelivered(strangersClient.id, 0), 0)
    assert.equal(await countDelivered('nowhere', 0), 0)
    assert.deepEqual(await a.next('message'), {
      type: 'message',
      seq: 1,
      id: `to ${a.id}`,
      from: sender.id,
      from_key_id: key.id,
      data: { n: 1 },
    })
    assert.deepEqual((await b.next('message')).data, 2)
    await b.next('message')
    await strangersClient.flush()
    assert.deepEqual(strangersClient.received, [])
    for (let n = 0; n < 150; n++) sender.send({ type: 'send', id: `${n}`, to: b.id, data: n })
    for (let n = 0; n < 150; n++) assert.equal((await b.next('message')).data, n)
  })

  test('a `send` frame needs the scope agents:send', async t => {
    const { services, url, userId } = await open('sqlite', t)
    const client = await connect(
      services,
      url,
      await makeKey(services, userId, { scopes: ['agent:connect'] }),
    )
    const message = { type: 'send', id: 'x', to: 'all', data: 1 }
    for (const frame of [message, { ...message, reply_to: 'request' }]) {
      client.send(frame)
      const error = await client.next('error')
      assert.deepEqual([error.code, error.id], ['insufficient_scope', 'x'])
    }
  })

  test('a flood of frames is refused, then closes the connection with 4429', async t => {
    const { services, url, key } = await open('sqlite', t)
    const client = await connect(services, url, key)
    for (let n = 0; n < 500; n++) client.send({ type: 'ping' })
    assert.equal(await client.end(), '4429 rate_limited')
    assert.ok(client.received.some(frame => frame.type === 'error' && frame.code === 'rate_limited'))
  })

  test('a client that does not read is closed with 4429 slow_consumer while others are served', async t => {
    const { services, url, key, hub, userId, later } = await open('sqlite', t)
    const slowClient = await connect(services, url, key)
    const fastClient = await connect(services, url, key)
    slowClient.socket.pause()
    let isConnected = true
    for (let n = 0; isConnected && n < 2000; n++) {
      const pendingSend = hub.sendTo(userId, slowClient.id, 'x'.repeat(60_000))
      isConnected = await pendingSend.then(
        outcome => (outcome?.delivered ?? 0) > 0,
        () => later(5000).then(() => true),
      )
    }
    slowClient.socket.resume()
    assert.equal(await slowClient.end(), '4429 slow_consumer')
    await fastClient.flush()
  })

  test('generated frames never crash the hub, and each is answered or closes its connection', async t => {
    const { services, url, key, hub } = await open('sqlite', t)
    const witness = await connect(services, url, key)
    const type = fc.constantFrom('send', 'token', 'ping', 'x', '__proto__')
    const frame = fc.oneof(
      fc.json(),
      fc.string(),
      fc
        .record({ type, id: fc.anything(), to: fc.anything(), data: fc.jsonValue(), token: fc.anything() })
        .map(value => {
          try {
            return JSON.stringify(value)
          } catch {
            return '{}'
          }
        }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(frame, { maxLength: 8 }),
        fc.uint8Array({ maxLength: 200 }),
        async (texts, bytes) => {
          const client = await connect(services, url, key)
          for (const text of texts) client.socket.send(text)
          client.socket.send('['.repeat(60_000))
          assert.equal(await client.end(), '4400 bad_message')
          const rawClient = await connect(services, url, key)
          const tcpSocket = (rawClient.socket as unknown as { _socket: import('node:net').Socket })._socket
          tcpSocket.write(bytes)
          tcpSocket.end()
          await rawClient.end()
        },
      ),
      { numRuns: 100 },
    )
    await witness.flush()
    assert.equal(hub.connectionCount, 1)
  })
})

describe('the end of a connection', () => {
  test('a token that is not renewed closes its connection with 4408, after `token_expiring` 60 s before', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const advanceWithTraffic = async (ms: number) => {
      for (let left = ms; left > 0; left -= 5000) {
        await later(Math.min(5000, left))
        await client.flush()
      }
    }
    await advanceWithTraffic(839_999)
    assert.deepEqual(client.received, [])
    await advanceWithTraffic(1)
    assert.equal((await client.next('token_expiring')).expires_in, 60)
    await advanceWithTraffic(59_999)
    await later(1)
    assert.equal(await client.end(), '4408 token_expired')
  })

  test('a token is renewed in place, also by one of another key of the same owner; another owner’s is refused', async t => {
    const { services, url, key, userId, later, hub } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const { user } = await services.signIn('eve@example.com')
    client.send({ type: 'token', token: await tokenOf(services, await makeKey(services, user.id)) })
    assert.equal((await client.next('error')).code, 'invalid_token')
    await later(9000)
    client.send({ type: 'token', token: await tokenOf(services, key) })
    assert.equal((await client.next('token_accepted')).expires_in, 900)
    const secondKey = await makeKey(services, userId)
    client.send({ type: 'token', token: await tokenOf(services, secondKey) })
    await client.next('token_accepted')
    assert.equal((await hub.connections(userId))[0]?.keyId, secondKey.id)
    await services.apiKeys.revoke(userId, key.id, caller())
    await client.flush()
    const staleToken = await tokenOf(services, secondKey)
    await services.apiKeys.revoke(userId, secondKey.id, caller())
    assert.equal(await client.end(), '4410 revoked')
    assert.equal(await new Client(url, staleToken).end(), '4410 revoked')
  })

  test('the expiry of a key closes its connections with 4408, also when a rotation brings it forward', async t => {
    const { services, url, key, userId, hub, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    await services.apiKeys.rotate(userId, key.id, 5, caller())
    await later(4999)
    await client.flush()
    await later(1)
    assert.equal(await client.end(), '4408 token_expired')
    assert.equal(await hub.sendTo(userId, client.id, 'x'), null, 'it cannot be resumed')
  })

  test('suspending the owner or excluding the network closes with 4403', async t => {
    const { services, url, key, userId } = await open('sqlite', t)
    const firstClient = await connect(services, url, key)
    await services.apiKeys.update(userId, key.id, { allowedNetworks: ['192.0.2.0/24'] }, 'person')
    assert.equal(await firstClient.end(), '4403 network_not_allowed')
    const rejectedClient = await connect(services, url, await makeKey(services, userId))
    await services.users.suspend(userId)
    assert.equal(await rejectedClient.end(), '4403 account_suspended')
  })

  test('revoking a key closes its connections with 4410 within a second, 200 times, and no other key’s', async t => {
    const { services, url, key, userId } = await open('sqlite', t)
    const witness = await connect(services, url, key)
    const durationsMs: number[] = []
    // No clock advances and nothing polls, so only the event can close the connection.
    for (let round = 0; round < 200; round++) {
      const keyToRevoke = await makeKey(services, userId)
      const client = await connect(services, url, keyToRevoke)
      const startedAt = performance.now()
      await services.apiKeys.revoke(userId, keyToRevoke.id, caller())
      assert.equal(await client.end(), '4410 revoked')
      durationsMs.push(performance.now() - startedAt)
    }
    durationsMs.sort((a, b) => a - b)
    t.diagnostic(
      `revoke to 4410: p50 ${durationsMs[100]!.toFixed(1)} ms, p99 ${durationsMs[197]!.toFixed(1)} ms`,
    )
    await witness.flush()
  })

  test('a connect that races the revocation of its key is closed with 4410', async t => {
    const { services, url, userId, hub } = await open('sqlite', t)
    for (let round = 0; round < 100; round++) {
      const keyToRevoke = await makeKey(services, userId)
      const client = new Client(url, await tokenOf(services, keyToRevoke))
      if (round % 2) await new Promise(resolve => setTimeout(resolve, round / 20))
      await services.apiKeys.revoke(userId, keyToRevoke.id, caller())
      assert.equal(await client.end(), '4410 revoked')
    }
    assert.equal(hub.connectionCount, 0)
  })

  test('the sweep closes the connections of a revoked key whose event was lost', async t => {
    const noEvents = { subscribe: () => () => {}, publish: async () => {} }
    const { services, url, key, userId, hub } = await open('sqlite', t, { events: noEvents })
    const client = await connect(services, url, key)
    await services.apiKeys.revoke(userId, key.id, caller())
    await hub.sweep()
    assert.equal(await client.end(), '4410 revoked')
  })

  test('a node without its database for 10 s closes all connections with 1013, refuses new ones, and recovers', async t => {
    let databaseIsDown = false
    const { services, url, key, hub, later } = await open('sqlite', t)
    const isolatedHub = await import('./fixture.ts').then(({ openHub }) =>
      openHub(services, t, {
        ports: {
          meter: services.meter,
          verifyToken: services.agentTokens.verify,
          keyStatus: ids =>
            databaseIsDown ? Promise.reject(new Error('away')) : services.apiKeys.findMany(ids),
          endingsSince: (...since) =>
            databaseIsDown ? Promise.reject(new Error('away')) : services.store.endings.since(...since),
        },
      }),
    )
    const healthyClient = await connect(services, url, key)
    const client = await connect(services, isolatedHub.url, key)
    databaseIsDown = true
    services.clock.advance(9999)
    await isolatedHub.hub.sweep()
    isolatedHub.hub.tick()
    await client.flush()
    await later(1)
    isolatedHub.hub.tick()
    assert.equal(await client.end(), '1013 try_again_later')
    assert.equal(
      await new Client(isolatedHub.url, await tokenOf(services, key)).end(),
      '1013 try_again_later',
    )
    assert.equal(isolatedHub.hub.health().databaseFresh, false)
    databaseIsDown = false
    await isolatedHub.hub.sweep()
    await connect(services, isolatedHub.url, key)
    await healthyClient.flush()
    assert.equal(hub.connectionCount, 1)
  })

  test('a silent connection is terminated after 60 s, and one that answers pings stays open', async t => {
    const { services, url, key, later, hub } = await open('sqlite', t)
    const answeringClient = await connect(services, url, key)
    const silentClient = await connect(services, url, key)
    silentClient.socket.pause()
    for (let passed = 0; passed < 60; passed += 5) {
      await later(5000)
      await answeringClient.flush()
    }
    assert.equal(hub.connectionCount, 1)
    silentClient.socket.resume()
    assert.match(await silentClient.end(), /^1006/)
  })

  test('a connection on which the agent only answers protocol pings stays open', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const otherClient = await connect(services, url, key)
    for (let pings = 0; pings < 5; pings++) {
      const pingReceived = onceInTime(client.socket, 'ping')
      await later(HEARTBEAT_SECONDS * SECOND)
      await pingReceived // The client has sent its pong before the other connection sends.
      await otherClient.flush()
    }
    await client.flush()
  })

  test('a connection is pinged every 25 seconds', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    let pingCount = 0
    client.socket.on('ping', () => pingCount++)
    for (const [ms, pings] of [
      [24_999, 0],
      [1, 1],
      [1, 1],
      [24_998, 1],
      [1, 2],
    ] as const) {
      await later(ms)
      await client.flush()
      assert.equal(pingCount, pings)
    }
  })

  test('a connection on which the agent sends only protocol pings stays open', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key, { autoPong: false })
    for (let passed = 0; passed < 120; passed += 5) {
      client.socket.ping()
      await onceInTime(client.socket, 'pong')
      await later(5000)
    }
    await client.flush()
  })

  test('`token_expiring` follows `ready` at once when at most 60 s remain', async t => {
    const { services, url, userId } = await open('sqlite', t)
    for (const [seconds, isNear] of [
      [60, true],
      [61, false],
    ] as const) {
      const key = await makeKey(services, userId, { expiresAt: services.clock.now() + seconds * 1000 })
      const client = await connect(services, url, key)
      await client.flush()
      assert.deepEqual(
        client.received.map(frame => frame.type === 'token_expiring' && frame.expires_in),
        isNear ? [60] : [],
      )
    }
  })

  test('an agent that renews whenever it is told to renews once when its key itself expires', async t => {
    const { services, url, userId, later } = await open('sqlite', t)
    const expiresAt = services.clock.now() + 90_000
    const key = await makeKey(services, userId, { expiresAt })
    const client = await connect(services, url, key)
    for (let passed = 0; passed < 30; passed += 5) {
      await later(5000)
      await client.flush()
    }
    assert.equal((await client.next('token_expiring')).expires_in, 60)
    client.send({ type: 'token', token: await tokenOf(services, key) })
    assert.equal((await client.next('token_accepted')).expires_in, 60)
    await client.flush()
    assert.deepEqual(client.received, [])
  })

  test('renewals beyond ten at once and ten a minute are refused, and the connection stays', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const token = await tokenOf(services, key)
    const renew = async () => {
      client.send({ type: 'token', token })
      return client.until(() => client.received.shift()?.type)
    }
    for (let renewal = 0; renewal < 10; renewal++) assert.equal(await renew(), 'token_accepted')
    assert.equal(await renew(), 'error')
    await later(6000)
    assert.equal(await renew(), 'token_accepted')
    assert.equal(await renew(), 'error')
  })

  test('`token_expiring` is sent for every token, also for a renewed one', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    for (let token = 0; token < 3; token++) {
      for (let passed = 0; passed < 840; passed += 5) {
        await later(5000)
        await client.flush()
      }
      assert.equal((await client.next('token_expiring')).expires_in, 60)
      client.send({ type: 'token', token: await tokenOf(services, key) })
      assert.equal((await client.next('token_accepted')).expires_in, 900)
    }
  })

  test('a draining node sends `draining`, refuses new agents, and closes the remaining ones with 1012', async t => {
    const { services, url, key, hub } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const token = await tokenOf(services, key)
    const pendingDrain = hub.drain(1500)
    await client.next('draining')
    assert.equal((await new Client(url, token).refusal()).status, 503)
    assert.equal(await client.end(), '1012 restarting')
    await pendingDrain
    assert.equal(hub.connectionCount, 0)
  })

  test('a draining node announces the seconds before the closing handshakes, and is done when the last agent has left', async t => {
    const { services, url, key, hub } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const pendingDrain = hub.drain(3600 * SECOND)
    assert.equal((await client.next('draining')).close_in_seconds, 3599)
    client.socket.close()
    await inTime('the end of the drain', pendingDrain)
  })

  test('only its owner can disconnect or message a connection', async t => {
    const { services, url, key, hub, userId } = await open('sqlite', t)
    const client = await connect(services, url, key)
    const { user } = await services.signIn('eve@example.com')
    assert.equal(await hub.disconnect(user.id, client.id), false)
    assert.equal(await hub.sendTo(user.id, client.id, 1), null)
    assert.equal((await hub.sendTo(userId, key.id, { hi: 1 }))?.delivered, 1)
    const message = await client.next('message')
    assert.deepEqual([message.from, message.from_key_id], ['api', null])
    assert.equal(await hub.disconnect(userId, client.id), true)
    assert.equal(await client.end(), '1001 going_away')
  })
})
