import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, HOUR } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { noUsage, type UsageCounts, type UsageRow, usageRows } from '../../src/usage/usage.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { insertUser, NOW, race } from './fixtures.ts'

function rows(userId: string, keyId: string | null, at: number, counts: Partial<UsageCounts>): UsageRow[] {
  return usageRows(userId, keyId, at, { ...noUsage(), ...counts })
}

forEachEngine(engine => {
  test('counts of two nodes add up exactly, for key and owner, by hour and by day', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { store } = testStorage.storage
    const [userId, keyId] = [newId(NOW), newId(NOW)]
    const counts = {
      exchanges: 1,
      apiCalls: 2,
      introspections: 3,
      connections: 4,
      connectedMs: 5,
      messagesSent: 6,
      messagesReceived: 7,
      charged: 8,
      refused: { api_key_expired: 9, network_not_allowed: 10 },
    }
    // Further ids, with which the rows do not fit into one statement.
    const otherIds = Array.from({ length: 26 }, () => newId(NOW))
    await race(testStorage, (tx, number) =>
      tx.usage.add(
        [...otherIds, keyId]
          .flatMap(id => usageRows(id === keyId ? userId : id, id, NOW, counts))
          .sort(() => (number % 2 ? 1 : -1)),
      ),
    )
    const twentyfoldCounts = {
      exchanges: 20,
      apiCalls: 40,
      introspections: 60,
      connections: 80,
      connectedMs: 100,
      messagesSent: 120,
      messagesReceived: 140,
      charged: 160,
      refused: { api_key_expired: 180, network_not_allowed: 200 },
    }
    for (const id of [keyId, null]) {
      for (const unit of ['hour', 'day'] as const) {
        const start = unit === 'hour' ? NOW : NOW - (NOW % DAY)
        assert.deepEqual(await store.usage.read({ userId, keyId: id }, unit, start, start + 1), [
          { ...twentyfoldCounts, userId, keyId: id, unit, start },
        ])
      }
    }
  })

  test('of twenty concurrent writes of the same flush one adds it, and an earlier flush is ignored', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { usage } = testStorage.storage.store
    assert.equal(await usage.lastFlush('a'), 0)
    const outcomes = await race(testStorage, tx => tx.usage.recordFlush('a', 7, NOW))
    assert.equal(outcomes.filter(Boolean).length, 1)
    assert.equal(await usage.lastFlush('a'), 7)
    assert.equal(await usage.recordFlush('a', 6, NOW), false)
    assert.equal(await usage.recordFlush('b', 1, NOW), true)
    assert.equal(await usage.recordFlush('a', 8, NOW), true)
    assert.equal(await usage.pruneFlushes(NOW + 1, 1), 1)
    assert.equal(await usage.pruneFlushes(NOW + 1, 10), 1)
  })

  test('a report has the buckets of its range in order, and no other user’s', async t => {
    const { storage } = await openTestStorage(engine, t)
    const [userId, keyId] = [newId(NOW), newId(NOW)]
    const exchangesByHour = async (of: { userId: string; keyId: string | null }) =>
      (await storage.store.usage.read(of, 'hour', NOW, NOW + 2 * HOUR)).map(row => [row.start, row.exchanges])
    await storage.transaction(async tx => {
      for (const hour of [2, 1, 0, -1])
        await tx.usage.add(rows(userId, keyId, NOW + hour * HOUR, { exchanges: 1 }))
      await tx.usage.add(rows(userId, null, NOW, { apiCalls: 1 }))
      await tx.usage.add(rows(newId(NOW), newId(NOW), NOW, { exchanges: 5 }))
    })
    const hoursInRange = [
      [NOW, 1],
      [NOW + HOUR, 1],
    ]
    assert.deepEqual(await exchangesByHour({ userId, keyId }), hoursInRange)
    assert.deepEqual(await exchangesByHour({ userId, keyId: null }), hoursInRange)
    assert.deepEqual(await exchangesByHour({ userId: newId(NOW), keyId }), [])
  })

  test('outdated buckets are deleted in batches, hours and days by their own age', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { usage } = storage.store
    const refusedCounts = { api_key_expired: 1 }
    const midnight = NOW - (NOW % DAY)
    await storage.transaction(async tx => {
      for (let n = 0; n < 5; n++)
        await tx.usage.add(rows(newId(NOW), newId(NOW), midnight - n * DAY, { refused: refusedCounts }))
    })
    const outdatedBefore = { hour: midnight - DAY, day: midnight - 2 * DAY }
    // Each of the two tables has 3 × 2 outdated rows of hours and 2 × 2 of days; a batch has at most three of each.
    assert.equal(await usage.prune(outdatedBefore, 3), 12)
    assert.equal(await usage.prune(outdatedBefore, 100), 8)
    assert.equal(await usage.prune(outdatedBefore, 100), 0)
  })

  test('the usage of deleted accounts is deleted, in batches, and no other', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    const [erasedUser, recentlyErasedUser, liveUser] = [
      await insertUser(store),
      await insertUser(store),
      await insertUser(store),
    ]
    await storage.transaction(async tx => {
      for (const { id } of [erasedUser!, recentlyErasedUser!, liveUser!])
        for (let hour = 0; hour < 3; hour++)
          await tx.usage.add(
            rows(id, newId(NOW), NOW + hour * HOUR, { exchanges: 1, refused: { api_key_expired: 1 } }),
          )
      await tx.users.erase(erasedUser!.id, NOW)
      await tx.users.erase(recentlyErasedUser!.id, NOW + 1)
    })
    const hoursOf = async (userId: string) =>
      (await store.usage.read({ userId, keyId: null }, 'hour', NOW, NOW + DAY)).length
    let removedCount = 0
    for (let round = 0; round < 10; round++) {
      const removedRows = await store.usage.pruneOfDeletedOwners(NOW + 1, 5)
      assert.ok(removedRows <= 10)
      removedCount += removedRows
    }
    // Rows in each of `usage_counts` and `usage_refusals`: three hours and one day of the erased person's total, and an
    // hour and a day of each of the person's three keys.
    assert.equal(removedCount, 2 * (3 + 1 + 3 + 3))
    assert.deepEqual(
      [await hoursOf(erasedUser!.id), await hoursOf(recentlyErasedUser!.id), await hoursOf(liveUser!.id)],
      [0, 3, 3],
    )
  })
})
