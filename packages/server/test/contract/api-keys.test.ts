import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { aKey, BY_SERVICE, insertUser, NOW, race, readAll, winners } from './fixtures.ts'

forEachEngine(engine => {
  test('a key is found by its hash with the status of its owner, also in a batch', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { apiKeys, users } = storage.store
    const user = await insertUser(storage.store)
    const keys = Array.from({ length: 30 }, () => aKey(user.id))
    for (const key of keys) await apiKeys.insert(key)
    await users.suspend(user.id, NOW)
    const keysByHash = await Promise.all(keys.map(key => apiKeys.findByHash(key.keyHash)))
    assert.deepEqual(
      keysByHash,
      keys.map(({ lastUsedFrom: _, ...key }) => ({ ...key, ownerStatus: 'suspended' })),
    )
    assert.equal(await apiKeys.findByHash('unknown'), null)
    const foundKeys = await apiKeys.findMany([keys[0]!.id, newId(NOW), keys[1]!.id])
    assert.deepEqual(new Set(foundKeys.map(key => key.id)), new Set([keys[0]!.id, keys[1]!.id]))
    assert.deepEqual(await storage.transaction(tx => tx.apiKeys.findByHash(keys[0]!.keyHash)), keysByHash[0])
  })

  test('a revocation is visible to the next lookup on every node', async t => {
    const testStorage = await openTestStorage(engine, t)
    const otherNode = await testStorage.reopen()
    const { apiKeys } = testStorage.storage.store
    const key = aKey((await insertUser(testStorage.storage.store)).id)
    await apiKeys.insert(key)
    assert.equal((await otherNode.store.apiKeys.findByHash(key.keyHash))!.revokedAt, null)
    await apiKeys.revoke(key.id, NOW, BY_SERVICE)
    assert.equal((await otherNode.store.apiKeys.findByHash(key.keyHash))!.revokedAt, NOW)
  })

  test('a key is revoked once, and permanently', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { apiKeys } = testStorage.storage.store
    const user = await insertUser(testStorage.storage.store)
    const [key, otherKey] = [aKey(user.id), aKey(user.id)]
    await apiKeys.insert(key)
    await apiKeys.insert(otherKey)
    const outcomes = await race(testStorage, (store, number) =>
      store.apiKeys.revoke(key.id, NOW + number, BY_SERVICE),
    )
    assert.equal(winners(outcomes).length, 1)
    assert.deepEqual(await apiKeys.revokeAllOf(user.id, NOW), [otherKey.id])
  })

  test('of twenty concurrent rotations one sets the successor, and the expiry only moves earlier', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { apiKeys } = testStorage.storage.store
    const user = await insertUser(testStorage.storage.store)
    const key = aKey(user.id)
    const expiringKey = aKey(user.id, { expiresAt: NOW + 10 })
    await apiKeys.insert(key)
    await apiKeys.insert(expiringKey)
    const outcomes = await race(testStorage, store =>
      store.apiKeys.replace(key.id, newId(NOW), NOW + 50, NOW, null),
    )
    assert.equal(winners(outcomes).length, 1)
    assert.equal(winners(outcomes)[0]!.expiresAt, NOW + 50)
    assert.equal(
      (await apiKeys.replace(expiringKey.id, newId(NOW), NOW + 50, NOW, null))!.expiresAt,
      NOW + 10,
    )
  })

  test('an expired or revoked key is not replaced', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { apiKeys } = storage.store
    const user = await insertUser(storage.store)
    const expiredKey = aKey(user.id, { expiresAt: NOW })
    const revokedKey = aKey(user.id, { revokedAt: NOW })
    await apiKeys.insert(expiredKey)
    await apiKeys.insert(revokedKey)
    assert.equal(await apiKeys.replace(expiredKey.id, newId(NOW), NOW + 5, NOW, null), null)
    assert.equal(await apiKeys.replace(revokedKey.id, newId(NOW), NOW + 5, NOW, null), null)
  })

  test('keys are listed by status to the millisecond, and only to their owner', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { apiKeys } = storage.store
    const [user, stranger] = [await insertUser(storage.store), await insertUser(storage.store)]
    const activeKey = aKey(user.id, { expiresAt: NOW + 1 })
    const expiredKey = aKey(user.id, { expiresAt: NOW })
    const revokedKey = aKey(user.id, { expiresAt: NOW, revokedAt: NOW })
    for (const key of [activeKey, expiredKey, revokedKey]) await apiKeys.insert(key)
    const list = async (status: 'active' | 'expired' | 'revoked' | null, userId = user.id) =>
      (await readAll(page => apiKeys.list(userId, status, NOW, page))).map(key => key.id)
    assert.deepEqual(await list('active'), [activeKey.id])
    assert.deepEqual(await list('expired'), [expiredKey.id])
    assert.deepEqual(await list('revoked'), [revokedKey.id])
    assert.equal((await list(null)).length, 3)
    assert.deepEqual(await list(null, stranger.id), [])
    assert.equal(await apiKeys.findOwned(stranger.id, activeKey.id), null)
    assert.equal(await apiKeys.update(stranger.id, activeKey.id, { name: 'mine' }, NOW), null)
    assert.equal((await apiKeys.update(user.id, activeKey.id, { name: null }, NOW))!.name, null)
    assert.deepEqual(
      (await apiKeys.update(user.id, activeKey.id, { allowedNetworks: [] }, NOW))!.allowedNetworks,
      [],
    )
  })

  test('the last use only moves forward, and updating it changes nothing else', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { apiKeys } = testStorage.storage.store
    const user = await insertUser(testStorage.storage.store)
    const keys = Array.from({ length: 5 }, () => aKey(user.id))
    for (const key of keys) await apiKeys.insert(key)
    await race(testStorage, (store, number) =>
      store.apiKeys.recordUse(new Map(keys.toReversed().map(key => [key.id, useAt(NOW + number)]))),
    )
    await apiKeys.recordUse(new Map([[keys[0]!.id, useAt(NOW)]]))
    const { at, from } = useAt(NOW + 19)
    const usedKey = { ...keys[0], lastUsedAt: at, lastUsedFrom: from }
    assert.deepEqual(await apiKeys.findOwned(user.id, keys[0]!.id), usedKey)
    await apiKeys.recordUse(new Map([[keys[0]!.id, { at: at + 1, from: { ...from, client: null } }]]))
    assert.deepEqual((await apiKeys.findOwned(user.id, keys[0]!.id))!.lastUsedFrom, { ...from, client: null })
  })
})

function useAt(at: number) {
  return { at, from: { network: `network ${at - NOW}`, client: `client ${at - NOW}` } }
}
