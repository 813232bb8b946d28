import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { createCharges } from '../../src/billing/charges.ts'
import { HOUR, MINUTE } from '../../src/clock.ts'
import { unavailable } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { createIntrospection } from '../../src/introspection/introspection.ts'
import { createHousekeeping } from '../../src/operations/housekeeping.ts'
import { createStorage } from '../../src/storage/database.ts'
import type { Storage } from '../../src/store.ts'
import { createMeter } from '../../src/usage/meter.ts'
import { MAX_BUCKETS } from '../../src/usage/range.ts'
import { createUsageReports } from '../../src/usage/reports.ts'
import { COUNTERS, type UsageBucket } from '../../src/usage/usage.ts'
import {
  type EngineName,
  forEachEngine,
  openTestStorage,
  postgresConfig,
  postgresMissing,
} from '../support/engines.ts'
import { startProxy } from '../support/proxy.ts'
import { caller, openServices, refusedWith, type Services } from '../support/services.ts'

const NEW_KEY = { name: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

async function withKey(
  services: Services,
  change: Partial<Parameters<Services['apiKeys']['create']>[1]> = {},
) {
  const { user, tokens } = await services.signIn('ada@example.com')
  const { key, apiKey } = await services.apiKeys.create(
    user.id,
    { ...NEW_KEY, scopes: null, ...change },
    caller(),
  )
  return { userId: user.id, key, keyId: apiKey.id, accessToken: tokens.accessToken }
}

/** The non-zero counts of the only bucket that has any. */
function soleUsedBucket(buckets: UsageBucket[]): Partial<UsageBucket> {
  const usedBuckets = buckets
    .map(bucket =>
      Object.fromEntries(
        COUNTED_FIELDS.filter(name => isUsed(bucket[name])).map(name => [name, bucket[name]]),
      ),
    )
    .filter(counts => Object.keys(counts).length > 0)
  assert.equal(usedBuckets.length, 1, `${usedBuckets.length} buckets are used`)
  return usedBuckets[0]!
}

const COUNTED_FIELDS = [...COUNTERS, 'refused'] as const

function isUsed(value: number | object): boolean {
  return typeof value === 'number' ? value > 0 : Object.keys(value).length > 0
}

forEachEngine(engine => {
  test('uses of a key count for the key and its owner only', async t => {
    const services = await openServices(engine, t)
    const { agentTokens, usage, meter } = services
    const { userId, key, keyId, accessToken } = await withKey(services)
    const { introspect } = createIntrospection({ ...services })
    const { token } = await agentTokens.exchange(key, undefined, caller())
    await agentTokens.exchange(key, undefined, caller())
    for (const presented of [key, token, accessToken, 'svc_00000000000000000000000000000000'])
      await introspect(presented)
    await meter.flush()
    assert.deepEqual(soleUsedBucket(await usage.ofKey(userId, keyId)), { exchanges: 2, introspections: 2 })
    assert.deepEqual(soleUsedBucket(await usage.ofUser(userId)), { exchanges: 2, introspections: 3 })
    assert.deepEqual(soleUsedBucket(await usage.ofUser(userId, { bucket: 'hour' })), {
      exchanges: 2,
      introspections: 3,
    })
    const bob = await services.signIn('bob@example.com')
    assert.ok((await usage.ofUser(bob.user.id)).every(bucket => bucket.exchanges === 0))
  })

  test('refusals of a known key are counted by code, and unknown keys are not counted', async t => {
    const services = await openServices(engine, t, { exchangeLimits: [{ window: 'minute', limit: 1 }] })
    const { agentTokens, apiKeys, usage, meter } = services
    const { userId, key, keyId } = await withKey(services, { allowedNetworks: ['192.0.2.0/24'] })
    const exchange = (from: string, presented = key) =>
      refusedWith(agentTokens.exchange(presented, undefined, caller(from)))
    assert.equal(await exchange('192.0.2.1'), 'none')
    assert.equal(await exchange('192.0.2.1'), 'rate_limited')
    assert.equal(await exchange('10.0.0.1'), 'network_not_allowed')
    assert.equal(await exchange('10.0.0.1', 'svc_00000000000000000000000000000000'), 'invalid_api_key')
    await apiKeys.revoke(userId, keyId, null)
    for (let n = 0; n < 3; n++) assert.equal(await exchange('192.0.2.1'), 'api_key_revoked')
    await meter.flush()
    const refusalCounts = { rate_limited: 1, network_not_allowed: 1, api_key_revoked: 3 }
    assert.deepEqual(soleUsedBucket(await usage.ofKey(userId, keyId)), {
      exchanges: 1,
      refused: refusalCounts,
    })
    assert.deepEqual(soleUsedBucket(await usage.ofUser(userId)), { exchanges: 1, refused: refusalCounts })
  })

  test('a charge is counted once, also when it is repeated', async t => {
    const services = await openServices(engine, t)
    const { userId } = await withKey(services)
    const charges = createCharges(services)
    const charge = (amount: number, key: string) =>
      charges.charge({ id: 'hub' }, { userId, amount, description: 'messages' }, key)
    for (let n = 0; n < 3; n++) await charge(250_000, 'the-same-key-0000')
    await charge(10_000, 'another-key-00000')
    assert.equal(await refusedWith(charge(9_000_000, 'too-much-00000000')), 'insufficient_balance')
    assert.deepEqual(soleUsedBucket(await services.usage.ofUser(userId)), { charged: 260_000 })
  })

  test('an exchange writes nothing; counts are written in batches', async t => {
    const services = await openServices(engine, t)
    const { userId, key, keyId } = await withKey(services)
    for (let n = 0; n < 5; n++) await services.agentTokens.exchange(key, undefined, caller())
    assert.ok((await services.usage.ofKey(userId, keyId)).every(bucket => bucket.exchanges === 0))
    await services.meter.flush()
    assert.equal((await services.usage.ofKey(userId, keyId)).at(-1)!.exchanges, 5)
  })

  test('the usage of a person is kept after the key’s deletion, and deleted a day after the account', async t => {
    const services = await openServices(engine, t)
    const { clock, store, usage } = services
    const { userId, key, keyId } = await withKey(services, { expiresAt: clock.now() + MINUTE })
    await services.agentTokens.exchange(key, undefined, caller())
    await services.meter.flush()
    assert.equal(await store.apiKeys.prune(clock.now() + HOUR, 10), 1)
    assert.equal(
      await services.apiKeys.get(userId, keyId).then(
        () => 'found',
        error => error.code,
      ),
      'not_found',
    )
    assert.deepEqual(soleUsedBucket(await usage.ofUser(userId)), { exchanges: 1 })
    await services.users.delete(userId)
    clock.advance(24 * HOUR + 1)
    await createHousekeeping(services).run()
    assert.deepEqual(await store.usage.read({ userId, keyId: null }, 'day', 0, clock.now()), [])
    assert.deepEqual(await store.usage.read({ userId, keyId }, 'hour', 0, clock.now()), [])
  })

  describe('the meter', () => {
    test('counts of two hours go to their own buckets, also when stored together', async t => {
      const { clock, meter, reports, userId, keyId } = await withMeter(engine, t)
      meter.count(userId, keyId, 'exchanges')
      clock.advance(HOUR - 1)
      meter.count(userId, keyId, 'exchanges', 2)
      clock.advance(1)
      meter.count(userId, keyId, 'exchanges', 4)
      await meter.flush()
      const hourlyBuckets = await reports.ofKey(userId, keyId, { bucket: 'hour' })
      assert.deepEqual(
        hourlyBuckets.slice(-2).map(bucket => bucket.exchanges),
        [3, 4],
      )
      assert.deepEqual((await reports.ofKey(userId, keyId)).at(-1)!.exchanges, 7)
    })

    test('a flush whose COMMIT was answered with an error is added once when it is retried', async t => {
      let isCut = true
      const { meter, reports, userId, keyId } = await withMeter(engine, t, real => ({
        ...real,
        async transaction(work, readBack) {
          const outcome = await real.transaction(work, readBack)
          if (isCut) throw unavailable('cut')
          return outcome
        },
      }))
      meter.count(userId, keyId, 'exchanges', 3)
      await assert.rejects(meter.flush(), { code: 'unavailable' })
      meter.count(userId, keyId, 'exchanges', 4)
      await assert.rejects(meter.flush(), { code: 'unavailable' })
      isCut = false
      await meter.flush()
      await meter.flush()
      assert.equal((await reports.ofKey(userId, keyId)).at(-1)!.exchanges, 7)
    })

    test('a failed flush is stored by the next one, with later counts', async t => {
      let isDown = true
      const { meter, reports, userId, keyId } = await withMeter(engine, t, real => ({
        ...real,
        transaction: (work, readBack) =>
          isDown ? Promise.reject(unavailable('down')) : real.transaction(work, readBack),
      }))
      meter.count(userId, keyId, 'exchanges', 3)
      await assert.rejects(meter.flush())
      meter.count(userId, keyId, 'messagesSent')
      isDown = false
      await meter.flush()
      assert.deepEqual(soleUsedBucket(await reports.ofKey(userId, keyId)), { exchanges: 3, messagesSent: 1 })
    })

    test('counts during a flush are stored by the next one', async t => {
      const gate = Promise.withResolvers<void>()
      const flushReached = Promise.withResolvers<void>()
      const { meter, reports, userId, keyId } = await withMeter(engine, t, real => ({
        ...real,
        async transaction(work, readBack) {
          flushReached.resolve()
          await gate.promise
          return real.transaction(work, readBack)
        },
      }))
      meter.count(userId, keyId, 'exchanges')
      const firstFlush = meter.flush()
      await flushReached.promise
      meter.count(userId, keyId, 'exchanges')
      gate.resolve()
      await firstFlush
      assert.equal((await reports.ofKey(userId, keyId)).at(-1)!.exchanges, 1)
      await meter.flush()
      assert.equal((await reports.ofKey(userId, keyId)).at(-1)!.exchanges, 2)
    })

    test('many keys are stored in several transactions, each of which adds once', async t => {
      let transactionCount = 0
      const { meter, reports, userId } = await withMeter(engine, t, real => ({
        ...real,
        async transaction(work, readBack) {
          const outcome = await real.transaction(work, readBack)
          if (++transactionCount === 2) throw unavailable('cut')
          return outcome
        },
      }))
      const keys = Array.from({ length: 600 }, () => newId(0))
      for (const keyId of keys) meter.count(userId, keyId, 'exchanges')
      await assert.rejects(meter.flush())
      for (const keyId of keys) meter.count(userId, keyId, 'exchanges')
      await meter.flush()
      assert.deepEqual(soleUsedBucket(await reports.ofUser(userId)), { exchanges: 1200 })
      assert.deepEqual(soleUsedBucket(await reports.ofKey(userId, keys[599]!)), { exchanges: 2 })
      assert.ok(transactionCount >= 6, `${transactionCount} transactions`)
    })

    test('beyond the maximum number of keys none are counted until a flush, which starts early', async t => {
      const gate = Promise.withResolvers<void>()
      const bounds = { maxSubjects: 4, flushEarlyAt: 3 }
      const flushBegun = Promise.withResolvers<void>()
      const { meter, reports, userId } = await withMeter(
        engine,
        t,
        real => ({
          ...real,
          async transaction(work, readBack) {
            flushBegun.resolve()
            await gate.promise
            return real.transaction(work, readBack)
          },
        }),
        bounds,
      )
      const keys = Array.from({ length: 10 }, () => newId(0))
      for (const keyId of keys) meter.count(userId, keyId, 'exchanges')
      await flushBegun.promise
      for (const keyId of keys) meter.count(userId, keyId, 'exchanges')
      gate.resolve()
      await meter.flush()
      const { exchanges } = soleUsedBucket(await reports.ofUser(userId))
      assert.ok(exchanges! >= 4 && exchanges! <= 8, `${exchanges} counted`)
      for (const keyId of keys.slice(0, 2)) meter.count(userId, keyId, 'apiCalls')
      await meter.flush()
      assert.equal(soleUsedBucket(await reports.ofUser(userId)).apiCalls, 2, 'there is room again')
    })
  })

  test('an empty, future, too long or outdated range is refused', async t => {
    const { clock, reports, userId } = await withMeter(engine, t)
    const now = clock.now()
    const fieldsOf = (range: Parameters<typeof reports.ofUser>[1]) =>
      reports.ofUser(userId, range).then(
        buckets => buckets.length,
        error => error.extras.errors.map(({ field }: { field: string }) => field).join(),
      )
    assert.equal(await fieldsOf({}), 30)
    assert.equal(await fieldsOf({ bucket: 'hour' }), 24)
    assert.equal(await fieldsOf({ from: now }), 1)
    assert.equal(await fieldsOf({ from: now, to: now }), 'to')
    assert.equal(await fieldsOf({ from: now + 1 }), 'from')
    assert.equal(await fieldsOf({ to: 0 }), 'to')
    assert.equal(await fieldsOf({ to: now + 1000 * HOUR }), 30, 'no bucket is after the present one')
    assert.equal(await fieldsOf({ bucket: 'hour', from: now - (MAX_BUCKETS - 1) * HOUR }), MAX_BUCKETS)
    assert.equal(await fieldsOf({ bucket: 'hour', from: now - MAX_BUCKETS * HOUR }), 'from')
    const [days90, days400] = [90 * 24 * HOUR, 400 * 24 * HOUR]
    assert.equal(await fieldsOf({ bucket: 'hour', from: now - days90, to: now - days90 + HOUR }), 1)
    assert.equal(await fieldsOf({ bucket: 'hour', from: now - days90 - HOUR, to: now - days90 }), 'from')
    assert.equal(await fieldsOf({ from: now - days400 }), 401)
    assert.equal(await fieldsOf({ from: now - days400 - 24 * HOUR }), 'from')
  })
})

describe('with broken connections', { skip: postgresMissing() }, () => {
  for (const when of ['unanswered', 'unreceived'] as const) {
    test(`a flush whose COMMIT was cut ${when} adds once`, async t => {
      const testStorage = await openTestStorage('postgres', t)
      const { database } = testStorage.config
      const proxy = await startProxy(database.engine === 'postgres' ? database.url : '', t)
      const config = postgresConfig(proxy.through(database.engine === 'postgres' ? database.url : ''))
      const storageThroughProxy = await createStorage(config, testStorage.log)
      t.after(() => storageThroughProxy.close())
      const meter = createMeter({
        storage: storageThroughProxy,
        clock: testStorage.clock,
        log: testStorage.log,
      })
      const [userId, keyId] = [newId(0), newId(0)]
      let expectedCount = 0
      for (let round = 0; round < 5; round++) {
        meter.count(userId, keyId, 'exchanges')
        expectedCount++
        proxy.cutCommits(1, when)
        await meter.flush().catch(() => {})
      }
      proxy.heal()
      await meter.flush()
      assert.equal(proxy.commitsCut, 5)
      const reports = createUsageReports(testStorage)
      assert.deepEqual(soleUsedBucket(await reports.ofKey(userId, keyId)), { exchanges: expectedCount })
      assert.deepEqual(soleUsedBucket(await reports.ofUser(userId)), { exchanges: expectedCount })
    })
  }
})

async function withMeter(
  engine: EngineName,
  t: TestContext,
  wrapStorage: (real: Storage) => Storage = real => real,
  bounds: { maxSubjects?: number; flushEarlyAt?: number } = {},
) {
  const testStorage = await openTestStorage(engine, t)
  const { clock, log, storage } = testStorage
  const meter = createMeter({ storage: wrapStorage(storage), clock, log, ...bounds })
  return {
    clock,
    storage,
    meter,
    reports: createUsageReports({ storage, clock }),
    userId: newId(0),
    keyId: newId(0),
  }
}
