import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { anEntry, insertUser, NOW, race, readAll, winners } from './fixtures.ts'

/** SQLite has no TRUNCATE, but executes a DELETE without a condition like one; that must be refused as well. */
const EMPTYING_STATEMENTS = {
  sqlite: ['delete from ledger_entries where true', 'delete from ledger_entries'],
  postgres: ['truncate ledger_entries', 'truncate users cascade', 'truncate only ledger_entries'],
}

forEachEngine(engine => {
  test('an entry changes the balance and contains the new balance', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { billing } = storage.store
    const { id } = await insertUser(storage.store)
    assert.equal(await billing.balance(id), 0)
    assert.equal((await billing.post(anEntry(id, 2_000_000)))!.balanceAfter, 2_000_000)
    const charge = await billing.post(anEntry(id, -1_250_000))
    assert.equal(charge!.balanceAfter, 750_000)
    assert.equal(await billing.balance(id), 750_000)
    assert.deepEqual(await billing.findEntry(charge!.id), charge)
    assert.deepEqual(await billing.findByCause(charge!.cause), charge)
  })

  test('the balance before an instant is that of the last entry before it', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { billing } = storage.store
    const { id } = await insertUser(storage.store)
    for (const [amount, at] of [
      [2_000_000, NOW],
      [-500_000, NOW + 10],
      [-250_000, NOW + 20],
    ] as const)
      await billing.post({ ...anEntry(id, amount), createdAt: at })
    const instants = [NOW, NOW + 1, NOW + 10, NOW + 11, NOW + 100]
    assert.deepEqual(
      await billing.balancesBefore(id, instants),
      [0, 2_000_000, 2_000_000, 1_500_000, 1_250_000],
    )
    assert.deepEqual(await billing.balancesBefore(id, []), [])
    const manyInstants = Array.from({ length: 400 }, (_, at) => NOW + at)
    assert.equal((await billing.balancesBefore(id, manyInstants)).length, 400)
  })

  test('twenty concurrent charges take exactly the balance and no more', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { billing } = testStorage.storage.store
    const { id } = await insertUser(testStorage.storage.store)
    await billing.post(anEntry(id, 5_500_000))
    const outcomes = await race(testStorage, store => store.billing.post(anEntry(id, -1_000_000)))
    assert.equal(winners(outcomes).length, 5)
    assert.equal(await billing.balance(id), 500_000)
    const { rows } = await billing.ledger(id, { limit: 100, after: null })
    assert.equal(rows.length, 6)
    assert.equal(
      rows.reduce((sum, row) => sum + row.amount, 0),
      500_000,
    )
  })

  test('the ledger lists entries in the order in which they changed the balance, also with equal timestamps or a slow clock', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { billing } = testStorage.storage.store
    const { id } = await insertUser(testStorage.storage.store)
    await billing.post(anEntry(id, 20_000_000))
    await race(testStorage, (store, number) =>
      store.billing.post(anEntry(id, -1_000_000, { createdAt: NOW - (number % 3) })),
    )
    const newestFirst = await readAll(page => billing.ledger(id, page))
    assert.equal(newestFirst.length, 21)
    for (const [index, { amount, balanceAfter }] of newestFirst.entries())
      assert.equal(balanceAfter - amount, newestFirst[index + 1]?.balanceAfter ?? 0)
  })

  test('an entry with the same cause is posted once, also for different users', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { billing } = testStorage.storage.store
    const users = [await insertUser(testStorage.storage.store), await insertUser(testStorage.storage.store)]
    const outcomes = await race(testStorage, (store, number) =>
      store.billing.post(anEntry(users[number % 2]!.id, 1_000_000, { cause: 'one' })),
    )
    assert.equal(winners(outcomes).length, 1)
    const balances = await Promise.all(users.map(user => billing.balance(user.id)))
    assert.deepEqual(balances.toSorted(), [0, 1_000_000])
  })

  test('the database refuses to change or delete a ledger entry', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { id } = await insertUser(storage.store)
    await storage.store.billing.post(anEntry(id, 1))
    const run = (sql: string) => storage.engine.connection.execute(sql, [])
    await assert.rejects(run('update ledger_entries set amount = 5'), /only grows/)
    await assert.rejects(run('delete from ledger_entries'), /only grows/)
    assert.equal((await storage.store.billing.ledger(id, { limit: 5, after: null })).rows[0]!.amount, 1)
  })

  test('the database refuses to truncate the ledger, also by CASCADE', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { id } = await insertUser(storage.store)
    await storage.store.billing.post(anEntry(id, 1))
    const run = (sql: string) => storage.engine.connection.execute(sql, [])
    for (const statement of EMPTYING_STATEMENTS[engine]) await assert.rejects(run(statement), /only grows/)
    assert.equal((await storage.store.billing.ledger(id, { limit: 5, after: null })).rows[0]!.amount, 1)
  })

  test('an address gets the trial credit once, and a user one subscription', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { id } = await insertUser(testStorage.storage.store)
    const claims = await race(testStorage, store => store.billing.claimTrialCredit('hash', id, NOW))
    assert.equal(winners(claims).length, 1)
    const subscription = { userId: id, plan: 'free', status: 'active', startedAt: NOW } as const
    const insertResults = await race(testStorage, store => store.billing.insertSubscription(subscription))
    assert.equal(winners(insertResults).length, 1)
    assert.deepEqual(await testStorage.storage.store.billing.subscription(id), subscription)
  })

  test('an authorisation is granted, withdrawn and granted again, and only for registered apps', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { billing } = storage.store
    const { id } = await insertUser(storage.store)
    assert.equal(await billing.authorize(id, 'unknown', NOW), null)
    assert.equal(await billing.withdraw(id, 'hub', NOW), null)
    const authorization = await billing.authorize(id, 'hub', NOW)
    assert.deepEqual(authorization, {
      userId: id,
      appId: 'hub',
      name: 'Keyway Hub',
      grantedAt: NOW,
      revokedAt: null,
    })
    assert.equal((await billing.authorize(id, 'hub', NOW + 1))!.grantedAt, NOW)
    assert.equal((await billing.withdraw(id, 'hub', NOW + 2))!.revokedAt, NOW + 2)
    assert.equal((await billing.withdraw(id, 'hub', NOW + 3))!.revokedAt, NOW + 2)
    assert.equal((await billing.authorize(id, 'hub', NOW + 4))!.grantedAt, NOW + 4)
    await billing.authorize(id, 'console', NOW + 9)
    assert.deepEqual(
      (await billing.authorizations(id)).map(one => one.appId),
      ['console', 'hub'],
    )
  })

  test('paging the ledger lists every entry once', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { id } = await insertUser(storage.store)
    for (let i = 0; i < 5; i++) await storage.store.billing.post(anEntry(id, 1))
    const allEntries = await readAll(page => storage.store.billing.ledger(id, page))
    assert.deepEqual(allEntries.map(entry => entry.balanceAfter).toSorted(), [1, 2, 3, 4, 5])
  })
})
