import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HOUR, SECOND } from '../../src/clock.ts'
import { until } from '../support/patience.ts'
import { caller } from '../support/services.ts'
import { Client, connect, makeKey, open, openHub, tokenOf } from './fixture.ts'

describe('usage of the hub', () => {
  test('connections and their time count for the key while they are open, up to the last heartbeat, and the rest when they close', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    await connect(services, url, key)
    const usageOfKey = async () => {
      await services.meter.flush()
      const { connections, connectedMs } = (await services.usage.ofKey(key.userId, key.id)).at(-1)!
      return { connections, connectedMs }
    }
    assert.deepEqual(await usageOfKey(), { connections: 2, connectedMs: 0 })
    await later(2 * SECOND)
    assert.deepEqual(await usageOfKey(), { connections: 2, connectedMs: 4 * SECOND })
    await later(1500)
    assert.deepEqual(
      await usageOfKey(),
      { connections: 2, connectedMs: 4 * SECOND },
      'counted every two seconds',
    )
    await services.apiKeys.revoke(key.userId, key.id, caller())
    assert.equal(await client.end(), '4410 revoked')
    assert.deepEqual(await usageOfKey(), { connections: 2, connectedMs: 7 * SECOND })
  })

  test('the time of a connection counts up to the moment in which it breaks', async t => {
    const { services, url, hub, key, later } = await open('sqlite', t)
    const client = await connect(services, url, key)
    await later(2 * SECOND)
    services.clock.advance(1500)
    client.socket.terminate()
    await until('it is held', () => hub.connectionCount === 0)
    services.clock.advance(1000)
    await services.meter.flush()
    assert.equal((await services.usage.ofKey(key.userId, key.id)).at(-1)!.connectedMs, 3500)
  })

  test('the time of a connection goes to the hours in which it was open', async t => {
    const { services, url, key, later } = await open('sqlite', t)
    await later(HOUR - 1000)
    await connect(services, url, key)
    await later(999)
    await later(3 * SECOND + 1)
    await services.meter.flush()
    const hourlyBuckets = await services.usage.ofKey(key.userId, key.id, { bucket: 'hour' })
    assert.deepEqual(
      hourlyBuckets.slice(-2).map(({ connections, connectedMs }) => [connections, connectedMs]),
      [
        [1, SECOND],
        [0, 3 * SECOND],
      ],
    )
  })

  test('messages count for the key that sends and for each that receives, on both nodes, and refused ones do not', async t => {
    const { services, url, key, userId } = await open('sqlite', t)
    const otherNode = await openHub(services, t)
    const otherKey = await makeKey(services, userId)
    const muteKey = await makeKey(services, userId, { scopes: ['agent:connect'] })
    const sender = await connect(services, url, key)
    const receivers = [
      await connect(services, url, otherKey),
      await connect(services, otherNode.url, otherKey),
    ]
    const mutedAgent = await connect(services, url, muteKey)
    sender.send({ type: 'send', id: '1', to: otherKey.id, data: 'both' })
    assert.equal((await sender.next('sent')).delivered, 2)
    for (const receiver of receivers) await receiver.next('message')
    sender.send({ type: 'send', id: '2', to: receivers[0]!.id, data: 'one' })
    await sender.next('sent')
    sender.send({ type: 'send', id: '3', to: 'nowhere', data: 'none' })
    await sender.next('sent')
    mutedAgent.send({ type: 'send', id: '4', to: 'all', data: 'refused' })
    assert.equal((await mutedAgent.next('error')).code, 'insufficient_scope')
    await services.meter.flush()
    const messageCounts = async (keyId: string | null) => {
      const buckets = keyId ? services.usage.ofKey(userId, keyId) : services.usage.ofUser(userId)
      const { messagesSent, messagesReceived } = (await buckets).at(-1)!
      return [messagesSent, messagesReceived]
    }
    assert.deepEqual(await messageCounts(key.id), [3, 0])
    assert.deepEqual(await messageCounts(otherKey.id), [0, 3])
    assert.deepEqual(await messageCounts(muteKey.id), [0, 0])
    assert.deepEqual(await messageCounts(null), [3, 3])
  })

  test('after a renewal to another key the time counts for that one', async t => {
    const { services, url, key, userId, later } = await open('sqlite', t)
    const nextKey = await makeKey(services, userId)
    const client = await connect(services, url, key)
    await later(1000)
    client.send({ type: 'token', token: await tokenOf(services, nextKey) })
    await client.next('token_accepted')
    await later(5000)
    await services.meter.flush()
    const connectedMsOf = async (id: string) => (await services.usage.ofKey(userId, id)).at(-1)!.connectedMs
    assert.deepEqual([await connectedMsOf(key.id), await connectedMsOf(nextKey.id)], [1000, 5000])
  })

  test('a connect that is refused for its key counts as a refusal, and as no connection', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    await services.apiKeys.revoke(key.userId, key.id, caller())
    assert.equal(await new Client(url, token).end(), '4410 revoked')
    await services.meter.flush()
    const { connections, refused } = (await services.usage.ofKey(key.userId, key.id)).at(-1)!
    assert.deepEqual({ connections, refused }, { connections: 0, refused: { api_key_revoked: 1 } })
  })
})
