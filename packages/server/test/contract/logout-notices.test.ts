import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogoutNotices } from '../../src/logout-notices/logout-notices.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { anApp, aSession, insertUser, NOW } from './fixtures.ts'

const SILENT_URL = 'https://silent.example.com/logout'

forEachEngine(engine => {
  test('an app that gives no answer does not delay the logout notices of others', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    await store.apps.insert(anApp({ id: 'silent', backchannelLogoutUri: SILENT_URL }))
    await store.apps.insert(anApp({ id: 'shop', backchannelLogoutUri: 'https://shop.example.com/logout' }))
    const { id: userId } = await insertUser(store)
    const grant = { scopes: ['openid'], audience: null }
    const endSession = async (appId: string, at: number) => {
      const session = aSession(userId, { appId, kind: 'app', grant })
      await store.sessions.insert(session)
      assert.equal(await store.logoutNotices.queue([session.id], at), 1)
    }
    for (let count = 0; count < 70; count++) await endSession('silent', NOW - 1)
    await endSession('shop', NOW)
    const calledUrls: string[] = []
    const { deliver } = createLogoutNotices({
      storage,
      clock: { now: () => NOW },
      jwt: { signAs: async () => 'a token' } as never,
      publicUrl: 'https://auth.example.com',
      log: { debug() {}, warn() {} } as never,
      async call(url) {
        calledUrls.push(url)
        if (url === SILENT_URL) throw new Error('no answer')
        return { status: 200 }
      },
    })
    await deliver()
    assert.equal(calledUrls.at(-1), 'https://shop.example.com/logout')
    assert.ok(calledUrls.filter(url => url === SILENT_URL).length <= 20, 'at most one batch of 70')
    assert.equal(await store.logoutNotices.isAnyDue(NOW), false)
    const retriedNotices = await store.logoutNotices.lease(NOW + 6000, NOW + 60_000, 100)
    assert.equal(retriedNotices.length, 70, 'all are notified again later')
  })
})
