import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '../../src/events.ts'
import type { Storage } from '../../src/store.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { aUser, audited, NOW } from './fixtures.ts'

forEachEngine(engine => {
  test('a transaction that throws writes no row and publishes no event', async t => {
    const { storage } = await openTestStorage(engine, t)
    const recorder = recordEvents(storage)
    const user = aUser()
    const failingTransaction = storage.transaction(async tx => {
      await tx.users.insert(user)
      await audited(tx).users.setRole(user.id, 'admin', NOW)
      throw new Error('no')
    })
    await assert.rejects(failingTransaction, /no/)
    assert.equal(await storage.store.users.find(user.id), null)
    await storage.transaction(async tx => tx.publish({ type: 'mail.queued' }))
    await recorder.until(1)
    assert.deepEqual(recorder.events, [{ type: 'mail.queued' }])
  })

  test('the rows of a transaction are visible to receivers of its events, which arrive once and in order', async t => {
    const { storage } = await openTestStorage(engine, t)
    const users = [aUser(), aUser()]
    const userReads: Promise<unknown>[] = []
    const recorder = recordEvents(storage, event => {
      if (event.type === 'user.changed') userReads.push(storage.store.users.find(event.userId))
    })
    await storage.transaction(async tx => {
      for (const user of users) {
        await tx.users.insert(user)
        await audited(tx).users.setRole(user.id, 'user', NOW) // This publishes an event.
      }
    })
    await storage.events.publish({ type: 'mail.queued' })
    await recorder.until(3)
    assert.deepEqual(
      recorder.events.map(event => event.type),
      ['user.changed', 'user.changed', 'mail.queued'],
    )
    assert.deepEqual(await Promise.all(userReads), users)
  })

  test('a transaction sees its own writes, and others only after its commit', async t => {
    const { storage } = await openTestStorage(engine, t)
    const user = aUser()
    await storage.transaction(async tx => {
      await tx.users.insert(user)
      assert.deepEqual(await tx.users.find(user.id), user)
      assert.equal(await storage.store.users.find(user.id), null)
    })
    assert.deepEqual(await storage.store.users.find(user.id), user)
  })

  test('a failing statement fails only its own transaction', async t => {
    const { storage } = await openTestStorage(engine, t)
    const user = aUser()
    await storage.store.users.insert(user)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 6 }, (_, number) =>
        storage.transaction(async tx => {
          await tx.instance.replace(`name ${number}`, 'value')
          if (number % 2) await tx.users.insert({ ...aUser(), id: user.id })
          return number
        }),
      ),
    )
    assert.deepEqual(
      outcomes.map(outcome => outcome.status === 'fulfilled'),
      [true, false, true, false, true, false],
    )
    assert.equal(await storage.store.instance.find('name 1'), null)
    assert.equal(await storage.store.instance.find('name 2'), 'value')
  })

  test('a listener that throws does not keep others from receiving the event', async t => {
    const { storage } = await openTestStorage(engine, t)
    storage.events.subscribe(() => {
      throw new Error('no')
    })
    const recorder = recordEvents(storage)
    await storage.events.publish({ type: 'mail.queued' })
    await recorder.until(1)
  })

  test('a closed storage answers unavailable', async t => {
    const testStorage = await openTestStorage(engine, t)
    await testStorage.storage.close()
    await assert.rejects(testStorage.storage.store.apps.list(), { code: 'unavailable' })
    await assert.rejects(
      testStorage.storage.transaction(tx => tx.apps.list()),
      { code: 'unavailable' },
    )
  })

  test('the clock of the database is the time of day in milliseconds', async t => {
    const { storage } = await openTestStorage(engine, t)
    const now = performance.timeOrigin + performance.now()
    assert.ok(Math.abs((await storage.readClock()) - now) < 5000)
  })
})

interface RecordedEvents {
  events: Event[]
  until(count: number): Promise<void>
}

function recordEvents(storage: Storage, onEvent: (event: Event) => void = () => {}): RecordedEvents {
  const events: Event[] = []
  let check = () => {}
  storage.events.subscribe(event => {
    events.push(event)
    onEvent(event)
    check()
  })
  return {
    events,
    until: count =>
      new Promise(resolve => {
        check = () => events.length >= count && resolve()
        check()
      }),
  }
}
