import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { toScopes } from '../../src/api-keys/api-key.ts'
import type { Event } from '../../src/events.ts'
import type { HubDeps } from '../../src/hub/hub.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { SWEEP_MS } from '../../src/hub/revocations.ts'
import { inTime, until } from '../support/patience.ts'
import { caller, openServices } from '../support/services.ts'
import { Client, connect, makeKey, openHub, recordedLog, tokenOf } from './fixture.ts'
import { connectionOn, openAmongPeers } from './support/peers.ts'

const NO_EVENTS: HubDeps['events'] = { subscribe: () => () => {}, publish: async () => {} }

/** Opens a hub whose key statuses can be held back after they were read from the database. */
async function openGated(t: TestContext, overrides: Partial<HubDeps> = {}) {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  let gate: { reached: () => void; released: Promise<void> } | null = null
  /** Subjects whose endings the sweep does not see, as if their transactions had not committed. */
  const uncommitted = new Set<string>()
  const node = await openHub(services, t, {
    ports: {
      meter: services.meter,
      verifyToken: services.agentTokens.verify,
      async keyStatus(ids) {
        const keyStatuses = await services.apiKeys.findMany(ids)
        const currentGate = gate
        gate = null
        currentGate?.reached()
        await currentGate?.released
        return keyStatuses
      },
      async endingsSince(...since) {
        const endings = await services.store.endings.since(...since)
        return endings.filter(({ subjectId }) => !uncommitted.has(subjectId))
      },
    },
    ...overrides,
  })
  /** Holds back the next key status: `reached` resolves when it was read, and `release` returns it to the hub. */
  const hold = () => {
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    gate = { reached: reached.resolve, released: released.promise }
    return { reached: reached.promise, release: released.resolve }
  }
  return { services, userId: user.id, hold, uncommitted, key: await makeKey(services, user.id), ...node }
}

describe('races with the loading of a key’s status', () => {
  test('a connect whose key is revoked meanwhile is closed with 4410, since the status is loaded again', async t => {
    const { services, url, userId, key, hold } = await openGated(t)
    const witness = await connect(services, url, key)
    const token = await tokenOf(services, key)
    const { reached, release } = hold()
    const client = new Client(url, token)
    await reached
    await services.apiKeys.revoke(userId, key.id, caller())
    assert.equal(await witness.end(), '4410 revoked')
    release()
    assert.equal(await client.end(), '4410 revoked')
    assert.deepEqual(client.received, [])
  })

  test('a connect is registered before its key is loaded, so that a sweep in between closes it', async t => {
    const { services, url, userId, key, hold, hub } = await openGated(t, { events: NO_EVENTS })
    const token = await tokenOf(services, key)
    const { reached, release } = hold()
    const client = new Client(url, token)
    await reached
    assert.equal(hub.connectionCount, 1)
    await services.apiKeys.revoke(userId, key.id, caller())
    await hub.sweep()
    release()
    assert.equal(await client.end(), '4410 revoked')
    assert.deepEqual(client.received, [])
  })

  test('a connect whose key is not loaded within ten seconds is closed with 1013', async t => {
    const { services, url, key, hold, hub } = await openGated(t)
    const { reached, release } = hold()
    const client = new Client(url, await tokenOf(services, key))
    await reached
    services.clock.advance(9_999)
    await hub.sweep()
    hub.tick()
    assert.equal(hub.connectionCount, 1)
    services.clock.advance(1)
    hub.tick()
    assert.equal(await client.end(), '1013 try_again_later')
    release()
  })

  test('a renewal whose new key is revoked meanwhile is refused, and revoking the old key still closes the connection', async t => {
    const { services, url, userId, key, hold } = await openGated(t)
    const client = await connect(services, url, key)
    const nextKey = await makeKey(services, userId)
    const witness = await connect(services, url, nextKey)
    const token = await tokenOf(services, nextKey)
    const { reached, release } = hold()
    client.send({ type: 'token', token })
    await reached
    await services.apiKeys.revoke(userId, nextKey.id, caller())
    assert.equal(await witness.end(), '4410 revoked')
    release()
    const answer = await client.until(() => client.received[0])
    assert.equal(answer.type === 'error' && answer.code, 'invalid_token', JSON.stringify(answer))
    await services.apiKeys.revoke(userId, key.id, caller())
    assert.equal(await client.end(), '4410 revoked')
  })

  test('a connection whose old key is revoked during a renewal is closed with 4410', async t => {
    const { services, url, userId, key, hold } = await openGated(t)
    const client = await connect(services, url, key)
    const token = await tokenOf(services, await makeKey(services, userId))
    const { reached, release } = hold()
    client.send({ type: 'token', token })
    await reached
    await services.apiKeys.revoke(userId, key.id, caller())
    assert.equal(await client.end(), '4410 revoked')
    release()
    assert.deepEqual(client.received, [])
  })
})

