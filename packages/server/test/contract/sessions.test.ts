import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { aSession, BY_SERVICE, insertUser, NOW, race, readAll, winners } from './fixtures.ts'

forEachEngine(engine => {
  test('a session is read with its owner', async t => {
    const { storage } = await openTestStorage(engine, t)
    const user = await insertUser(storage.store, { name: 'Ada' })
    const session = aSession(user.id, { retryKeys: ['', 'abc'] })
    await storage.store.sessions.insert(session)
    assert.deepEqual(await storage.store.sessions.find(session.id), session)
    assert.deepEqual(await storage.store.sessions.findWithUser(session.id), { session, user })
    assert.deepEqual(await storage.transaction(tx => tx.sessions.findWithUser(session.id)), { session, user })
    assert.equal(await storage.store.sessions.findWithUser(user.id), null)
  })

  test('of twenty concurrent refreshes with one token one rotates it', async t => {
    const testStorage = await openTestStorage(engine, t)
    const session = aSession((await insertUser(testStorage.storage.store)).id)
    await testStorage.storage.store.sessions.insert(session)
    const outcomes = await race(testStorage, (store, number) =>
      store.sessions.rotate(session.id, 1, { at: NOW + 1, idleSince: 0, retryKeys: [`${number}`] }),
    )
    const [winner] = winners(outcomes)
    assert.equal(winners(outcomes).length, 1)
    assert.equal(winner!.counter, 2)
    assert.deepEqual(await testStorage.storage.store.sessions.find(session.id), winner)
  })

  test('an ended, idle or expired session is not rotated', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { sessions } = storage.store
    const { id: userId } = await insertUser(storage.store)
    const change = { at: NOW + 10, idleSince: NOW, retryKeys: [] }
    // In each state, one value alone makes the session not live.
    const deadStates = [
      { endedAt: NOW + 5, lastUsedAt: NOW + 5 },
      { lastUsedAt: NOW },
      { lastUsedAt: NOW + 5, expiresAt: NOW + 10 },
    ]
    for (const state of deadStates) {
      const session = aSession(userId, state)
      await sessions.insert(session)
      assert.equal(await sessions.rotate(session.id, 1, change), null)
    }
    const liveSession = aSession(userId, { lastUsedAt: NOW + 1, expiresAt: NOW + 11 })
    await sessions.insert(liveSession)
    assert.ok(await sessions.rotate(liveSession.id, 1, change))
  })

  test('the first end of a session is kept, and ending all but one leaves that one', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { sessions } = testStorage.storage.store
    const { id: userId } = await insertUser(testStorage.storage.store)
    const [first, second, third] = [aSession(userId), aSession(userId), aSession(userId)]
    for (const session of [first, second, third]) await sessions.insert(session)
    const endResults = await race(testStorage, store =>
      store.sessions.end(first.id, 'reuse', NOW, BY_SERVICE),
    )
    assert.equal(winners(endResults).length, 1)
    assert.deepEqual(await sessions.endAllOf(userId, 'revoked', second.id, { at: NOW + 1, caller: null }), [
      third.id,
    ])
    assert.equal((await sessions.find(first.id))!.endedBy, 'reuse')
  })

  test('the last use of a session only moves forward', async t => {
    const { storage } = await openTestStorage(engine, t)
    const session = aSession((await insertUser(storage.store)).id)
    await storage.store.sessions.insert(session)
    await storage.store.sessions.touch(session.id, NOW + 5)
    await storage.store.sessions.touch(session.id, NOW + 1)
    assert.equal((await storage.store.sessions.find(session.id))!.lastUsedAt, NOW + 5)
  })

  test('only live sessions are listed, each once, and only ended ones are pruned', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { sessions } = storage.store
    const { id: userId } = await insertUser(storage.store)
    for (let i = 0; i < 5; i++) await sessions.insert(aSession(userId))
    await sessions.insert(aSession(userId, { endedAt: NOW }))
    await sessions.insert(aSession(userId, { lastUsedAt: NOW - 1 }))
    const liveSessions = await readAll(page => sessions.listLive(userId, NOW, NOW - 1, page))
    assert.equal(new Set(liveSessions.map(session => session.id)).size, 5)
    assert.equal(await sessions.prune(NOW, 10), 0)
    assert.equal(await sessions.prune(NOW + 1, 10), 1)
  })
})
