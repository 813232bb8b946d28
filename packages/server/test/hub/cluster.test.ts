import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createStorage } from '../../src/storage/database.ts'
import { postgresMissing } from '../support/engines.ts'
import { caller } from '../support/services.ts'
import { connect, makeKey, open, openHub } from './fixture.ts'

describe('two nodes on one PostgreSQL', { timeout: 60_000, skip: postgresMissing() }, () => {
  test('messages, lists, disconnects and revocations reach both, and a dead node’s connections are gone', async t => {
    const first = await open('postgres', t)
    const { services, key, userId } = first
    const storage = await createStorage(services.opened.config, services.log)
    const second = await openHub(services, t, {}, storage)
    const here = await connect(services, first.url, key)
    const there = await connect(services, second.url, key)
    const other = await makeKey(services, userId)
    const third = await connect(services, second.url, other)

    here.send({ type: 'send', id: '1', to: 'all', data: 'x'.repeat(30_000) })
    assert.equal((await here.next('sent')).delivered, 2)
    assert.equal((await there.next('message')).from, here.id)
    third.send({ type: 'send', id: '2', to: here.id, data: 2 })
    assert.equal((await third.next('sent')).delivered, 1)
    for (let n = 0; n < 50; n++) here.send({ type: 'send', id: `${n}`, to: there.id, data: n })
    for (let n = 0; n < 50; n++) assert.equal((await there.next('message')).data, n)
    assert.equal(await first.hub.sendTo(userId, other.id, 'hello'), 1)

    let listed = await first.hub.connections(userId)
    for (let tries = 0; listed.length < 3 && tries < 100; tries++) {
      await wait(20)
      listed = await first.hub.connections(userId)
    }
    assert.deepEqual(listed.map(row => row.connectionId).sort(), [here.id, there.id, third.id].sort())

    assert.equal(await first.hub.disconnect(userId, third.id), true)
    assert.equal(await third.end(), '1001 going_away')
    await services.apiKeys.revoke(userId, key.id, caller())
    assert.equal(await here.end(), '4410 revoked')
    assert.equal(await there.end(), '4410 revoked')

    await connect(services, second.url, other)
    for (let tries = 0; (await first.hub.connections(userId)).length !== 1 && tries < 100; tries++)
      await wait(20)
    assert.equal((await first.hub.connections(userId)).length, 1)
    await storage.close() // it dies without saying goodbye
    services.clock.advance(10_001)
    assert.deepEqual(await first.hub.connections(userId), [])
  })
})