describe('a renewal', () => {
  const openGatedClient = async (t: TestContext) => {
    const hub = await openGated(t)
    const client = await connect(hub.services, hub.url, hub.key)
    return { ...hub, client, token: await tokenOf(hub.services, hub.key) }
  }

  test('during another one is refused, and does not disturb that', async t => {
    const { client, token, hold, services, userId } = await openGatedClient(t)
    const otherToken = await tokenOf(services, await makeKey(services, userId))
    const { reached, release } = hold()
    client.send({ type: 'token', token })
    await reached
    client.send({ type: 'token', token: otherToken })
    const { code, detail } = await client.next('error')
    assert.deepEqual([code, /under way/.test(detail)], ['rate_limited', true])
    release()
    await client.next('token_accepted')
    client.send({ type: 'token', token: otherToken })
    await client.next('token_accepted')
    await client.flush()
    assert.deepEqual(client.received, [])
  })

  test('to a key that expires within 60 s is followed by `token_expiring` at once', async t => {
    const { client, services, userId } = await openGatedClient(t)
    for (const [seconds, isNear] of [
      [61, false],
      [60, true],
    ] as const) {
      const expiresAt = services.clock.now() + seconds * 1000
      const expiring = await makeKey(services, userId, { expiresAt })
      client.send({ type: 'token', token: await tokenOf(services, expiring) })
      assert.equal((await client.next('token_accepted')).expires_in, seconds)
      await client.flush()
      assert.deepEqual(
        client.received.map(({ type }) => type),
        isNear ? ['token_expiring'] : [],
      )
    }
  })

  test('above the limit of its connection is refused for that', async t => {
    const { client, token } = await openGatedClient(t)
    for (let n = 0; n < 10; n++) {
      client.send({ type: 'token', token })
      await client.next('token_accepted')
    }
    client.send({ type: 'token', token })
    const { code, detail } = await client.next('error')
    assert.deepEqual([code, /too often/.test(detail)], ['rate_limited', true])
  })

  test('with a token of another owner, or an expired one, is refused before a key is loaded, and one without the scope then', async t => {
    const services = await openServices('sqlite', t)
    const [ada, eve] = [await services.signIn('ada@example.com'), await services.signIn('eve@example.com')]
    const loadedKeys: string[] = []
    const special = { expired: '', narrow: '' }
    const { log, lines } = recordedLog()
    const { url } = await openHub(services, t, {
      log,
      ports: {
        meter: services.meter,
        async verifyToken(token) {
          const claims = await services.agentTokens.verify(token)
          if (claims && token === special.expired) return { ...claims, expiresAt: services.clock.now() }
          return claims && token === special.narrow
            ? { ...claims, scopes: toScopes(['agents:send']) }
            : claims
        },
        keyStatus(ids) {
          loadedKeys.push(...ids)
          return services.apiKeys.findMany(ids)
        },
        endingsSince: services.store.endings.since,
      },
    })
    const [key, next] = [await makeKey(services, ada.user.id), await makeKey(services, ada.user.id)]
    const client = await connect(services, url, key)
    special.expired = await tokenOf(services, next)
    for (const token of [
      special.expired,
      await tokenOf(services, await makeKey(services, eve.user.id)),
      'x',
    ]) {
      client.send({ type: 'token', token })
      const { code, detail } = await client.next('error')
      assert.deepEqual([code, /not valid or not of the same owner/.test(detail)], ['invalid_token', true])
    }
    assert.deepEqual([loadedKeys, lines], [[key.id], []])
    services.clock.advance(1)
    special.narrow = await tokenOf(services, next)
    client.send({ type: 'token', token: special.narrow })
    assert.match((await client.next('error')).detail, /does not open the hub/)
    assert.deepEqual(loadedKeys, [key.id, next.id])
  })

  test('with a key that may not open the hub from here is refused, and the old key stays', async t => {
    const { client, services, userId, key, hub } = await openGatedClient(t)
    const restricted = await makeKey(services, userId, { allowedNetworks: ['192.0.2.0/24'] })
    client.send({ type: 'token', token: await tokenOf(services, restricted, '192.0.2.1') })
    const { code, detail } = await client.next('error')
    assert.deepEqual([code, /does not open the hub/.test(detail)], ['invalid_token', true])
    await services.apiKeys.revoke(userId, restricted.id, caller())
    await client.flush()
    assert.equal((await hub.connections(userId))[0]!.keyId, key.id)
  })

  test('whose connection breaks while its key is loaded has no effect', async t => {
    const { client, services, userId, key, hold, hub } = await openGatedClient(t)
    const next = await makeKey(services, userId)
    const token = await tokenOf(services, next)
    const { reached, release } = hold()
    client.send({ type: 'token', token })
    await reached
    client.socket.terminate()
    await until('it is held', () => hub.connectionCount === 0)
    release()
    await services.apiKeys.findMany([key.id])
    await wait(0)
    assert.equal(await hub.sendTo(userId, next.id, 'x'), null, 'it does not have the new key')
    assert.deepEqual(await hub.sendTo(userId, key.id, 'x'), { delivered: 0, held: 1 })
  })
})

