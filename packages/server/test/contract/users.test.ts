import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { AdministrativeUserChanges } from '../../src/users/user-store.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { address, aKey, aSession, aUser, insertUser, NOW, race, readAll, winners } from './fixtures.ts'

forEachEngine(engine => {
  test('a user is found by id and by address as it was stored', async t => {
    const { storage } = await openTestStorage(engine, t)
    const user = await insertUser(storage.store, { name: 'Ada ☃', role: 'admin' })
    assert.deepEqual(await storage.store.users.find(user.id), user)
    assert.deepEqual(await storage.store.users.findByEmail(user.email!), user)
    assert.equal(await storage.store.users.find(aUser().id), null)
  })

  test('several users are found by their ids at once, and unknown ids are left out', async t => {
    const { storage } = await openTestStorage(engine, t)
    const [ada, bob] = [await insertUser(storage.store), await insertUser(storage.store)]
    await storage.store.users.erase(bob.id, NOW)
    const found = await storage.store.users.findMany([ada.id, bob.id, aUser().id])
    assert.deepEqual(
      new Map(found.map(user => [user.id, user.email])),
      new Map([
        [ada.id, ada.email],
        [bob.id, null],
      ]),
    )
    assert.deepEqual(await storage.store.users.findMany([]), [])
  })

  test('of twenty concurrent sign-ups with one address exactly one creates an account', async t => {
    const testStorage = await openTestStorage(engine, t)
    const email = address('one@example.com')
    const outcomes = await race(testStorage, store => store.users.insert(aUser({ email })))
    assert.equal(winners(outcomes).length, 1)
  })

  test('a status changes only from the given statuses, once for twenty concurrent callers', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { id } = await insertUser(testStorage.storage.store)
    const outcomes = await race(testStorage, store => administrativeChanges(store).suspend(id, NOW))
    assert.equal(winners(outcomes).length, 1)
    assert.equal(await administrativeChanges(testStorage.storage.store).suspend(id, NOW), null)
  })

  test('erasing removes name and address, frees the address, and happens once', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { id, email } = await insertUser(testStorage.storage.store, { name: 'Ada', locale: 'de' })
    const erasedUsers = winners(await race(testStorage, store => store.users.erase(id, NOW)))
    assert.equal(erasedUsers.length, 1)
    const { status, name, email: erasedEmail, locale } = erasedUsers[0]!
    assert.deepEqual([status, name, erasedEmail, locale], ['deleted', null, null, null])
    assert.equal(await testStorage.storage.store.users.findByEmail(email!), null)
    assert.equal(await testStorage.storage.store.users.rename(id, 'Eve', NOW), null)
    assert.equal(await testStorage.storage.store.users.insert(aUser({ email })), true)
  })

  test('a language is kept as it was set, and also read with a session', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { id } = await insertUser(storage.store)
    assert.equal((await storage.store.users.setLocale(id, 'pt-BR', NOW))?.locale, 'pt-BR')
    const session = aSession(id)
    await storage.store.sessions.insert(session)
    assert.equal((await storage.store.sessions.findWithUser(session.id))?.user.locale, 'pt-BR')
    assert.equal((await storage.store.users.setLocale(id, null, NOW))?.locale, null)
    await storage.store.users.erase(id, NOW)
    assert.equal(await storage.store.users.setLocale(id, 'de', NOW), null)
  })

  test('a count taken under the owner’s row lock never exceeds its limit', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { id } = await insertUser(testStorage.storage.store)
    await race(testStorage, async store => {
      await store.users.lock(id)
      if ((await store.apiKeys.countActive(id, NOW, 100)) >= 5) return
      await store.apiKeys.insert(aKey(id))
    })
    assert.equal(await testStorage.storage.store.apiKeys.countActive(id, NOW, 100), 5)
  })

  test('paging lists every user once, newest first, also within one millisecond', async t => {
    const { storage } = await openTestStorage(engine, t)
    for (let i = 0; i < 7; i++) await insertUser(storage.store, { createdAt: NOW + (i >> 2) })
    const allUsers = await readAll(page => storage.store.users.list(page))
    assert.equal(new Set(allUsers.map(user => user.id)).size, 7)
    const sortedUsers = allUsers.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
    assert.deepEqual(allUsers, sortedUsers)
  })
})

/** The administrative operations, which the store's types offer in audited transactions only. */
function administrativeChanges({ users }: Store): AdministrativeUserChanges {
  return users as unknown as AdministrativeUserChanges
}
