import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MessageKind } from '../../src/outbox/message.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { address, aMessage, insertUser, NOW, race, winners } from './fixtures.ts'

forEachEngine(engine => {
  test('a message with an existing id is not queued again', async t => {
    const testStorage = await openTestStorage(engine, t)
    const message = aMessage()
    assert.equal(winners(await race(testStorage, store => store.outbox.insert(message))).length, 1)
    assert.deepEqual(await testStorage.storage.store.outbox.recentFor(message.recipient, 5), [message])
  })

  test('twenty concurrent dispatchers never lease the same message', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { outbox } = testStorage.storage.store
    for (let i = 0; i < 30; i++) await outbox.insert(aMessage())
    const leasedMessages = (await race(testStorage, store => store.outbox.lease(NOW, NOW + 100, 2))).flat()
    assert.equal(new Set(leasedMessages.map(message => message.id)).size, leasedMessages.length)
    assert.ok(leasedMessages.length > 0 && leasedMessages.every(message => message.attempts === 1))
    const remainingMessages = await outbox.lease(NOW, NOW + 100, 100)
    assert.equal(leasedMessages.length + remainingMessages.length, 30)
    assert.equal((await outbox.lease(NOW + 99, NOW + 200, 100)).length, 0)
    assert.equal((await outbox.lease(NOW + 100, NOW + 200, 100)).length, 30)
  })

  test('messages that expire are leased before notices that were queued earlier, those that expire first before all', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { outbox } = storage.store
    const [later, sooner] = [aMessage({ sendBefore: NOW + 200 }), aMessage({ sendBefore: NOW + 100 })]
    const notices = [0, 1, 2].map(age => aMessage({ sendBefore: null, nextAttemptAt: NOW - age }))
    for (const message of [...notices, later, sooner]) await outbox.insert(message)
    const leaseIds = async (limit: number) => (await outbox.lease(NOW, NOW + 1000, limit)).map(({ id }) => id)
    assert.deepEqual(await leaseIds(1), [sooner.id])
    assert.deepEqual(await leaseIds(2), [later.id, notices[2]!.id])
    assert.deepEqual((await leaseIds(10)).sort(), [notices[0]!.id, notices[1]!.id].sort())
  })

  test('a failed or expired message is queued again until the last instant at which it may be sent', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { outbox } = storage.store
    for (const state of ['failed', 'expired'] as const) {
      const settledFields = { state, settledAt: NOW - 1, attempts: 3 }
      const [notice, invitation] = [aMessage(settledFields), aMessage({ ...settledFields, sendBefore: NOW })]
      for (const message of [notice, invitation]) await outbox.insert(message)
      assert.equal(await outbox.requeue(invitation.id, NOW + 1), false)
      assert.deepEqual(await outbox.find(invitation.id), invitation)
      assert.equal(await outbox.requeue(invitation.id, NOW), true)
      assert.equal((await outbox.find(invitation.id))!.sendBefore, NOW)
      assert.equal(await outbox.requeue(notice.id, NOW + 1), true)
      assert.equal((await outbox.find(notice.id))!.state, 'queued')
    }
  })

  test('notices of one kind to a user are counted since an instant, up to a number', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { outbox } = storage.store
    const [ada, bob] = [await insertUser(storage.store), await insertUser(storage.store)]
    const insert = (userId: string, kind: MessageKind, createdAt: number) =>
      outbox.insert(aMessage({ userId, kind, createdAt }))
    for (const createdAt of [NOW - 1, NOW, NOW + 1, NOW + 2])
      await insert(ada.id, 'api_key_expiring', createdAt)
    await insert(ada.id, 'api_key_limit', NOW + 1)
    await insert(bob.id, 'api_key_expiring', NOW + 1)
    assert.equal(await outbox.countNotices(ada.id, 'api_key_expiring', NOW, 10), 2)
    assert.equal(await outbox.countNotices(ada.id, 'api_key_expiring', NOW - 2, 3), 3)
    assert.equal(await outbox.countNotices(ada.id, 'welcome', NOW, 10), 0)
  })

  test('leases of a dead node, and leases that a live node has lost, are released at once', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { outbox, presence } = storage.store
    const [alive, dead] = ['node-alive', 'node-dead']
    await presence.heartbeat({
      id: alive,
      startedAt: NOW,
      seenAt: NOW,
      version: '1',
      sealsEvents: true,
      relayVersion: 1,
    })
    await presence.heartbeat({
      id: dead,
      startedAt: NOW,
      seenAt: NOW - 10_001,
      version: '1',
      sealsEvents: true,
      relayVersion: 1,
    })
    for (let i = 0; i < 2; i++) await outbox.insert(aMessage())
    const [leasedByLiveNode] = await outbox.lease(NOW, NOW + 1000, 1, alive)
    const [leasedByDeadNode] = await outbox.lease(NOW, NOW + 1000, 1, dead)
    assert.equal(await outbox.releaseAbandoned(NOW - 10_000), 1)
    const releasedMessages = await outbox.lease(NOW, NOW + 1000, 10, alive)
    assert.deepEqual(
      releasedMessages.map(message => message.id),
      [leasedByDeadNode!.id],
    )
    assert.notEqual(leasedByLiveNode!.id, leasedByDeadNode!.id)
    assert.equal(await outbox.releaseUnknown(alive, [leasedByLiveNode!.id]), 1)
    assert.equal(await outbox.releaseUnknown(alive, [leasedByLiveNode!.id]), 0)
  })

  test('settling erases the content, and fails with a lost lease', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { outbox } = storage.store
    const message = aMessage()
    await outbox.insert(message)
    await outbox.lease(NOW, NOW + 100, 1)
    const outcome = { state: 'sent', at: NOW + 5, error: null } as const
    assert.equal(await outbox.settle(message.id, NOW + 99, outcome), false)
    assert.equal(await outbox.settle(message.id, NOW + 100, outcome), true)
    assert.equal(await outbox.settle(message.id, NOW + 100, outcome), false)
    const [settled] = await outbox.recentFor(message.recipient, 1)
    assert.deepEqual([settled!.state, settled!.sealedContent, settled!.settledAt], ['sent', null, NOW + 5])
    assert.equal(await outbox.prune(NOW + 6, 10), 1)
  })

  test('a released message is due at its time, and the next due time includes leases', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { outbox } = storage.store
    assert.equal(await outbox.nextDue(), null)
    const message = aMessage()
    await outbox.insert(message)
    assert.equal(await outbox.nextDue(), NOW)
    assert.deepEqual(await outbox.depth(NOW), { queued: 1, oldestDueAt: NOW })
    await outbox.lease(NOW, NOW + 100, 1)
    assert.equal(await outbox.nextDue(), NOW + 100)
    assert.equal(await outbox.retryLater(message.id, NOW + 100, NOW + 50, 'later'), true)
    assert.equal(await outbox.nextDue(), NOW + 50)
    assert.deepEqual(
      await outbox.depth(NOW),
      { queued: 1, oldestDueAt: NOW },
      'the message has waited since NOW',
    )
    assert.equal((await outbox.lease(NOW + 49, NOW + 99, 1)).length, 0)
    assert.equal((await outbox.lease(NOW + 50, NOW + 99, 1))[0]!.attempts, 2)
  })

  test('the inbox keeps the newest two hundred mails', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { inbox } = storage.store
    const mail = (number: number) => ({
      id: `mail-${number}`,
      recipient: address(number % 2 ? 'ada@example.com' : 'bob@example.com'),
      sealedMail: 'sealed',
      createdAt: NOW + number,
    })
    await storage.transaction(async tx => {
      for (let i = 0; i < 203; i++) await tx.inbox.insert(mail(i), 200)
    })
    await inbox.insert(mail(202), 200)
    const allMails = await inbox.list(null, 500)
    assert.equal(allMails.length, 200)
    assert.deepEqual(allMails[0], mail(202))
    assert.equal((await inbox.list(address('ada@example.com'), 500)).length, 100)
    assert.equal(await inbox.find('mail-0'), null)
    assert.equal(await inbox.prune(NOW + 202), 199)
  })
})