test('a connection that ends while its key is loaded requests none to resume, and counts as no refusal', async t => {
  const gate = { reached: Promise.withResolvers<void>(), released: Promise.withResolvers<void>() }
  const { services, hub, url, userId, key, addPeer } = await openAmongPeers(t, services => ({
    ports: {
      meter: services.meter,
      verifyToken: services.agentTokens.verify,
      async keyStatus(ids) {
        const keyStatuses = await services.apiKeys.findMany(ids)
        gate.reached.resolve()
        await gate.released.promise
        return keyStatuses
      },
      endingsSince: services.store.endings.since,
    },
  }))
  const peer = await addPeer({ hasUser: true })
  const client = new Client(url, await tokenOf(services, key), {
    headers: connectionOn(peer, userId, key.id).headers(0),
  })
  await gate.reached.promise
  client.socket.close(1000)
  await client.end()
  await until('it is gone', () => hub.connectionCount === 0)
  await services.apiKeys.revoke(userId, key.id, caller())
  gate.released.resolve()
  for (let turn = 0; turn < 5; turn++) {
    await services.apiKeys.findMany([key.id])
    await wait(0)
  }
  assert.ok(!peer.received.some(({ kind }) => kind === 'release'))
  await services.meter.flush()
  const usage = (await services.usage.ofKey(userId, key.id)).at(-1)
  assert.deepEqual(usage?.refused ?? {}, {})
})

test('a hub that has stopped no longer asks a database that fails for the status of a key', async t => {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  let queryCount = 0
  const { hub, url } = await openHub(services, t, {
    ports: {
      meter: services.meter,
      verifyToken: services.agentTokens.verify,
      async keyStatus() {
        queryCount++
        throw new Error('the database is down')
      },
      endingsSince: services.store.endings.since,
    },
  })
  const client = new Client(url, await tokenOf(services, await makeKey(services, user.id)))
  await until('the status was asked for again', () => queryCount === 2)
  await hub.stop()
  await client.end()
  await wait(600)
  assert.equal(queryCount, 2)
})

test('a message that is sent in the moment in which a connection is resumed reaches it', async t => {
  const { services, url, userId, hub, key, hold } = await openGated(t)
  const token = await tokenOf(services, key)
  const first = new Client(url, token)
  const { connection_id, resume_token } = await first.next('ready')
  first.socket.terminate()
  await until('it is held', async () => hub.connectionCount === 0)
  const { reached, release } = hold()
  const resumingClient = new Client(url, token, { headers: { 'keyway-resume': `${resume_token}.0` } })
  await reached
  release()
  // Sends one message in each microtask turn of the resumption.
  const pendingSends = []
  for (let n = 0; n < 200; n++) {
    pendingSends.push(hub.sendTo(userId, connection_id, n))
    await null
  }
  for (const outcome of await Promise.all(pendingSends))
    assert.equal(outcome && outcome.delivered + outcome.held, 1)
  assert.equal((await resumingClient.next('ready')).resumed, true)
  for (let n = 0; n < 200; n++) {
    const { seq, data } = await resumingClient.next('message')
    assert.deepEqual([seq, data], [n + 1, n])
  }
})

test('the sweep finds an ending that commits 30 s after its own timestamp', async t => {
  const { services, url, userId, key, uncommitted, hub } = await openGated(t, { events: NO_EVENTS })
  const client = await connect(services, url, key)
  uncommitted.add(key.id)
  await services.apiKeys.revoke(userId, key.id, caller())
  for (let passed = 0; passed < 30; passed += 5) {
    services.clock.advance(5000)
    await hub.sweep()
    hub.tick()
    await client.flush()
  }
  uncommitted.clear()
  await hub.sweep()
  assert.equal(await client.end(), '4410 revoked')
})

