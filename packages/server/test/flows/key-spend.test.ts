import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCharges, type WantedCharge } from '../../src/billing/charges.ts'
import { MICROS_PER_DOLLAR } from '../../src/billing/money.ts'
import { periodsOf, spentIn } from '../../src/billing/spend.ts'
import { DAY, SECOND } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { NO_LIMITS, SPEND_PERIODS, type SpendLimit } from '../../src/limits/limit.ts'
import { anEntry } from '../contract/fixtures.ts'
import { untilAnswered } from '../ops/raced-charges.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, refusedWith, type Services } from '../support/services.ts'

const HUB = { id: 'hub' }
const CENT = MICROS_PER_DOLLAR / 100
const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

/** A person with more credit than any test charges, and a key with these spend limits. */
async function withKey(services: Services, spend: SpendLimit[] = []) {
  const { user } = await services.signIn('ada@example.com')
  const userId = user.id
  await services.opened.storage.store.billing.post(
    anEntry(userId, 100 * MICROS_PER_DOLLAR, { createdAt: services.clock.now() }),
  )
  const makeKey = (limits: SpendLimit[] = []) =>
    services.apiKeys.create(userId, { ...NEW_KEY, limits: { ...NO_LIMITS, spend: limits } }, caller())
  const { apiKey } = await makeKey(spend)
  const charges = createCharges(services)
  let chargeNumber = 0
  const wantedCharge = { userId, keyId: apiKey.id, amount: CENT, description: 'a call' }
  const charge = (change: Partial<WantedCharge> = {}, idempotencyKey = `charge-${chargeNumber++}-0000000`) =>
    charges.charge(HUB, { ...wantedCharge, ...change }, idempotencyKey)
  /** Charges concurrently. All need one row's lock; calls that wait too long for it are `unavailable` and retried. */
  const raceCharges = async (count: number, changeOf: (n: number) => Partial<WantedCharge>, key?: string) => {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, n) =>
        untilAnswered(charges, HUB, { ...wantedCharge, ...changeOf(n) }, key ?? `raced-${n}-000000000`),
      ),
    )
    const acceptedEntries = answers.filter(answer => typeof answer !== 'string')
    return { won: acceptedEntries, refused: answers.filter(answer => typeof answer === 'string') }
  }
  /** What a key, its predecessors and its successors have spent in the current day and month, and in total. */
  const spent = async (key = apiKey) => {
    const sums = (await services.store.billing.spentOf([key.lineageId])).get(key.lineageId)!
    return SPEND_PERIODS.map(per => spentIn(per, sums, services.clock.now()))
  }
  const entries = async () => {
    const { rows } = await services.accounts.ledger(userId, { limit: 1000, after: null })
    return rows.filter(({ kind }) => kind === 'charge')
  }
  return { userId, makeKey, apiKey, charges, charge, raceCharges, spent, entries }
}

test('days and months are numbered without gaps, also over the turn of a year', () => {
  const newYear = Date.UTC(2027, 0, 1)
  const [before, after] = [periodsOf(newYear - 1), periodsOf(newYear)]
  assert.deepEqual(after, { day: before.day + 1, month: before.month + 1 })
  assert.deepEqual(periodsOf(0), { day: 0, month: 0 })
  assert.deepEqual(periodsOf(Date.UTC(1971, 1, 1)), { day: 396, month: 13 })
})

