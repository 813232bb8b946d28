import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR, SECOND } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { anAuthorization, NOW, race, winners } from './fixtures.ts'

const APPROVED = {
  decision: 'approved',
  decidedAt: NOW,
  userId: newId(NOW),
  signInId: newId(NOW),
  authTime: NOW,
} as const

forEachEngine(engine => {
  test('a device authorization is found by each of its codes, and no code is given out twice', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const authorization = anAuthorization()
    assert.equal(await deviceAuthorizations.insert(authorization), true)
    assert.deepEqual(await deviceAuthorizations.find(authorization.id), authorization)
    assert.deepEqual(await deviceAuthorizations.findByDeviceCode(authorization.deviceCodeHash), authorization)
    assert.deepEqual(await deviceAuthorizations.findByTicket(authorization.ticketHash), authorization)
    const { userCodeHash } = authorization
    assert.deepEqual(
      await deviceAuthorizations.findPendingByUserCode(['x', userCodeHash], NOW),
      authorization,
    )
    assert.equal(await deviceAuthorizations.insert(anAuthorization({ userCodeHash })), false)
  })

  test('a user code is found until its last millisecond, and only while it is undecided', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const [authorization, decidedAuthorization] = [anAuthorization(), anAuthorization(APPROVED)]
    for (const each of [authorization, decidedAuthorization]) await deviceAuthorizations.insert(each)
    const find = (hash: string, now: number) => deviceAuthorizations.findPendingByUserCode([hash], now)
    assert.ok(await find(authorization.userCodeHash, authorization.expiresAt - 1))
    assert.equal(await find(authorization.userCodeHash, authorization.expiresAt), null)
    assert.equal(await find(decidedAuthorization.userCodeHash, NOW), null)
  })

  test('of twenty concurrent polls one is in time, and each of the others prolongs the interval', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { deviceAuthorizations } = testStorage.storage.store
    const authorization = anAuthorization()
    await deviceAuthorizations.insert(authorization)
    const pollResults = await race(testStorage, tx =>
      tx.deviceAuthorizations.recordPoll(authorization.id, NOW, 5 * SECOND, HOUR),
    )
    assert.equal(winners(pollResults).length, 1)
    const { pollInterval } = (await deviceAuthorizations.find(authorization.id))!
    assert.equal(pollInterval, (5 + 19 * 5) * SECOND)
    assert.equal(
      await deviceAuthorizations.recordPoll(authorization.id, NOW + pollInterval, 5 * SECOND, HOUR),
      true,
    )
  })

  test('polls that came too early prolong the interval up to its longest, and write nothing from then on', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const authorization = anAuthorization()
    await deviceAuthorizations.insert(authorization)
    const poll = (now: number) =>
      deviceAuthorizations.recordPoll(authorization.id, now, 5 * SECOND, 20 * SECOND)
    assert.equal(await poll(NOW), true)
    for (let early = 1; early <= 10; early++) assert.equal(await poll(NOW + early), false)
    const { pollInterval, lastPolledAt } = (await deviceAuthorizations.find(authorization.id))!
    assert.deepEqual([pollInterval, lastPolledAt], [20 * SECOND, NOW + 3])
  })

  test('of twenty concurrent decisions the first counts, and none after the code expired', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { deviceAuthorizations } = testStorage.storage.store
    const [authorization, expiredAuthorization] = [anAuthorization(), anAuthorization()]
    for (const each of [authorization, expiredAuthorization]) await deviceAuthorizations.insert(each)
    const decisions = await race(testStorage, (tx, number) =>
      tx.deviceAuthorizations.decide(authorization.id, number % 2 ? 'approved' : 'denied', {
        userId: `user ${number}`,
        signInId: 'sign-in',
        authTime: NOW,
        at: NOW,
      }),
    )
    const [first, ...others] = winners(decisions)
    assert.deepEqual(others, [])
    assert.deepEqual(await deviceAuthorizations.find(authorization.id), first)
    assert.equal(
      await deviceAuthorizations.decide(expiredAuthorization.id, 'approved', {
        userId: 'x',
        signInId: 'sign-in',
        authTime: NOW,
        at: expiredAuthorization.expiresAt,
      }),
      null,
    )
  })

  test('an approved device code is redeemed once by twenty concurrent callers on two nodes', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { deviceAuthorizations } = testStorage.storage.store
    const authorization = anAuthorization(APPROVED)
    await deviceAuthorizations.insert(authorization)
    const outcomes = await race(testStorage, (tx, number) =>
      tx.deviceAuthorizations.redeem(authorization.id, `session ${number}`, NOW),
    )
    const [redeemed, ...others] = winners(outcomes)
    assert.deepEqual(others, [])
    assert.deepEqual(await deviceAuthorizations.findBySession(redeemed!.sessionId!), redeemed)
  })

  test('a device code that is pending, denied or expired is not redeemed', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const refusedAuthorizations = [
      anAuthorization(),
      anAuthorization({ ...APPROVED, decision: 'denied' }),
      anAuthorization({ ...APPROVED, expiresAt: NOW }),
    ]
    for (const each of refusedAuthorizations) {
      await deviceAuthorizations.insert(each)
      assert.equal(await deviceAuthorizations.redeem(each.id, newId(NOW), NOW), null)
    }
    const liveAuthorization = anAuthorization({ ...APPROVED, expiresAt: NOW + 1 })
    await deviceAuthorizations.insert(liveAuthorization)
    assert.ok(await deviceAuthorizations.redeem(liveAuthorization.id, newId(NOW), NOW))
  })

  test('a redeemed device code creates one of twenty concurrent keys, within its window', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { deviceAuthorizations } = testStorage.storage.store
    const redeemedState = { ...APPROVED, redeemedAt: NOW }
    const [redeemedInTime, redeemedEarlier] = [
      anAuthorization({ ...redeemedState, sessionId: 'one' }),
      anAuthorization({ ...redeemedState, sessionId: 'late' }),
    ]
    for (const each of [redeemedInTime, redeemedEarlier]) await deviceAuthorizations.insert(each)
    const outcomes = await race(testStorage, (tx, number) =>
      tx.deviceAuthorizations.claimKey('one', `key ${number}`, NOW - 1),
    )
    assert.equal(winners(outcomes).length, 1)
    assert.equal(await deviceAuthorizations.claimKey('late', 'key', NOW), null)
    assert.ok(await deviceAuthorizations.claimKey('late', 'key', NOW - 1))
  })

  test('expired device authorizations are pruned', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const [prunedAuthorization, keptAuthorization] = [
      anAuthorization({ expiresAt: NOW - HOUR - 1 }),
      anAuthorization({ expiresAt: NOW - HOUR }),
    ]
    for (const each of [prunedAuthorization, keptAuthorization]) await deviceAuthorizations.insert(each)
    assert.equal(await deviceAuthorizations.prune(NOW - HOUR, 10), 1)
    assert.equal(await deviceAuthorizations.find(prunedAuthorization.id), null)
    assert.ok(await deviceAuthorizations.find(keptAuthorization.id))
  })
})
