import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { HOUR } from '../../src/clock.ts'
import { RETRY_DELAYS } from '../../src/logout-notices/logout-notice.ts'
import { createLogoutNotices, type LogoutNoticeDeps } from '../../src/logout-notices/logout-notices.ts'
import { createLogoutDelivery } from '../../src/operations/logout-delivery.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'
import { inTime, until } from '../support/patience.ts'
import { LOCAL_NETWORKS } from '../support/webhook-endpoint.ts'
import { anApp, aSession, insertUser, NOW } from './fixtures.ts'

const SILENT_URL = 'https://silent.example.com/logout'

/** Opens a store with an app, and queues `count` notices of ended sessions for it. */
async function openWithNotices(engine: EngineName, t: TestContext, url: string, count: number) {
  const { storage } = await openTestStorage(engine, t)
  await storage.store.apps.insert(anApp({ id: 'shop', backchannelLogoutUri: url }))
  const { id: userId } = await insertUser(storage.store)
  for (let n = 0; n < count; n++) await endSession(storage.store, userId, 'shop', NOW)
  return storage
}

async function endSession(
  { sessions, logoutNotices }: DatabaseStorage['store'],
  userId: string,
  appId: string,
  at: number,
) {
  const session = aSession(userId, { appId, kind: 'app', grant: { scopes: ['openid'], audience: null } })
  await sessions.insert(session)
  assert.equal(await logoutNotices.queue([session.id], at), 1)
}

/** Signs tokens that are only the session's id, so that a call shows which session its notice is about. */
const SESSION_AS_TOKEN = {
  signAs: async (_alg: string, _type: string, { sid }: { sid: string }) => sid,
} as never

forEachEngine(engine => {
  test('an app that gives no answer does not delay the logout notices of others', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { store } = storage
    await store.apps.insert(anApp({ id: 'silent', backchannelLogoutUri: SILENT_URL }))
    await store.apps.insert(anApp({ id: 'shop', backchannelLogoutUri: 'https://shop.example.com/logout' }))
    const { id: userId } = await insertUser(store)
    for (let count = 0; count < 70; count++) await endSession(store, userId, 'silent', NOW - 1)
    await endSession(store, userId, 'shop', NOW)
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

  test('while an app gives no answer, only calls use up retries, and what was not sent is sent afterwards', async t => {
    const storage = await openWithNotices(engine, t, SILENT_URL, 150)
    const callsBySession = new Map<string, number>()
    const droppedNotices: object[] = []
    let [now, isSilent] = [NOW, true]
    const { deliver } = createLogoutNotices({
      storage,
      clock: { now: () => now },
      jwt: SESSION_AS_TOKEN,
      publicUrl: 'https://auth.example.com',
      log: { debug() {}, warn: (fields: object) => droppedNotices.push(fields) } as never,
      async call(_, { body }) {
        const sessionId = new URLSearchParams(body).get('logout_token')!
        callsBySession.set(sessionId, (callsBySession.get(sessionId) ?? 0) + 1)
        if (isSilent) throw new Error('no answer')
        return { status: 200 }
      },
    } satisfies LogoutNoticeDeps)
    // Each run calls the app only for its first batch of twenty, and defers all other notices by at most an hour.
    for (let run = 0; run < 7; run++, now += HOUR) await deliver()
    assert.ok(callsBySession.size <= 140, 'some were never sent')
    const failedCallsBySession = new Map(callsBySession)
    isSilent = false
    await deliver()
    assert.equal(callsBySession.size, 150, 'each was sent')
    const undelivered = [...callsBySession].filter(([id, calls]) => calls === failedCallsBySession.get(id))
    assert.equal(undelivered.length, droppedNotices.length)
    assert.ok(
      undelivered.every(([, calls]) => calls === 6),
      'six calls each',
    )
    assert.equal(await storage.store.logoutNotices.isAnyDue(now + HOUR), false)
  })

  test('notices that an app never answers are dropped, called or not, after a day', async t => {
    const storage = await openWithNotices(engine, t, SILENT_URL, 100)
    let [now, droppedCount] = [NOW, 0]
    const { deliver } = createLogoutNotices({
      storage,
      clock: { now: () => now },
      jwt: SESSION_AS_TOKEN,
      publicUrl: 'https://auth.example.com',
      log: { debug() {}, warn: () => droppedCount++ } as never,
      call: () => Promise.reject(new Error('no answer')),
    })
    for (; now <= NOW + 23 * HOUR; now += HOUR) await deliver()
    const { logoutNotices } = storage.store
    assert.ok((await logoutNotices.lease(now + HOUR, now, 100)).length > 0, 'some still wait')
    for (; now <= NOW + 36 * HOUR; now += HOUR) await deliver()
    assert.equal(await logoutNotices.isAnyDue(now + HOUR), false)
    assert.equal(droppedCount, 100)
  })

  for (const answers of [true, false])
    test(`a shutdown begins no further call, and those in progress are ${answers ? 'finished' : 'aborted in time'}`, async t => {
      const pending: ServerResponse[] = []
      const endpoint = createServer((_, response) => void pending.push(response)).listen(0, '127.0.0.1')
      await once(endpoint, 'listening')
      t.after(() => {
        endpoint.close()
        endpoint.closeAllConnections()
      })
      const { port } = endpoint.address() as AddressInfo
      const storage = await openWithNotices(engine, t, `http://127.0.0.1:${port}/`, 50)
      const { logoutNotices } = storage.store
      // The next attempt of each notice is its last one.
      for (const { sessionId } of await logoutNotices.lease(NOW, NOW, 100))
        for (const _ of RETRY_DELAYS) await logoutNotices.retry(sessionId, NOW)
      const failures: unknown[] = []
      const delivery = createLogoutDelivery({
        storage,
        clock: { now: () => NOW },
        jwt: SESSION_AS_TOKEN,
        log: { debug: (fields: object) => failures.push(Reflect.get(fields, 'failure')), warn() {} },
        config: { webhookPrivateNetworks: LOCAL_NETWORKS, publicUrl: 'https://auth.example.com' },
      } as never)
      // Opens the connections of the pool first: the calls must begin within two seconds, since each ends by itself after
      // five, and the shutdown aborts them after three.
      await Promise.all(Array.from({ length: 20 }, () => storage.store.apps.find('shop')))
      delivery.start()
      await until('twenty calls are in progress', () => pending.length === 20)
      const stopped = delivery.stop()
      if (answers) for (const response of pending) response.end()
      await inTime('the delivery stops', stopped)
      assert.equal(pending.length, 20)
      const remaining = await logoutNotices.lease(NOW + HOUR, NOW + HOUR, 100)
      assert.equal(remaining.length, answers ? 30 : 50)
      assert.deepEqual(failures, answers ? [] : Array(20).fill('the service is stopping'))
    })
})
