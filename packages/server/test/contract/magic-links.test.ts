import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type pg from 'pg'
import { HOUR, MINUTE } from '../../src/clock.ts'
import type { Store } from '../../src/store.ts'
import { forEachEngine, openTestStorage, postgresMissing } from '../support/engines.ts'
import { withClient } from '../support/postgres.ts'
import { address, aLink, NOW, race, winners } from './fixtures.ts'

forEachEngine(engine => {
  test('a link is consumed once by twenty concurrent callers', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { magicLinks } = testStorage.storage.store
    const link = aLink()
    await magicLinks.insert(link)
    assert.deepEqual(await magicLinks.findByTokenHash(link.tokenHash), link)
    const outcomes = await race(testStorage, store => store.magicLinks.consume(link.id, NOW))
    assert.equal(winners(outcomes).length, 1)
    assert.equal((await magicLinks.find(link.id))!.usedAt, NOW)
  })

  test('a link is valid until its last millisecond', async t => {
    const { storage } = await openTestStorage(engine, t)
    const link = aLink({ expiresAt: NOW + 5 })
    await storage.store.magicLinks.insert(link)
    assert.equal(await storage.store.magicLinks.consume(link.id, NOW + 5), null)
    assert.ok(await storage.store.magicLinks.consume(link.id, NOW + 4))
  })

  test('consuming a link invalidates the other links of the same address only', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { magicLinks } = storage.store
    const [ada, eve] = [address('ada@example.com'), address('eve@example.com')]
    const [usedLink, otherLink, linkOfOtherAddress] = [
      aLink({ email: ada }),
      aLink({ email: ada }),
      aLink({ email: eve }),
    ]
    for (const link of [usedLink, otherLink, linkOfOtherAddress]) await magicLinks.insert(link)
    await magicLinks.consumeOthers(ada, usedLink.id, NOW)
    assert.equal(await magicLinks.consume(otherLink.id, NOW), null)
    assert.ok(await magicLinks.consume(usedLink.id, NOW))
    await magicLinks.consumeAllOf(eve, NOW)
    assert.equal(await magicLinks.consume(linkOfOtherAddress.id, NOW), null)
  })

  test('twenty concurrent codes use exactly the tries of one link', async t => {
    const testStorage = await openTestStorage(engine, t)
    const link = aLink()
    await testStorage.storage.store.magicLinks.insert(link)
    const outcomes = await race(testStorage, store => store.magicLinks.countCodeTry(link.id, 5))
    assert.deepEqual(
      winners(outcomes)
        .map(one => one.codeTries)
        .toSorted(),
      [1, 2, 3, 4, 5],
    )
  })

  test('of twenty concurrent sends exactly as many pass as the window allows', async t => {
    const testStorage = await openTestStorage(engine, t)
    const outcomes = await race(testStorage, (store, number) =>
      sendWithin(store, number % 2 ? ['a', 'b'] : ['b', 'a'], 3),
    )
    assert.equal(winners(outcomes).length, 3)
    const [history] = await testStorage.storage.transaction(async tx => {
      const lastSendNumbers = await tx.magicLinks.lockSendBuckets(['a'])
      assert.deepEqual([...lastSendNumbers], [['a', 3]])
      return tx.magicLinks.sendHistories(lastSendNumbers, new Map([['a', [1, 3, 4]]]))
    })
    assert.deepEqual(
      [...history!.nthLast],
      [
        [1, NOW],
        [3, NOW],
        [4, null],
      ],
    )
  })

  test('a send with a timestamp in the future counts from now, for the length of its window', async t => {
    const { storage } = await openTestStorage(engine, t)
    const lastSendAt = (now: number) =>
      storage.transaction(async tx => {
        const lastSendNumbers = await tx.magicLinks.lockSendBuckets(['a'])
        await tx.magicLinks.clampFutureSends(['a'], now)
        const [history] = await tx.magicLinks.sendHistories(lastSendNumbers, new Map([['a', [1]]]))
        return history!.nthLast.get(1)
      })
    assert.equal(await lastSendAt(NOW), null)
    await storage.transaction(async tx => {
      await tx.magicLinks.lockSendBuckets(['a'])
      await tx.magicLinks.recordSend(['a'], NOW + HOUR)
    })
    assert.equal(await lastSendAt(NOW), NOW)
    assert.equal(await lastSendAt(NOW + MINUTE), NOW)
  })

  test('a cleared or pruned bucket starts from zero', async t => {
    const { storage } = await openTestStorage(engine, t)
    const send = () => storage.transaction(tx => sendWithin(tx, ['a'], 2))
    assert.deepEqual([await send(), await send(), await send()], [true, true, false])
    await storage.store.magicLinks.clearSends('a')
    assert.deepEqual([await send(), await send(), await send()], [true, true, false])
    assert.equal(await storage.store.magicLinks.prune(NOW, NOW + 1, 100), 2)
    assert.deepEqual([await send(), await send(), await send()], [true, true, false])
  })
})

async function sendWithin(store: Store, buckets: string[], limit: number): Promise<boolean> {
  const lastSendNumbers = await store.magicLinks.lockSendBuckets(buckets)
  const histories = await store.magicLinks.sendHistories(
    lastSendNumbers,
    new Map(buckets.map(name => [name, [limit]])),
  )
  if (histories.some(history => history.nthLast.get(limit) !== null)) return false
  await store.magicLinks.recordSend(buckets, NOW)
  return true
}

describe('on postgres', { skip: postgresMissing() }, () => {
  test('counter rows are locked in the order of their names, independent of the order of the request', async t => {
    const { storage, config } = await openTestStorage('postgres', t)
    const url = (config.database as { url: string }).url
    const names = ['a', 'b', 'c']
    await storage.transaction(tx => tx.magicLinks.lockSendBuckets(names))
    await withClient(url, async holder => {
      await holder.query('begin')
      await holder.query("select 1 from send_buckets where bucket = 'b' for update")
      const lockingTransaction = storage.transaction(tx => tx.magicLinks.lockSendBuckets(['c', 'b', 'a']))
      await withClient(url, async observer => {
        await untilLockWait(observer)
        const unlockedRows = await observer.query('select bucket from send_buckets for update skip locked')
        assert.deepEqual(unlockedRows.rows, [{ bucket: 'c' }], 'the first row is locked, the last not yet')
      })
      await holder.query('commit')
      await lockingTransaction
    })
  })
})

async function untilLockWait(client: pg.Client): Promise<void> {
  const lockWaitQuery = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  while ((await client.query(lockWaitQuery)).rowCount === 0) await new Promise(setImmediate)
}
