import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Services } from '../support/services.ts'
import { Client, connect, makeKey, open, type TestKey, tokenOf } from './fixture.ts'

/** Receivers of one owner, so that a message costs that many deliveries. */
async function audience(services: Services, url: string, key: TestKey, size: number): Promise<Client[]> {
  return Promise.all(Array.from({ length: size }, () => connect(services, url, key)))
}

/** How many sends pass before the first is refused, and the id that the refusal names. */
async function sendUntilRefused(sender: Client, data: string): Promise<{ passed: number; refused?: string }> {
  for (let passed = 0; passed < 190; passed++) {
    sender.send({ type: 'send', id: `send ${passed}`, to: 'all', data })
    const answer = await sender.until(() =>
      sender.heard.find(frame => frame.type === 'sent' || frame.type === 'error'),
    )
    sender.heard.length = 0
    if (answer.type === 'error') {
      assert.equal(answer.code, 'rate_limited')
      return { passed, refused: answer.id }
    }
  }
  return { passed: 190 }
}

describe('what one owner may cause', { timeout: 60_000 }, () => {
  test('5000 deliveries pass at once, then 1000 a second, and others have their own', async t => {
    const { services, url, key, userId, hub, later } = await open('sqlite', t)
    await audience(services, url, key, 50)
    const sender = await connect(services, url, key)
    assert.deepEqual(await sendUntilRefused(sender, 'x'), { passed: 100, refused: 'send 100' })
    await assert.rejects(hub.sendTo(userId, 'all', 'x'), { code: 'rate_limited' })

    const { user } = await services.signIn('eve@example.com')
    const strangers = await audience(services, url, await makeKey(services, user.id), 2)
    strangers[0]!.send({ type: 'send', id: 'mine', to: 'all', data: 1 })
    assert.equal((await strangers[0]!.next('sent')).delivered, 1)

    await later(1000)
    // Who has any left may send once more, and owes the rest.
    assert.deepEqual(await sendUntilRefused(sender, 'x'), { passed: 20, refused: 'send 20' })
  })

  test('16 MiB of deliveries pass at once, then 4 MiB a second', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    await audience(services, url, key, 32)
    const sender = await connect(services, url, key)
    // With its head each is a frame of 64 KiB at most: 32 of them are just under 2 MiB.
    const data = 'x'.repeat(65_250)
    assert.equal((await sendUntilRefused(sender, data)).passed, 9)
    await later(1000)
    assert.ok([2, 3].includes((await sendUntilRefused(sender, data)).passed))
  })
})

test('a message that reaches nobody counts as one delivery', { timeout: 60_000 }, async t => {
  const { services, url, key, userId, hub } = await open('sqlite', t)
  await connect(services, url, key)
  for (let n = 0; n < 5000; n++) assert.equal(await hub.sendTo(userId, 'nobody', n), null)
  await assert.rejects(hub.sendTo(userId, 'nobody', 1), { code: 'rate_limited' })
})

describe('what all connections of one owner may cost', { timeout: 60_000 }, () => {
  test('unread messages of all connections count together, and who makes them too many is closed', async t => {
    const { services, url, key, userId, hub } = await open('sqlite', t, { maxUnreadBytesPerUser: 100_000 })
    const quick = await connect(services, url, key)
    const slow = await connect(services, url, key)
    slow.socket.pause()
    // Far below 1 MiB for one connection, so every message is written until a heartbeat ends it.
    for (let n = 0; hub.connectionCount === 2; n++) {
      assert.ok(n < 200)
      assert.equal(await hub.sendTo(userId, slow.id, 'x'.repeat(60_000)), 1)
      hub.tick()
    }
    slow.socket.resume()
    assert.equal(await slow.end(), '4429 slow_consumer')
    await quick.flush()
  })

  test('frames of many connections count together, large ones more, and others have their own', async t => {
    const { services, url, key, later } = await open('sqlite', t, { maxConnectionsPerUser: 100 })
    // 1000 at once, 200 a second: more than five connections can send by their own limits.
    const agents = await audience(services, url, key, 6)
    const isRefused = (agent: Client) => agent.heard.some(frame => frame.type === 'error')
    const flood = async (agent: Client) => {
      for (let n = 0; n < 190; n++) agent.send({ type: 'ping' })
      await agent.until(() => (agent.heard.length === 190 ? true : undefined))
    }
    for (const agent of agents) await flood(agent)
    assert.deepEqual(agents.map(isRefused), [false, false, false, false, false, true])

    const { user } = await services.signIn('eve@example.com')
    const stranger = await connect(services, url, await makeKey(services, user.id))
    await stranger.flush()

    await later(1000)
    const [one, other] = agents as [Client, Client]
    one.heard.length = 0
    // After a second 60 are left of 200; 7 messages of 60 KB count as 56.
    for (let n = 0; n < 7; n++) one.send({ type: 'send', id: `${n}`, to: 'nobody', data: 'x'.repeat(60_000) })
    for (let n = 0; n < 7; n++) await one.next('sent')
    other.heard.length = 0
    for (let n = 0; n < 5; n++) other.send({ type: 'ping' })
    await other.until(() => (other.heard.length === 5 ? true : undefined))
    assert.deepEqual(
      other.heard.map(frame => frame.type),
      ['pong', 'pong', 'pong', 'pong', 'error'],
    )
  })

  test('connects are limited, and who reconnects does not get its allowance anew', async t => {
    const { services, url, key, later } = await open('sqlite', t, { maxConnectionsPerUser: 100 })
    const token = await tokenOf(services, key)
    const connectOnce = async () => {
      const client = new Client(url, token)
      const first = await client.until(() => client.heard[0] ?? client.closed ?? undefined)
      client.socket.terminate()
      await client.end()
      return 'code' in first ? first.code : 'ready'
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

test('a node whose database is closed renews nobody, and after ten seconds has let everybody go with 1013', {
  timeout: 60_000,
}, async t => {
  const { services, url, key, hub, later } = await open('sqlite', t)
  const client = await connect(services, url, key)
  const [renewed, held] = [await tokenOf(services, key), await tokenOf(services, key)]
  await services.opened.close()
  await later(5000)
  client.send({ type: 'token', token: renewed })
  const waiting = new Client(url, held)
  await client.flush()
  await later(4999)
  await client.flush()
  assert.deepEqual([client.heard, waiting.heard], [[], []])
  await later(1)
  assert.equal(await client.end(), '1013 try_again_later')
  assert.equal(await waiting.end(), '1013 try_again_later')
  const late = new Client(url, held)
  await late.until(() => late.closed ?? late.refused ?? undefined)
  assert.ok(late.closed?.code === 1013 || late.refused?.status === 503)
  assert.equal(hub.connectionCount, 0)
})
