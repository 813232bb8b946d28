import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CHANGE_LIMITS } from '../../src/change-limits.ts'
import { DAY, MINUTE } from '../../src/clock.ts'
import { anEntry } from '../contract/fixtures.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, refusedWith } from '../support/services.ts'

const page = { limit: 50, after: null }

forEachEngine(engine => {
  test('an account shows its balance, plan and authorisations by name', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    const account = await services.accounts.get(user.id)
    assert.equal(account.balance, 2_000_000)
    assert.deepEqual(account.subscription, {
      userId: user.id,
      plan: 'free',
      status: 'active',
      startedAt: user.createdAt,
    })
    for (const { name, grantedAt, revokedAt } of account.authorizations) {
      assert.ok(name.length > 0)
      assert.equal(grantedAt, user.createdAt)
      assert.equal(revokedAt, null)
    }
  })

  test('an authorisation can be withdrawn and granted again, each with one security event', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    const { accounts, clock } = services
    clock.advance(1000)
    const withdrawnAuthorization = await accounts.withdraw(user.id, 'hub', caller())
    assert.equal(withdrawnAuthorization.revokedAt, clock.now())
    clock.advance(1000)
    assert.deepEqual(await accounts.withdraw(user.id, 'hub', caller()), withdrawnAuthorization)
    const grantedAuthorization = await accounts.authorize(user.id, 'hub', caller())
    assert.equal(grantedAuthorization.grantedAt, clock.now())
    assert.equal(grantedAuthorization.revokedAt, null)
    clock.advance(1000)
    assert.deepEqual(await accounts.authorize(user.id, 'hub', caller()), grantedAuthorization)
    const eventTypes = (await services.store.securityEvents.list(user.id, page)).rows.map(({ type }) => type)
    assert.deepEqual(eventTypes.slice(0, 2), [
      'charge_authorization_granted',
      'charge_authorization_withdrawn',
    ])
    assert.equal(eventTypes.filter(type => type.startsWith('charge_authorization')).length, 2)
  })

  test('alternating grants and withdrawals are limited, and a withdrawal is never refused', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    const { accounts, clock } = services
    const perMinute = CHANGE_LIMITS.find(({ window }) => window === 'minute')!.limit
    for (let n = 0; n < perMinute; n++) {
      clock.advance(1)
      await accounts.withdraw(user.id, 'hub', caller())
      clock.advance(1)
      await accounts.authorize(user.id, 'hub', caller())
    }
    clock.advance(1)
    assert.notEqual((await accounts.withdraw(user.id, 'hub', caller())).revokedAt, null)
    assert.equal(await refusedWith(accounts.authorize(user.id, 'hub', caller())), 'rate_limited')
    clock.advance(MINUTE)
    assert.equal((await accounts.authorize(user.id, 'hub', caller())).revokedAt, null)
  })

  test('a registered app can be authorised, and an unknown one is not found', async t => {
    const { signIn, accounts } = await openServices(engine, t)
    const { user } = await signIn('a@example.com')
    assert.equal((await accounts.authorize(user.id, 'service-sdk', caller())).appId, 'service-sdk')
    assert.equal(await refusedWith(accounts.authorize(user.id, 'nobody', caller())), 'not_found')
    assert.equal(await refusedWith(accounts.withdraw(user.id, 'nobody', caller())), 'not_found')
    assert.equal((await accounts.get(user.id)).authorizations.length, 3)
  })

  test('the balance history has the balance at the end of each of thirty days, and its change', async t => {
    const { signIn, accounts, clock, store, storage } = await openServices(engine, t)
    clock.set(Date.UTC(2026, 10, 1, 12))
    const { user } = await signIn('a@example.com')
    const post = async (amount: number, createdAt: number) =>
      storage.transaction(tx => tx.billing.post(anEntry(user.id, amount, { createdAt })))
    await post(10, Date.UTC(2026, 10, 2, 23, 59, 59, 999))
    await post(20, Date.UTC(2026, 10, 3))
    await post(40, Date.UTC(2026, 10, 30, 11))
    clock.set(Date.UTC(2026, 10, 30, 12))
    const start = await store.billing.balance(user.id)
    const history = await accounts.balanceHistory(user.id)
    assert.equal(history.length, 30)
    assert.deepEqual(
      history.filter(({ change }) => change !== 0),
      [
        { start: Date.UTC(2026, 10, 1), balance: start - 70, change: start - 70 },
        { start: Date.UTC(2026, 10, 2), balance: start - 60, change: 10 },
        { start: Date.UTC(2026, 10, 3), balance: start - 40, change: 20 },
        { start: Date.UTC(2026, 10, 30), balance: start, change: 40 },
      ],
    )
    clock.advance(DAY)
    const [oldest] = await accounts.balanceHistory(user.id)
    assert.deepEqual(oldest, { start: Date.UTC(2026, 10, 2), balance: start - 60, change: 10 })
  })

  test('the changes of one account count towards its own limit only', async t => {
    const { signIn, accounts, clock } = await openServices(engine, t)
    const [a, b] = [await signIn('a@example.com'), await signIn('b@example.com')]
    const perMinute = CHANGE_LIMITS.find(({ window }) => window === 'minute')!.limit
    const grantAgain = async (userId: string) => {
      await accounts.withdraw(userId, 'hub', caller())
      clock.advance(1)
      return refusedWith(accounts.authorize(userId, 'hub', caller()))
    }
    for (let n = 0; n < perMinute; n++) await grantAgain(a.user.id)
    assert.equal(await grantAgain(a.user.id), 'rate_limited')
    assert.equal(await grantAgain(b.user.id), 'none')
    // Authorizing an app that is authorized already does not count towards the limit.
    for (let n = 0; n < perMinute; n++) await accounts.authorize(b.user.id, 'hub', caller())
    assert.equal(await grantAgain(b.user.id), 'none')
  })

  test('an account cannot read another’s data', async t => {
    const { signIn, accounts } = await openServices(engine, t)
    const a = await signIn('a@example.com')
    const b = await signIn('b@example.com')
    await accounts.withdraw(a.user.id, 'hub', caller())
    const authorizationsOfB = (await accounts.get(b.user.id)).authorizations
    assert.ok(authorizationsOfB.every(({ revokedAt }) => revokedAt === null))
    assert.ok((await accounts.ledger(b.user.id, page)).rows.every(({ userId }) => userId === b.user.id))
  })
})