test('an event closes the connections of what ended, and one of lost events those of every ended key', async t => {
  let emit: (event: Event) => void = () => {}
  const events: HubDeps['events'] = {
    subscribe(listener) {
      emit = listener
      return () => {}
    },
    publish: async () => {},
  }
  const { services, url, userId, key, uncommitted } = await openGated(t, { events })
  const { user } = await services.signIn('eve@example.com')
  const suspendedAgent = await connect(services, url, key)
  const revokedKey = await makeKey(services, user.id)
  const revokedAgent = await connect(services, url, revokedKey)
  const witness = await connect(services, url, await makeKey(services, user.id))
  // Sweeps find neither ending, so only events can close the connections.
  for (const subject of [userId, revokedKey.id]) uncommitted.add(subject)
  await services.apiKeys.revoke(user.id, revokedKey.id, caller())
  await services.users.suspend(userId)
  await suspendedAgent.flush()
  emit({ type: 'user.changed', userId })
  assert.equal(await suspendedAgent.end(), '4403 account_suspended')
  await revokedAgent.flush()
  emit({ type: 'events.gap' })
  assert.equal(await revokedAgent.end(), '4410 revoked')
  await witness.flush()
})

test('a renewal whose token cannot be verified at the moment is refused as `rate_limited`, and possible later', async t => {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  let isDown = false
  const { url } = await openHub(services, t, {
    ports: {
      meter: services.meter,
      verifyToken: token =>
        isDown ? Promise.reject(new Error('the database is down')) : services.agentTokens.verify(token),
      keyStatus: services.apiKeys.findMany,
      endingsSince: services.store.endings.since,
    },
  })
  const key = await makeKey(services, user.id)
  const client = await connect(services, url, key)
  const token = await tokenOf(services, key)
  isDown = true
  client.send({ type: 'token', token })
  assert.equal((await client.next('error')).code, 'rate_limited')
  isDown = false
  client.send({ type: 'token', token })
  await client.next('token_accepted')
})

test('a renewal whose connection ends while its token is verified does not load the key', async t => {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  const loadedKeys: string[] = []
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let renewal = ''
  const { hub, url } = await openHub(services, t, {
    ports: {
      meter: services.meter,
      async verifyToken(token) {
        const claims = await services.agentTokens.verify(token)
        if (token !== renewal) return claims
        reached.resolve()
        await released.promise
        return claims
      },
      keyStatus(ids) {
        loadedKeys.push(...ids)
        return services.apiKeys.findMany(ids)
      },
      endingsSince: services.store.endings.since,
    },
  })
  const [key, otherKey] = [await makeKey(services, user.id), await makeKey(services, user.id)]
  const client = await connect(services, url, key)
  renewal = await tokenOf(services, otherKey)
  client.send({ type: 'token', token: renewal })
  await reached.promise
  assert.equal(await hub.disconnect(user.id, key.id), true)
  await client.end()
  released.resolve()
  await connect(services, url, key)
  assert.deepEqual(loadedKeys, [key.id, key.id])
})

test('a hub that has stopped no longer polls the database', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const services = await openServices('sqlite', t)
  let pollCount = 0
  const { hub } = await openHub(services, t, {
    ports: {
      meter: services.meter,
      verifyToken: services.agentTokens.verify,
      keyStatus: services.apiKeys.findMany,
      async endingsSince() {
        pollCount++
        return []
      },
    },
  })
  assert.equal(pollCount, 1, 'at its start')
  t.mock.timers.tick(SWEEP_MS)
  assert.equal(pollCount, 2)
  await hub.stop()
  t.mock.timers.tick(10 * SWEEP_MS)
  assert.equal(pollCount, 2)
})

test('a forged token is refused each time it is presented', async t => {
  const { services, url, key } = await openGated(t)
  const [head, payload] = (await tokenOf(services, key)).split('.')
  const forgedToken = `${head}.${payload}.${Buffer.alloc(64, 7).toString('base64url')}`
  for (let n = 0; n < 3; n++) {
    assert.equal(await new Client(url, forgedToken, { tokenIn: 'subprotocol' }).end(), '4401 invalid_token')
  }
})

test('presence rows whose removal failed are removed by the next write', async t => {
  const services = await openServices('sqlite', t)
  const { user } = await services.signIn('ada@example.com')
  const presence = recordedPresence(services)
  let failuresLeft = 1
  const rowWritten = Promise.withResolvers<void>()
  const rowRemoved = Promise.withResolvers<void>()
  const { url } = await openHub(services, t, {
    presence: {
      ...presence,
      async record(nodeId, added, removedIds) {
        if (removedIds.length > 0 && failuresLeft-- > 0) throw new Error('the database is unreachable')
        await presence.record(nodeId, added, removedIds)
        if (added.length > 0) rowWritten.resolve()
        if (removedIds.length > 0) rowRemoved.resolve()
      },
    },
  })
  const client = await connect(services, url, await makeKey(services, user.id))
  await inTime('the row of the connection', rowWritten.promise)
  assert.equal((await presence.listOf(user.id, 0)).length, 1)
  client.socket.close()
  await inTime('the removal of the row', rowRemoved.promise)
  assert.deepEqual(await presence.listOf(user.id, 0), [])
})
