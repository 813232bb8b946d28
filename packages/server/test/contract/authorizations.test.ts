import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuthorizationCode } from '../../src/authorizations/authorization-code.ts'
import { MINUTE } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { anApp, aSession, insertUser, NOW, race, winners } from './fixtures.ts'

function aCode(change: Partial<AuthorizationCode> = {}): AuthorizationCode {
  return {
    codeHash: newId(NOW),
    appId: 'shop',
    userId: newId(NOW),
    signInId: newId(NOW),
    redirectUri: 'https://shop.example.com/back',
    scopes: ['openid', 'email'],
    audience: null,
    nonce: 'a nonce',
    codeChallenge: 'a challenge',
    authTime: NOW,
    network: '192.0.2.1',
    client: null,
    pushedId: null,
    createdAt: NOW,
    expiresAt: NOW + MINUTE,
    usedAt: null,
    sessionId: null,
    ...change,
  }
}

forEachEngine(engine => {
  test('of twenty concurrent redemptions of a code one succeeds, until its last millisecond', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { authorizationCodes } = testStorage.storage.store
    const [code, expiredCode] = [aCode(), aCode()]
    for (const each of [code, expiredCode]) assert.equal(await authorizationCodes.insert(each), true)
    const outcomes = await race(testStorage, (tx, number) =>
      tx.authorizationCodes.consume(code.codeHash, `session ${number}`, code.expiresAt - 1),
    )
    const [winner, ...others] = winners(outcomes)
    assert.deepEqual(others, [])
    assert.deepEqual(await authorizationCodes.find(code.codeHash), winner)
    assert.equal(winner!.usedAt, code.expiresAt - 1)
    assert.equal(
      await authorizationCodes.consume(expiredCode.codeHash, 'session', expiredCode.expiresAt),
      null,
    )
    assert.deepEqual(await authorizationCodes.find(expiredCode.codeHash), expiredCode)
    assert.equal(await authorizationCodes.find('unknown'), null)
  })

  test('of twenty concurrent answers to a pushed request one gets a code', async t => {
    const testStorage = await openTestStorage(engine, t)
    const pushedId = newId(NOW)
    const outcomes = await race(testStorage, async tx =>
      (await tx.authorizationCodes.insert(aCode({ pushedId }))) ? pushedId : null,
    )
    assert.equal(winners(outcomes).length, 1)
  })

  test('one node at a time notifies apps with a logout URI of ended sessions, and retries later', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { store } = testStorage.storage
    const { logoutNotices } = store
    await store.apps.insert(anApp({ backchannelLogoutUri: 'https://shop.example.com/logout' }))
    await store.apps.insert(anApp({ id: 'quiet' }))
    const { id: userId } = await insertUser(store)
    const grant = { scopes: ['openid'], audience: null }
    const appSession = aSession(userId, { appId: 'shop', kind: 'app', grant })
    const unannouncedSessions = [
      aSession(userId, { appId: 'quiet', kind: 'app', grant }),
      aSession(userId, { appId: 'shop' }),
      aSession(userId, { appId: 'shop', kind: 'page' }),
    ]
    for (const session of [appSession, ...unannouncedSessions]) await store.sessions.insert(session)
    const ids = [appSession, ...unannouncedSessions].map(({ id }) => id)
    assert.equal(await logoutNotices.queue(ids, NOW), 1)
    assert.equal(await logoutNotices.queue(ids, NOW), 0)
    assert.equal(await logoutNotices.isAnyDue(NOW - 1), false)
    const leases = await race(
      testStorage,
      async tx => (await tx.logoutNotices.lease(NOW, NOW + MINUTE, 10))[0] ?? null,
    )
    const [leased, ...moreLeases] = winners(leases)
    assert.deepEqual(moreLeases, [])
    assert.deepEqual([leased!.sessionId, leased!.appId, leased!.attempts], [appSession.id, 'shop', 0])
    assert.deepEqual(await logoutNotices.lease(NOW + MINUTE - 1, NOW + MINUTE, 10), [])
    await logoutNotices.retry(appSession.id, NOW + 2 * MINUTE)
    assert.equal(await logoutNotices.isAnyDue(NOW + 2 * MINUTE - 1), false)
    const [retried] = await logoutNotices.lease(NOW + 2 * MINUTE, NOW + 3 * MINUTE, 10)
    assert.equal(retried!.attempts, 1)
    await logoutNotices.remove(appSession.id)
    assert.equal(await logoutNotices.isAnyDue(NOW + 9 * MINUTE), false)
  })

  test('of twenty concurrent uses of a client assertion one succeeds, and it is remembered until it expires', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { clientAssertions } = testStorage.storage.store
    const uses = await race(testStorage, async tx =>
      (await tx.clientAssertions.use('shop', 'a jti', NOW + MINUTE)) ? 'used' : null,
    )
    assert.equal(winners(uses).length, 1)
    assert.equal(await clientAssertions.use('other', 'a jti', NOW + 2 * MINUTE), true)
    assert.equal(await clientAssertions.prune(NOW + MINUTE, 10), 0)
    assert.equal(await clientAssertions.prune(NOW + MINUTE + 1, 10), 1)
    assert.equal(await clientAssertions.use('shop', 'a jti', NOW + MINUTE), true)
  })

  test('codes are deleted by their age, a batch at a time', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { authorizationCodes } = storage.store
    for (let at = 0; at < 3; at++) await authorizationCodes.insert(aCode({ createdAt: NOW + at }))
    assert.equal(await authorizationCodes.prune(NOW + 2, 1), 1)
    assert.equal(await authorizationCodes.prune(NOW + 2, 10), 1)
    assert.equal(await authorizationCodes.prune(NOW + 2, 10), 0)
  })

  test('twenty concurrent grants of one consent add up', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { store } = testStorage.storage
    await store.apps.insert(anApp())
    const { id: userId } = await insertUser(store)
    await race(testStorage, (tx, number) =>
      tx.consents.grant(
        { id: newId(NOW), userId, appId: 'shop', scopes: [`own:${number}`], grantedAt: NOW + number },
        NOW,
      ),
    )
    const consent = await store.consents.find(userId, 'shop')
    assert.equal(consent!.scopes.length, 20)
    const { rows } = await store.consents.list(userId, { limit: 10, after: null })
    assert.deepEqual(rows, [{ ...consent, name: 'Shop' }])
  })

  test('a consent to an earlier app with the same id is not continued, and a withdrawn one is not listed', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    await store.apps.insert(anApp())
    const { id: userId } = await insertUser(store)
    const grant = (scopes: string[], grantedAt: number, since: number) =>
      storage.transaction(tx =>
        tx.consents.grant({ id: newId(NOW), userId, appId: 'shop', scopes, grantedAt }, since),
      )
    await grant(['openid'], NOW, NOW)
    const secondConsent = await grant(['email'], NOW + 2, NOW + 1)
    assert.deepEqual([secondConsent.scopes, secondConsent.grantedAt], [['email'], NOW + 2])
    await storage.transaction(tx => tx.consents.withdraw(userId, 'shop', NOW + 3))
    assert.equal((await store.consents.find(userId, 'shop'))!.revokedAt, NOW + 3)
    const { rows } = await store.consents.list(userId, { limit: 10, after: null })
    assert.deepEqual(rows, [])
  })
})
