import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ApiKeys, createApiKeys } from '../../src/api-keys/api-keys.ts'
import { DORMANT_AFTER } from '../../src/api-keys/key-notices.ts'
import { DAY } from '../../src/clock.ts'
import { createHousekeeping } from '../../src/operations/housekeeping.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { caller, openServices } from '../support/services.ts'

async function open(engine: EngineName, t: TestContext) {
  const services = await openServices(engine, t)
  const { user } = await services.signIn('ada@example.com')
  const { clock, apiKeys } = services
  const createKey = (lifeMs: number | null, name = 'build server') =>
    apiKeys.create(
      user.id,
      {
        name,
        scopes: null,
        expiresAt: lifeMs === null ? null : clock.now() + lifeMs,
        appId: 'service-sdk',
        allowedNetworks: [],
      },
      caller(),
    )
  return {
    ...services,
    user,
    createKey,
    /** The days until expiry that the mailed warnings name, in order. */
    warnings: async () =>
      (await services.mailsTo('ada@example.com', 'api_key_expiring')).map(mail => mail.days).reverse(),
    usedAgainMails: () => services.mailsTo('ada@example.com', 'api_key_used_again'),
  }
}

const limits = { maxActiveKeys: 100, creationLimits: [], changeLimits: { count() {} } }

