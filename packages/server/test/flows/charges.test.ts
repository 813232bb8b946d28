import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApps } from '../../src/apps/apps.ts'
import { createCharges, IDEMPOTENCY_WINDOW } from '../../src/billing/charges.ts'
import { MICROS_PER_DOLLAR, TRIAL_CREDIT } from '../../src/billing/money.ts'
import { DAY, SECOND } from '../../src/clock.ts'
import type { KeywayError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { NO_LIMITS, type SpendLimit } from '../../src/limits/limit.ts'
import { untilAnswered } from '../ops/raced-charges.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const HUB_APP = { id: 'hub' }
const CENT = MICROS_PER_DOLLAR / 100

async function withUser(services: Services) {
  const { user } = await services.signIn('ada@example.com')
  const charges = createCharges(services)
  const wantedCharge = { userId: user.id, amount: CENT, description: 'one call' }
  const balance = () => services.store.billing.balance(user.id)
  return { userId: user.id, charges, wantedCharge, balance }
}

forEachEngine(engine => {
  test('a charge reduces the balance and is in the ledger', async t => {
    const services = await openServices(engine, t)
    const { userId, charges, wantedCharge, balance } = await withUser(services)
    const entry = await charges.charge(HUB_APP, wantedCharge, 'first-charge-0001')
    assert.deepEqual(
      [entry.kind, entry.amount, entry.balanceAfter, entry.appId, entry.description],
      ['charge', -CENT, TRIAL_CREDIT - CENT, 'hub', 'one call'],
    )
    assert.equal(await balance(), TRIAL_CREDIT - CENT)
    const { rows } = await services.accounts.ledger(userId, { limit: 10, after: null })
    assert.ok(rows.some(({ id }) => id === entry.id))
  })

  test('a repeated request with the same Idempotency-Key charges once, also twenty concurrent ones', async t => {
    const services = await openServices(engine, t)
    const { charges, wantedCharge, balance } = await withUser(services)
    const { won, refused } = await race(20, () => charges.charge(HUB_APP, wantedCharge, 'same-key-00000001'))
    assert.deepEqual(refused, [])
    assert.equal(new Set(won.map(({ id }) => id)).size, 1)
    assert.equal(await balance(), TRIAL_CREDIT - CENT)
  })

  test('an Idempotency-Key with another request is a conflict; keys of different apps are separate', async t => {
    const services = await openServices(engine, t)
    const { charges, wantedCharge, balance } = await withUser(services)
    const key = 'one-key-000000001'
    await charges.charge(HUB_APP, wantedCharge, key)
    for (const change of [{ amount: 2 * CENT }, { description: 'another' }, { userId: newId(1) }]) {
      assert.equal(
        await refusedWith(charges.charge(HUB_APP, { ...wantedCharge, ...change }, key)),
        'idempotency_conflict',
      )
    }
    await charges.charge({ id: 'console' }, wantedCharge, key)
    assert.equal(await balance(), TRIAL_CREDIT - 2 * CENT)
  })

  test('an Idempotency-Key expires after 24 hours, and can then be used again', async t => {
    const services = await openServices(engine, t)
    const { charges, wantedCharge } = await withUser(services)
    const charge = () => charges.charge(HUB_APP, wantedCharge, 'daily-key-0000001')
    const ids = new Set([(await charge()).id])
    for (let day = 0; day < 3; day++) {
      services.clock.advance(IDEMPOTENCY_WINDOW - 1)
      assert.ok(ids.has((await charge()).id))
      services.clock.advance(1)
      const { won } = await race(5, charge)
      ids.add(won[0]!.id)
      assert.equal(ids.size, day + 2)
    }
  })

  test('a repeated request gets the same answer after the authorisation was withdrawn', async t => {
    const services = await openServices(engine, t)
    const { userId, charges, wantedCharge } = await withUser(services)
    const firstEntry = await charges.charge(HUB_APP, wantedCharge, 'kept-key-00000001')
    await services.accounts.withdraw(userId, 'hub', caller())
    assert.deepEqual(await charges.charge(HUB_APP, wantedCharge, 'kept-key-00000001'), firstEntry)
    assert.equal(
      await refusedWith(charges.charge(HUB_APP, wantedCharge, 'new-key-000000001')),
      'charge_not_authorized',
    )
  })

  test('a charge above the balance is refused entirely, and can be retried with its Idempotency-Key', async t => {
    const services = await openServices(engine, t)
    const { charges, wantedCharge, balance } = await withUser(services)
    const excessiveCharge = { ...wantedCharge, amount: TRIAL_CREDIT + 1 }
    assert.equal(
      await refusedWith(charges.charge(HUB_APP, excessiveCharge, 'big-key-000000001')),
      'insufficient_balance',
    )
    assert.equal(await balance(), TRIAL_CREDIT)
    await charges.charge(HUB_APP, { ...wantedCharge, amount: TRIAL_CREDIT }, 'big-key-000000001')
    assert.equal(await balance(), 0)
  })

  test('the refusal of a charge says why, and when a limit of the key begins anew', async t => {
    const services = await openServices(engine, t)
    const { userId, charges, wantedCharge } = await withUser(services)
    services.clock.set(Date.UTC(2026, 11, 30, 23, 59, 59, 500))
    const keyWith = async (per: SpendLimit['per']) => {
      const limits = { ...NO_LIMITS, spend: [{ amount: CENT - 1, per }] }
      const newKey = { name: null, scopes: null, expiresAt: null, appId: 'hub', allowedNetworks: [], limits }
      return (await services.apiKeys.create(userId, newKey, caller())).apiKey.id
    }
    await charges.charge(HUB_APP, wantedCharge, 'used-key-00000001')
    const assertRefused = (change: object, key: string, refusal: object) =>
      assert.rejects(charges.charge(HUB_APP, { ...wantedCharge, ...change }, key), refusal)
    await assertRefused({ amount: 2 * CENT }, 'used-key-00000001', {
      message: 'This Idempotency-Key was used for another charge. Use a new one for each charge.',
    })
    await assertRefused({ amount: TRIAL_CREDIT }, 'too-much-00000001', {
      message: "The user's balance is too low for this amount. Nothing was charged.",
    })
    await assertRefused({ userId: newId(1) }, 'nobody-0000000001', {
      message: /^This user has not authorised the app to charge the balance/,
    })
    for (const [per, period, retryAfter] of [
      ['day', 'for this day (UTC)', 1],
      ['month', 'for this month (UTC)', DAY / SECOND + 1],
      ['total', 'in total', undefined],
    ] as const)
      await assert.rejects(
        charges.charge(HUB_APP, { ...wantedCharge, keyId: await keyWith(per) }, `limited-${per}-0000001`),
        (error: KeywayError) => {
          const message = `This charge would pass what the key may spend ${period}. Nothing was charged.`
          assert.deepEqual([error.message, error.extras.retryAfter], [message, retryAfter])
          return true
        },
      )
  })

  test('a charge without authorisation, or of an unknown, suspended or deleted user, is refused', async t => {
    const services = await openServices(engine, t)
    const { userId, charges, wantedCharge, balance } = await withUser(services)
    await createApps(services).register({ id: 'shop', name: 'Shop', audience: null, verifyUrl: null })
    let chargeNumber = 0
    const refusal = (app: string, change = {}) =>
      refusedWith(
        charges.charge({ id: app }, { ...wantedCharge, ...change }, `key-${chargeNumber++}-0123456789`),
      )
    assert.equal(await refusal('shop'), 'charge_not_authorized')
    assert.equal(await refusal('service-sdk'), 'charge_not_authorized')
    assert.equal(await refusal('hub', { userId: newId(1) }), 'charge_not_authorized')
    await services.accounts.authorize(userId, 'shop', caller())
    assert.equal(await refusal('shop'), 'none')
    await services.users.suspend(userId)
    assert.equal(await refusal('shop'), 'charge_not_authorized')
    await services.users.delete(userId)
    assert.equal(await refusal('shop'), 'charge_not_authorized')
    assert.equal(await balance(), TRIAL_CREDIT - CENT)
  })

  test('MON-02: 500 concurrent charges on two nodes take exactly the balance', async t => {
    const services = await openServices(engine, t)
    const { userId, charges, wantedCharge, balance } = await withUser(services)
    const chargesOfOtherNode = createCharges({
      storage: await services.opened.reopen(),
      clock: services.clock,
    })
    // All charges need the lock of one row, for which a call waits two seconds at most; refused calls are retried.
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        untilAnswered(
          [charges, chargesOfOtherNode][index % 2]!,
          HUB_APP,
          wantedCharge,
          `raced-key-${index}-00000`,
        ),
      ),
    )
    const acceptedEntries = answers.filter(answer => typeof answer !== 'string')
    assert.equal(acceptedEntries.length, TRIAL_CREDIT / CENT)
    const refusalCodes = answers.filter(answer => typeof answer === 'string')
    assert.deepEqual([...new Set(refusalCodes)], ['insufficient_balance'])
    assert.equal(await balance(), 0)
    const balances = new Set(acceptedEntries.map(({ balanceAfter }) => balanceAfter))
    assert.equal(balances.size, acceptedEntries.length, `every entry of ${userId} has a balance of its own`)
  })
})