forEachEngine(engine => {
  test('a charge that names a key has it in the ledger and counts as spent by it', async t => {
    const services = await openServices(engine, t)
    const { apiKey, charge, spent, entries } = await withKey(services)
    const entry = await charge({ amount: 3 * CENT })
    assert.equal(entry.keyId, apiKey.id)
    await charge({ keyId: null })
    assert.deepEqual(await spent(), [3 * CENT, 3 * CENT, 3 * CENT])
    assert.deepEqual(
      (await entries()).map(({ keyId }) => keyId),
      [null, apiKey.id],
    )
  })

  test('another person’s key, an unknown, revoked or expired one, and one of a suspended owner cannot be charged', async t => {
    const services = await openServices(engine, t)
    const { userId, apiKey, charge, entries } = await withKey(services)
    const eve = await services.signIn('eve@example.com')
    const keyOfEve = await services.apiKeys.create(eve.user.id, NEW_KEY, caller())
    const revokedKey = await services.apiKeys.create(userId, NEW_KEY, caller())
    await services.apiKeys.revoke(userId, revokedKey.apiKey.id, caller())
    const expiresAt = services.clock.now() + SECOND
    const expiredKey = await services.apiKeys.create(userId, { ...NEW_KEY, expiresAt }, caller())
    services.clock.advance(SECOND - 1)
    await charge({ keyId: expiredKey.apiKey.id })
    services.clock.advance(1)
    for (const keyId of [keyOfEve.apiKey.id, newId(1), revokedKey.apiKey.id, expiredKey.apiKey.id])
      assert.equal(await refusedWith(charge({ keyId })), 'charge_not_authorized')
    await services.users.suspend(userId)
    assert.equal(await refusedWith(charge({ keyId: apiKey.id })), 'charge_not_authorized')
    assert.equal((await entries()).length, 1)
  })

  test('of twenty charges at once on two nodes as many are booked as the limit has room for', async t => {
    const services = await openServices(engine, t)
    for (const per of SPEND_PERIODS) {
      const { userId, makeKey, charges, spent } = await withKey(services)
      const { apiKey } = await makeKey([{ amount: 7 * CENT + 1, per }])
      const chargesOfOtherNode = createCharges({
        storage: await services.opened.reopen(),
        clock: services.clock,
      })
      const wantedCharge = { userId, keyId: apiKey.id, amount: CENT, description: 'a call' }
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          untilAnswered([charges, chargesOfOtherNode][n % 2]!, HUB, wantedCharge, `${per}-raced-${n}-00000`),
        ),
      )
      assert.equal(answers.filter(answer => typeof answer !== 'string').length, 7)
      assert.equal(answers.filter(answer => answer === 'spend_limit_reached').length, 13)
      assert.deepEqual(await spent(apiKey), [7 * CENT, 7 * CENT, 7 * CENT])
    }
  })

  test('of limits of owner and operator, and of several periods, the strictest counts', async t => {
    const services = await openServices(engine, t)
    const { apiKey, charge } = await withKey(services, [
      { amount: 5 * CENT, per: 'day' },
      { amount: 6 * CENT, per: 'total' },
    ])
    const setOperatorLimits = (spend: SpendLimit[]) =>
      services.apiKeys.setOperatorLimits(apiKey.id, { ...NO_LIMITS, spend })
    await setOperatorLimits([{ amount: 2 * CENT, per: 'day' }])
    await charge({ amount: 2 * CENT })
    assert.equal(await refusedWith(charge({ amount: 1 })), 'spend_limit_reached')
    await setOperatorLimits([{ amount: 9 * CENT, per: 'day' }])
    assert.equal(await refusedWith(charge({ amount: 3 * CENT + 1 })), 'spend_limit_reached')
    await charge({ amount: 3 * CENT })
    services.clock.advance(DAY)
    assert.equal(await refusedWith(charge({ amount: CENT + 1 })), 'spend_limit_reached')
    await charge({ amount: CENT })
    await setOperatorLimits([{ amount: 20 * CENT, per: 'month' }])
    assert.equal(await refusedWith(charge({ amount: 1 })), 'spend_limit_reached')
  })

  test('days and months are those of UTC, to the millisecond', async t => {
    const services = await openServices(engine, t)
    const { clock } = services
    const { charge, spent } = await withKey(services, [
      { amount: 2 * CENT, per: 'day' },
      { amount: 3 * CENT, per: 'month' },
    ])
    clock.set(Date.UTC(2026, 10, 30) - 2)
    await charge({ amount: 2 * CENT })
    assert.equal(await refusedWith(charge({ amount: 1 })), 'spend_limit_reached')
    clock.set(Date.UTC(2026, 10, 30))
    await charge({ amount: CENT })
    clock.set(Date.UTC(2026, 11, 1) - 2)
    assert.equal(await refusedWith(charge({ amount: 1 })), 'spend_limit_reached')
    assert.deepEqual(await spent(), [CENT, 3 * CENT, 3 * CENT])
    clock.set(Date.UTC(2026, 11, 1))
    assert.deepEqual(await spent(), [0, 0, 3 * CENT])
    await charge({ amount: 2 * CENT })
    assert.deepEqual(await spent(), [2 * CENT, 2 * CENT, 5 * CENT])
    clock.set(Date.UTC(2027, 10, 30))
    assert.deepEqual(await spent(), [0, 0, 5 * CENT])
  })

  test('what a day and a month have spent is the sum of their ledger entries, across midnight with racing nodes', async t => {
    const services = await openServices(engine, t)
    const { clock } = services
    const { userId, charges, apiKey, entries, spent } = await withKey(services, [
      { amount: 5 * CENT, per: 'day' },
    ])
    const chargesOfOtherNode = createCharges({ storage: await services.opened.reopen(), clock })
    const midnight = Date.UTC(2026, 11, 1)
    clock.set(midnight - 4)
    const wantedCharge = { userId, keyId: apiKey.id, amount: CENT, description: 'a call' }
    // The ledger gives each entry of a user a millisecond of its own, so some of these belong to the next day.
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        untilAnswered([charges, chargesOfOtherNode][n % 2]!, HUB, wantedCharge, `midnight-${n}-0000000`),
      ),
    )
    clock.set(midnight)
    const bookedEntries = await entries()
    const countOfDay = (from: number) =>
      bookedEntries.filter(({ createdAt }) => createdAt >= from && createdAt < from + DAY).length
    assert.ok(countOfDay(midnight - DAY) <= 5 && countOfDay(midnight) <= 5)
    assert.equal(bookedEntries.length, countOfDay(midnight - DAY) + countOfDay(midnight))
    assert.deepEqual(await spent(), [
      countOfDay(midnight) * CENT,
      countOfDay(midnight) * CENT,
      bookedEntries.length * CENT,
    ])
  })

  test('a repeated charge counts once, and is answered as before when the limit is reached or the key revoked', async t => {
    const services = await openServices(engine, t)
    const { userId, apiKey, charge, raceCharges, spent } = await withKey(services, [
      { amount: 2 * CENT, per: 'day' },
    ])
    const { won, refused } = await raceCharges(20, () => ({}), 'the-same-key-00001')
    assert.deepEqual([new Set(won.map(({ id }) => id)).size, refused], [1, []])
    assert.deepEqual(await spent(), [CENT, CENT, CENT])
    await charge({})
    assert.equal(await refusedWith(charge({})), 'spend_limit_reached')
    await services.apiKeys.revoke(userId, apiKey.id, caller())
    assert.equal((await charge({}, 'the-same-key-00001')).id, won[0]!.id)
    assert.equal(await refusedWith(charge({ keyId: null }, 'the-same-key-00001')), 'idempotency_conflict')
    assert.deepEqual(await spent(), [2 * CENT, 2 * CENT, 2 * CENT])
  })

  test('one Idempotency-Key raced for two keys and two people books once and counts nowhere else', async t => {
    const services = await openServices(engine, t)
    const { makeKey, raceCharges, spent, apiKey } = await withKey(services)
    const otherKey = (await makeKey()).apiKey
    const eve = await services.signIn('eve@example.com')
    const keyOfEve = (await services.apiKeys.create(eve.user.id, NEW_KEY, caller())).apiKey
    const rivalCharges = [{}, { keyId: otherKey.id }, { userId: eve.user.id, keyId: keyOfEve.id }]
    const { won, refused } = await raceCharges(21, n => rivalCharges[n % 3]!, 'one-raced-key-0001')
    assert.equal(new Set(won.map(({ id }) => id)).size, 1)
    assert.deepEqual([...new Set(refused)], ['idempotency_conflict'])
    for (const key of [apiKey, otherKey, keyOfEve]) {
      const expected = key.id === won[0]!.keyId ? CENT : 0
      const spentTotal = (await services.store.billing.spentOf([key.lineageId])).has(key.lineageId)
        ? (await spent(key))[2]
        : 0
      assert.equal(spentTotal, expected)
    }
  })

  test('a balance that is too low leaves what was spent as it was', async t => {
    const services = await openServices(engine, t)
    const { charge, spent } = await withKey(services)
    await charge({})
    assert.equal(await refusedWith(charge({ amount: 200 * MICROS_PER_DOLLAR })), 'insufficient_balance')
    assert.deepEqual(await spent(), [CENT, CENT, CENT])
  })

  test('a rotation passes on limits and what is used up, and both keys share it during the overlap', async t => {
    const services = await openServices(engine, t)
    const { userId, apiKey, charge, raceCharges, spent } = await withKey(services, [
      { amount: 4 * CENT, per: 'total' },
    ])
    await charge({})
    const { apiKey: successor } = await services.apiKeys.rotate(userId, apiKey.id, 3600, caller())
    const { won, refused } = await raceCharges(20, n => ({ keyId: n % 2 === 0 ? apiKey.id : successor.id }))
    assert.equal(won.length, 3)
    assert.deepEqual([...new Set(refused)], ['spend_limit_reached'])
    assert.deepEqual(await spent(successor), [4 * CENT, 4 * CENT, 4 * CENT])
    services.clock.advance(3600 * SECOND)
    assert.equal(await refusedWith(charge({ keyId: apiKey.id })), 'charge_not_authorized')
    const { apiKey: third } = await services.apiKeys.rotate(userId, successor.id, 0, caller())
    assert.equal(await refusedWith(charge({ keyId: third.id })), 'spend_limit_reached')
  })

  test('nothing is booked on a key once its revocation was answered, while charges run on two nodes', async t => {
    const services = await openServices(engine, t)
    const { userId, apiKey, charges, entries } = await withKey(services)
    const chargesOfOtherNode = createCharges({
      storage: await services.opened.reopen(),
      clock: services.clock,
    })
    const wantedCharge = { userId, keyId: apiKey.id, amount: CENT, description: 'a call' }
    const pendingCharges = Array.from({ length: 40 }, (_, n) =>
      untilAnswered([charges, chargesOfOtherNode][n % 2]!, HUB, wantedCharge, `revoked-while-${n}-0000`),
    )
    await Promise.race(pendingCharges)
    await services.apiKeys.revoke(userId, apiKey.id, caller())
    const bookedCount = (await entries()).length
    const answers = await Promise.all(pendingCharges)
    assert.equal((await entries()).length, bookedCount)
    const codes = new Set(answers.filter(answer => typeof answer === 'string'))
    assert.ok([...codes].every(code => code === 'charge_not_authorized'))
  })
})