forEachEngine(engine => {
  test('the owner is notified once 14, 7 and 1 days before a key expires, and not a millisecond early', async t => {
    const { clock, apiKeys, createKey, warnings, mailsTo } = await open(engine, t)
    const { apiKey } = await createKey(30 * DAY)
    const warnThreeTimes = async () => {
      for (let again = 0; again < 3; again++) await apiKeys.warnOfExpiry()
      return warnings()
    }
    for (const [days, told] of [
      [14, [14]],
      [7, [14, 7]],
      [1, [14, 7, 1]],
    ] as const) {
      clock.set(apiKey.expiresAt! - days * DAY - 1)
      assert.deepEqual(await warnThreeTimes(), told.slice(0, -1))
      clock.advance(1)
      assert.deepEqual(await warnThreeTimes(), told)
    }
    clock.set(apiKey.expiresAt! + DAY)
    assert.deepEqual(await warnThreeTimes(), [14, 7, 1])
    const [mail] = await mailsTo('ada@example.com', 'api_key_expiring')
    assert.deepEqual(
      [mail!.keyPrefix, mail!.keyName, mail!.expiresAt],
      [apiKey.keyPrefix, 'build server', apiKey.expiresAt],
    )
  })

  test('several nodes and restarts send one warning of expiry, also after its mail was pruned', async t => {
    const services = await open(engine, t)
    const {
      opened,
      clock,
      meter,
      outbox,
      log,
      createKey,
      warnings,
      apiKeys,
      store,
      limiter,
      policies,
      imported,
      audit,
      knownNetworks,
    } = services
    await createKey(30 * DAY)
    clock.advance(16 * DAY)
    const nodes: Pick<ApiKeys, 'warnOfExpiry'>[] = [apiKeys]
    for (let restart = 0; restart < 3; restart++) {
      const storage = await opened.reopen()
      const deps = {
        limiter,
        policies,
        imported,
        alerts: apiKeys.alerts,
        storage,
        clock,
        meter,
        log,
        outbox,
        audit,
        knownNetworks,
      }
      nodes.push(createApiKeys({ ...limits, ...deps }))
    }
    const sentCounts = await Promise.all(nodes.flatMap(node => [node.warnOfExpiry(), node.warnOfExpiry()]))
    assert.equal(
      sentCounts.reduce((sum, each) => sum + each),
      1,
    )
    assert.deepEqual(await warnings(), [14])
    const mails = await store.outbox.lease(clock.now(), clock.now() + 1000, 100)
    for (const { id, leasedUntil } of mails)
      await store.outbox.settle(id, leasedUntil!, { state: 'sent', at: clock.now() - 8 * DAY, error: null })
    await createHousekeeping(services).run()
    assert.equal(await apiKeys.warnOfExpiry(), 0)
  })

  test('after downtime only the latest due warning of expiry is sent', async t => {
    const { clock, apiKeys, createKey, warnings } = await open(engine, t)
    await createKey(30 * DAY)
    clock.advance(25 * DAY)
    assert.equal(await apiKeys.warnOfExpiry(), 1)
    assert.equal(await apiKeys.warnOfExpiry(), 0)
    assert.deepEqual(await warnings(), [5])
  })

  test('no warning is sent for keys that never expire, were rotated or revoked, are short-lived, or have a suspended owner', async t => {
    const { clock, apiKeys, users, user, createKey, warnings } = await open(engine, t)
    await createKey(null)
    await createKey(12 * 60 * 60 * 1000, 'half a day')
    const revokedKey = await createKey(20 * DAY, 'revoked')
    await apiKeys.revoke(user.id, revokedKey.apiKey.id, caller())
    const rotatedKey = await createKey(20 * DAY, 'rotated')
    const successor = await apiKeys.rotate(user.id, rotatedKey.apiKey.id, 2_592_000, caller())
    clock.advance(DAY / 2 - 1)
    assert.equal(await apiKeys.warnOfExpiry(), 0)
    clock.advance(6 * DAY)
    assert.equal(await apiKeys.warnOfExpiry(), 1, 'the successor alone')
    assert.deepEqual(await warnings(), [14])
    await apiKeys.revoke(user.id, successor.apiKey.id, caller())
    await createKey(20 * DAY, 'of a suspended owner')
    await users.suspend(user.id)
    clock.advance(19.5 * DAY)
    assert.equal(await apiKeys.warnOfExpiry(), 0)
    await users.activate(user.id)
    assert.equal(await apiKeys.warnOfExpiry(), 1)
  })

  test('the owner is notified once, with the network, of the first use of a key after 90 days, also by two nodes', async t => {
    const services = await open(engine, t)
    const { opened, clock, meter, outbox, log, createKey, usedAgainMails, apiKeys } = services
    const { limiter, policies, imported, audit, knownNetworks } = services
    const { key, apiKey } = await createKey(null)
    await apiKeys.authenticate(key, caller('203.0.113.7'))
    await apiKeys.flushUses()
    const usedAt = clock.now()
    clock.set(usedAt + DORMANT_AFTER - 1)
    const ports = { limiter, policies, imported, audit, knownNetworks, alerts: apiKeys.alerts }
    const deps = { clock, meter, log, outbox, ...ports }
    const otherNode = createApiKeys({ ...limits, ...deps, storage: await opened.reopen() })
    assert.equal((await usedAgainMails()).length, 0)
    clock.advance(1)
    for (const node of [apiKeys, otherNode, apiKeys]) await node.authenticate(key, caller('203.0.113.7'))
    assert.equal((await usedAgainMails()).length, 0, 'a use itself writes nothing')
    await Promise.all([apiKeys.flushUses(), otherNode.flushUses()])
    const mails = await usedAgainMails()
    assert.deepEqual(
      mails.map(({ at, network, keyPrefix }) => [at, network, keyPrefix]),
      [[clock.now(), '203.0.113.7', apiKey.keyPrefix]],
    )
    clock.advance(1000)
    await apiKeys.authenticate(key, caller())
    await apiKeys.flushUses()
    assert.equal((await usedAgainMails()).length, 1)
  })

  test('no notice is sent for a key used within 90 days, counted from its creation if it was never used', async t => {
    const { clock, createKey, usedAgainMails, apiKeys } = await open(engine, t)
    const usedKey = await createKey(null, 'used')
    await createKey(null, 'other')
    const unusedKey = await createKey(null, 'never used')
    await apiKeys.authenticate(usedKey.key, caller())
    await apiKeys.flushUses()
    clock.advance(DORMANT_AFTER - 1)
    await apiKeys.authenticate(usedKey.key, caller())
    await apiKeys.flushUses()
    assert.equal((await usedAgainMails()).length, 0)
    clock.advance(1)
    await apiKeys.authenticate(unusedKey.key, caller())
    await apiKeys.authenticate(usedKey.key, caller())
    await apiKeys.flushUses()
    assert.deepEqual(
      (await usedAgainMails()).map(({ keyName }) => keyName),
      ['never used'],
    )
  })
})
