import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, HOUR } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { noUsage, type UsageCounts, type UsageRow, usageRows } from '../../src/usage/usage.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { insertUser, NOW, race } from './fixtures.ts'

/** The rows of one use of a key. */
function rows(userId: string, keyId: string | null, at: number, counts: Partial<UsageCounts>): UsageRow[] {
  return usageRows(userId, keyId, at, { ...noUsage(), ...counts })
}

forEachEngine(engine => {
  test('counts of two nodes add up exactly, for key and owner, by hour and by day', async t => {
    const opened = await openTestStorage(engine, t)
    const { store } = opened.storage
    const [userId, keyId] = [newId(NOW), newId(NOW)]
    const one = {
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
    // Makes more rows than fit into one statement.
    const others = Array.from({ length: 26 }, () => newId(NOW))
    await race(opened, (tx, number) =>
      tx.usage.add(
        [...others, keyId]
          .flatMap(id => usageRows(id === keyId ? userId : id, id, NOW, one))
          .sort(() => (number % 2 ? 1 : -1)),
      ),
    )
    const twentyfold = {
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
          { ...twentyfold, userId, keyId: id, unit, start },
        ])
      }
    }
  })

  test('of twenty concurrent writes of the same flush one adds it, and an earlier flush is ignored', async t => {
    const opened = await openTestStorage(engine, t)
    const { usage } = opened.storage.store
    assert.equal(await usage.lastFlush('a'), 0)
    const won = await race(opened, tx => tx.usage.recordFlush('a', 7, NOW))
    assert.equal(won.filter(Boolean).length, 1)
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
    const read = async (of: { userId: string; keyId: string | null }) =>
      (await storage.store.usage.read(of, 'hour', NOW, NOW + 2 * HOUR)).map(row => [row.start, row.exchanges])
    await storage.transaction(async tx => {
      for (const hour of [2, 1, 0, -1])
        await tx.usage.add(rows(userId, keyId, NOW + hour * HOUR, { exchanges: 1 }))
      await tx.usage.add(rows(userId, null, NOW, { apiCalls: 1 }))
      await tx.usage.add(rows(newId(NOW), newId(NOW), NOW, { exchanges: 5 }))
    })
    const both = [
      [NOW, 1],
      [NOW + HOUR, 1],
    ]
    assert.deepEqual(await read({ userId, keyId }), both)
    assert.deepEqual(await read({ userId, keyId: null }), both)
    assert.deepEqual(await read({ userId: newId(NOW), keyId }), [])
  })

  test('outdated buckets are deleted in batches, hours and days by their own age', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { usage } = storage.store
    const refused = { api_key_expired: 1 }
    const midnight = NOW - (NOW % DAY)
    await storage.transaction(async tx => {
      for (let n = 0; n < 5; n++)
        await tx.usage.add(rows(newId(NOW), newId(NOW), midnight - n * DAY, { refused }))
    })
    const outdated = { hour: midnight - DAY, day: midnight - 2 * DAY }
    // Three times two rows of hours, two times two of days, in both tables.
    assert.equal(await usage.prune(outdated, 3), 12)
    assert.equal(await usage.prune(outdated, 100), 8)
    assert.equal(await usage.prune(outdated, 100), 0)
  })

  test('the usage of deleted accounts is deleted, in batches, and no other', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    const [gone, recent, alive] = [await insertUser(store), await insertUser(store), await insertUser(store)]
    await storage.transaction(async tx => {
      for (const { id } of [gone!, recent!, alive!])
        for (let hour = 0; hour < 3; hour++)
          await tx.usage.add(
            rows(id, newId(NOW), NOW + hour * HOUR, { exchanges: 1, refused: { api_key_expired: 1 } }),
          )
      await tx.users.erase(gone!.id, NOW)
      await tx.users.erase(recent!.id, NOW + 1)
    })
    const hoursOf = async (userId: string) =>
      (await store.usage.read({ userId, keyId: null }, 'hour', NOW, NOW + DAY)).length
    let removed = 0
    for (let round = 0; round < 10; round++) {
      const some = await store.usage.pruneOfDeletedOwners(NOW + 1, 5)
      assert.ok(some <= 10)
      removed += some
    }
    // Three hours and one day of the person, and three hours and days of three keys; both tables have them.
    assert.equal(removed, 2 * (3 + 1 + 3 + 3))
    assert.deepEqual(
      [await hoursOf(gone!.id), await hoursOf(recent!.id), await hoursOf(alive!.id)],
      [0, 3, 3],
    )
  })
})
