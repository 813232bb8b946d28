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
    const one = anAuthorization()
    assert.equal(await deviceAuthorizations.insert(one), true)
    assert.deepEqual(await deviceAuthorizations.find(one.id), one)
    assert.deepEqual(await deviceAuthorizations.findByDeviceCode(one.deviceCodeHash), one)
    assert.deepEqual(await deviceAuthorizations.findByTicket(one.ticketHash), one)
    const { userCodeHash } = one
    assert.deepEqual(await deviceAuthorizations.findPendingByUserCode(['x', userCodeHash], NOW), one)
    assert.equal(await deviceAuthorizations.insert(anAuthorization({ userCodeHash })), false)
  })

  test('a user code is found until its last millisecond, and only while it is undecided', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const [one, decided] = [anAuthorization(), anAuthorization(APPROVED)]
    for (const each of [one, decided]) await deviceAuthorizations.insert(each)
    const find = (hash: string, now: number) => deviceAuthorizations.findPendingByUserCode([hash], now)
    assert.ok(await find(one.userCodeHash, one.expiresAt - 1))
    assert.equal(await find(one.userCodeHash, one.expiresAt), null)
    assert.equal(await find(decided.userCodeHash, NOW), null)
  })

  test('of twenty concurrent polls one is in time, and each of the others prolongs the interval', async t => {
    const opened = await openTestStorage(engine, t)
    const { deviceAuthorizations } = opened.storage.store
    const one = anAuthorization()
    await deviceAuthorizations.insert(one)
    const polls = await race(opened, tx => tx.deviceAuthorizations.recordPoll(one.id, NOW, 5 * SECOND, HOUR))
    assert.equal(winners(polls).length, 1)
    const { pollInterval } = (await deviceAuthorizations.find(one.id))!
    assert.equal(pollInterval, (5 + 19 * 5) * SECOND)
    assert.equal(await deviceAuthorizations.recordPoll(one.id, NOW + pollInterval, 5 * SECOND, HOUR), true)
  })

  test('polls that came too early prolong the interval up to its longest, and write nothing from then on', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const one = anAuthorization()
    await deviceAuthorizations.insert(one)
    const poll = (now: number) => deviceAuthorizations.recordPoll(one.id, now, 5 * SECOND, 20 * SECOND)
    assert.equal(await poll(NOW), true)
    for (let early = 1; early <= 10; early++) assert.equal(await poll(NOW + early), false)
    const { pollInterval, lastPolledAt } = (await deviceAuthorizations.find(one.id))!
    assert.deepEqual([pollInterval, lastPolledAt], [20 * SECOND, NOW + 3])
  })

  test('of twenty concurrent decisions the first counts, and none after the code expired', async t => {
    const opened = await openTestStorage(engine, t)
    const { deviceAuthorizations } = opened.storage.store
    const [one, late] = [anAuthorization(), anAuthorization()]
    for (const each of [one, late]) await deviceAuthorizations.insert(each)
    const decisions = await race(opened, (tx, number) =>
      tx.deviceAuthorizations.decide(one.id, number % 2 ? 'approved' : 'denied', {
        userId: `user ${number}`,
        signInId: 'sign-in',
        authTime: NOW,
        at: NOW,
      }),
    )
    const [first, ...others] = winners(decisions)
    assert.deepEqual(others, [])
    assert.deepEqual(await deviceAuthorizations.find(one.id), first)
    assert.equal(
      await deviceAuthorizations.decide(late.id, 'approved', {
        userId: 'x',
        signInId: 'sign-in',
        authTime: NOW,
        at: late.expiresAt,
      }),
      null,
    )
  })

  test('an approved device code is redeemed once by twenty concurrent callers on two nodes', async t => {
    const opened = await openTestStorage(engine, t)
    const { deviceAuthorizations } = opened.storage.store
    const one = anAuthorization(APPROVED)
    await deviceAuthorizations.insert(one)
    const outcomes = await race(opened, (tx, number) =>
      tx.deviceAuthorizations.redeem(one.id, `session ${number}`, NOW),
    )
    const [redeemed, ...others] = winners(outcomes)
    assert.deepEqual(others, [])
    assert.deepEqual(await deviceAuthorizations.findBySession(redeemed!.sessionId!), redeemed)
  })

  test('a device code that is pending, denied or expired is not redeemed', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const refused = [
      anAuthorization(),
      anAuthorization({ ...APPROVED, decision: 'denied' }),
      anAuthorization({ ...APPROVED, expiresAt: NOW }),
    ]
    for (const each of refused) {
      await deviceAuthorizations.insert(each)
      assert.equal(await deviceAuthorizations.redeem(each.id, newId(NOW), NOW), null)
    }
    const last = anAuthorization({ ...APPROVED, expiresAt: NOW + 1 })
    await deviceAuthorizations.insert(last)
    assert.ok(await deviceAuthorizations.redeem(last.id, newId(NOW), NOW))
  })

  test('a redeemed device code creates one of twenty concurrent keys, within its window', async t => {
    const opened = await openTestStorage(engine, t)
    const { deviceAuthorizations } = opened.storage.store
    const redeemed = { ...APPROVED, redeemedAt: NOW }
    const [one, late] = [
      anAuthorization({ ...redeemed, sessionId: 'one' }),
      anAuthorization({ ...redeemed, sessionId: 'late' }),
    ]
    for (const each of [one, late]) await deviceAuthorizations.insert(each)
    const keys = await race(opened, (tx, number) =>
      tx.deviceAuthorizations.claimKey('one', `key ${number}`, NOW - 1),
    )
    assert.equal(winners(keys).length, 1)
    assert.equal(await deviceAuthorizations.claimKey('late', 'key', NOW), null)
    assert.ok(await deviceAuthorizations.claimKey('late', 'key', NOW - 1))
  })

  test('expired device authorizations are pruned', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { deviceAuthorizations } = storage.store
    const [old, kept] = [
      anAuthorization({ expiresAt: NOW - HOUR - 1 }),
      anAuthorization({ expiresAt: NOW - HOUR }),
    ]
    for (const each of [old, kept]) await deviceAuthorizations.insert(each)
    assert.equal(await deviceAuthorizations.prune(NOW - HOUR, 10), 1)
    assert.equal(await deviceAuthorizations.find(old.id), null)
    assert.ok(await deviceAuthorizations.find(kept.id))
  })
})
