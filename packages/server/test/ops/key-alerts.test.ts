import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_KNOWN_NETWORKS } from '../../src/api-keys/key-alert-store.ts'
import type { LimitAlert } from '../../src/api-keys/key-alerts.ts'
import { DORMANT_AFTER } from '../../src/api-keys/key-notices.ts'
import { createCharges } from '../../src/billing/charges.ts'
import { MICROS_PER_DOLLAR } from '../../src/billing/money.ts'
import { DAY } from '../../src/clock.ts'
import { NO_LIMITS, type SpendLimit } from '../../src/limits/limit.ts'
import { createHousekeeping, RETENTION } from '../../src/operations/housekeeping.ts'
import { MAX_NOTICES_PER_DAY } from '../../src/outbox/outbox.ts'
import { aKey, anEntry } from '../contract/fixtures.ts'
import { untilAnswered } from '../ops/raced-charges.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, refusedWith, type Services } from '../support/services.ts'

const ADA = 'ada@example.com'
const CENT = MICROS_PER_DOLLAR / 100
const NEW_KEY = { name: 'Robot', scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

async function openKey(services: Services, spend: SpendLimit[] = []) {
  const { user } = await services.signIn(ADA)
  const createdKey = await services.apiKeys.create(
    user.id,
    { ...NEW_KEY, limits: { ...NO_LIMITS, spend } },
    caller(),
  )
  const events = async (type: string) => {
    const { rows } = await services.store.securityEvents.list(user.id, { limit: 1000, after: null })
    return rows.filter(event => event.type === type && event.keyId === createdKey.apiKey.id)
  }
  const useFrom = async (address: string, node: Pick<Services, 'agentTokens' | 'apiKeys'> = services) => {
    await node.agentTokens.exchange(createdKey.key, undefined, caller(address))
    await node.apiKeys.flushUses()
  }
  return { userId: user.id, ...createdKey, events, useFrom }
}

/** Opens another node, which has its own memory of what it alerted about. */
async function openAnotherNode(services: Services, t: Parameters<typeof openServices>[1]) {
  const node = await services.opened.reopen()
  return openServices(services.opened.config.database.engine, t, { on: { node, of: services.opened } })
}

forEachEngine(engine => {
  test('80 and 100 % of a spend limit are mailed once each and period, with charges raced on two nodes', async t => {
    const services = await openServices(engine, t)
    const { userId, apiKey, events } = await openKey(services, [{ amount: 10 * CENT, per: 'day' }])
    const { onSpend } = services.apiKeys.alerts
    const nodes = [
      createCharges({ ...services, onSpend }),
      createCharges({ storage: await services.opened.reopen(), clock: services.clock, onSpend }),
    ]
    await services.opened.storage.store.billing.post(
      anEntry(userId, 10 * MICROS_PER_DOLLAR, { createdAt: services.clock.now() }),
    )
    const chargeRequest = { userId, keyId: apiKey.id, amount: CENT, description: 'a call' }
    const charge = (name: string, n = 0) =>
      untilAnswered(nodes[n % 2]!, { id: 'hub' }, chargeRequest, `${name}-${n}-0000000000`)
    const readPercents = async () =>
      (await services.mailsTo(ADA, 'api_key_limit')).map(({ percent }) => percent).sort()
    await Promise.all(Array.from({ length: 7 }, (_, n) => charge('first', n)))
    assert.deepEqual(await readPercents(), [])
    await charge('eighth')
    assert.deepEqual(await readPercents(), [80])
    const [atEightyPercent] = await services.mailsTo(ADA, 'api_key_limit')
    assert.deepEqual([atEightyPercent!.allowed, atEightyPercent!.used], [10 * CENT, 8 * CENT])
    await Promise.all(Array.from({ length: 20 }, (_, n) => charge('raced', n)))
    assert.deepEqual(await readPercents(), [100, 80])
    assert.equal((await events('api_key_limit_near')).length, 1)
    assert.equal((await events('api_key_limit_reached')).length, 1)
    const [mail] = await services.mailsTo(ADA, 'api_key_limit')
    assert.deepEqual([mail!.limit, mail!.per, mail!.keyName], ['spend', 'day', 'Robot'])
    services.clock.advance(DAY)
    await Promise.all(Array.from({ length: 8 }, (_, n) => charge('tomorrow', n)))
    assert.deepEqual(await readPercents(), [100, 80, 80])
  })

  test('of one kind an account gets a hundred notices a day; other kinds are not affected, and every event is recorded', async t => {
    const services = await openServices(engine, t)
    const { clock, storage } = services
    const { userId, apiKey, events } = await openKey(services)
    await storage.transaction(async tx => {
      for (let n = 0; n <= MAX_NOTICES_PER_DAY; n++)
        await tx.apiKeys.insert(aKey(userId, { expiresAt: clock.now() + 7 * DAY, lastUsedAt: null }))
    })
    assert.equal(await services.apiKeys.warnOfExpiry(), MAX_NOTICES_PER_DAY + 1)
    const count = async (kind: 'api_key_expiring' | 'api_key_limit') =>
      (await services.mailsTo(ADA, kind)).length
    assert.equal(await count('api_key_expiring'), MAX_NOTICES_PER_DAY)
    services.apiKeys.alerts.noteLimit(apiKey, { limit: 'requests', per: 'minute', percent: 100, allowed: 1 })
    await services.apiKeys.alerts.flush()
    assert.equal(await count('api_key_limit'), 1)
    assert.equal((await events('api_key_limit_reached')).length, 1)

    clock.advance(DAY)
    await storage.transaction(tx => tx.apiKeys.insert(aKey(userId, { expiresAt: clock.now() + 7 * DAY })))
    await services.apiKeys.warnOfExpiry()
    assert.equal(await count('api_key_expiring'), MAX_NOTICES_PER_DAY + 1)
  })

  test('a charge that is refused for a limit causes the mail that it is reached, also below 80 %', async t => {
    const services = await openServices(engine, t)
    const { userId, apiKey } = await openKey(services, [{ amount: 10 * CENT, per: 'total' }])
    const charges = createCharges({ ...services, onSpend: services.apiKeys.alerts.onSpend })
    const chargeRequest = { userId, keyId: apiKey.id, amount: 11 * CENT, description: 'a call' }
    for (const n of [1, 2])
      assert.equal(
        await refusedWith(charges.charge({ id: 'hub' }, chargeRequest, `too-much-${n}-0000000`)),
        'spend_limit_reached',
      )
    const mails = await services.mailsTo(ADA, 'api_key_limit')
    assert.deepEqual(
      mails.map(({ percent, per }) => [percent, per]),
      [[100, 'total']],
    )
  })

  test('alerts about request limits and quotas are mailed with the next flush, once a day over all nodes', async t => {
    const services = await openServices(engine, t)
    const secondNode = await openAnotherNode(services, t)
    const { apiKey, events } = await openKey(services)
    const requests: LimitAlert = { limit: 'requests', per: 'second', percent: 100, allowed: 5, used: 5 }
    const quota: LimitAlert = { limit: 'quota', per: 'month', percent: 80, allowed: 10, used: 8 }
    const noteLimitsOnBothNodes = async () => {
      for (const { apiKeys } of [services, secondNode]) {
        for (let n = 0; n < 100; n++) apiKeys.alerts.noteLimit(apiKey, requests)
        apiKeys.alerts.noteLimit(apiKey, quota)
      }
      await Promise.all([services.apiKeys.flushUses(), secondNode.apiKeys.flushUses()])
    }
    await noteLimitsOnBothNodes()
    await noteLimitsOnBothNodes()
    assert.equal((await services.mailsTo(ADA, 'api_key_limit')).length, 2)
    assert.equal((await events('api_key_limit_reached')).length, 1)
    services.clock.advance(DAY)
    await noteLimitsOnBothNodes()
    assert.equal((await services.mailsTo(ADA, 'api_key_limit')).length, 3, 'the month is the same')
  })

  test('requests and consumed calls that pass 80 and 100 % of a limit are mailed by the node that counted them', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn(ADA)
    const limits = {
      requests: [{ limit: 10, per: 'hour' as const }],
      spend: [],
      quota: { remaining: 10, refill: null },
    }
    const { apiKey } = await services.apiKeys.create(user.id, { ...NEW_KEY, limits }, caller())
    const mailedAlerts = async () => {
      await services.apiKeys.flushUses()
      const mails = await services.mailsTo(ADA, 'api_key_limit')
      return mails
        .map(({ limit, per, percent, used }) => `${limit} per ${per} ${percent}, ${used ?? '?'} used`)
        .sort()
    }
    await services.limiter.consume(apiKey, 7)
    assert.deepEqual(await mailedAlerts(), [])
    await services.limiter.consume(apiKey, 1)
    const alertsAtEightyPercent = ['quota per total 80, 8 used', 'requests per hour 80, 8 used']
    assert.deepEqual(await mailedAlerts(), alertsAtEightyPercent)
    assert.equal(await refusedWith(services.limiter.consume(apiKey, 3)), 'quota_exhausted')
    assert.deepEqual(await mailedAlerts(), ['quota per total 100, ? used', ...alertsAtEightyPercent])
    await services.limiter.consume(apiKey, 2)
    assert.deepEqual(await mailedAlerts(), [
      'quota per total 100, ? used',
      alertsAtEightyPercent[0],
      'requests per hour 100, 10 used',
      alertsAtEightyPercent[1],
    ])
  })

  test('exchanges that pass 80 and 100 % of a limit are mailed, and refused ones once a day after it', async t => {
    const services = await openServices(engine, t)
    const { clock, apiKeys, agentTokens } = services
    clock.advance(1.5 * DAY - (clock.now() % DAY))
    const { user } = await services.signIn(ADA)
    const limits = { requests: [{ limit: 10, per: 'day' as const }], spend: [], quota: null }
    const { key } = await apiKeys.create(user.id, { ...NEW_KEY, limits }, caller())
    const mailedAlertsAfter = async (exchanges: number) => {
      for (let n = 0; n < exchanges; n++) await refusedWith(agentTokens.exchange(key, undefined, caller()))
      await apiKeys.flushUses()
      const mails = await services.mailsTo(ADA, 'api_key_limit')
      return mails.map(({ percent, used }) => `${percent} %, ${used} used`).sort()
    }
    const [reached, near] = ['100 %, 10 used', '80 %, 8 used']
    assert.deepEqual(await mailedAlertsAfter(7), [])
    assert.deepEqual(await mailedAlertsAfter(1), [near])
    assert.deepEqual(await mailedAlertsAfter(2), [reached, near])
    assert.deepEqual(await mailedAlertsAfter(2), [reached, near])
    clock.advance(DAY / 2)
    assert.deepEqual(await mailedAlertsAfter(2), [reached, reached, near])
  })

  test('a key that is used from a new network is a security event each time and a mail once a day', async t => {
    const services = await openServices(engine, t)
    const { useFrom, events } = await openKey(services)
    const noticeCounts = async () => [
      (await services.mailsTo(ADA, 'api_key_new_network')).length,
      (await events('api_key_new_network')).length,
    ]
    await useFrom('192.0.2.1')
    await useFrom('192.0.2.200')
    assert.deepEqual(await noticeCounts(), [0, 0], 'its first network, and an address of the same')
    await useFrom('198.51.100.7')
    assert.deepEqual(await noticeCounts(), [1, 1])
    assert.equal((await services.mailsTo(ADA, 'api_key_new_network'))[0]!.network, '198.51.100.7')
    assert.equal((await events('api_key_new_network'))[0]!.network, '198.51.100.7')
    await useFrom('198.51.100.8')
    await useFrom('2001:db8::1')
    assert.deepEqual(await noticeCounts(), [1, 2])
    services.clock.advance(DAY)
    await useFrom('192.0.2.1')
    await useFrom('2001:db8:0:ffff::1')
    assert.deepEqual(await noticeCounts(), [1, 2])
    await useFrom('203.0.113.9')
    assert.deepEqual(await noticeCounts(), [2, 3])
  })

  test('a use from a new network is noticed between uses from a known one within one flush', async t => {
    const services = await openServices(engine, t)
    const { key, useFrom, events } = await openKey(services)
    await useFrom('192.0.2.1')
    await services.agentTokens.exchange(key, undefined, caller('198.51.100.7'))
    await useFrom('192.0.2.1')
    assert.equal((await services.mailsTo(ADA, 'api_key_new_network')).length, 1)
    assert.equal((await events('api_key_new_network'))[0]!.network, '198.51.100.7')
  })

  test('a new network that two nodes see at once is announced once, and one that a restart forgot is known', async t => {
    const services = await openServices(engine, t)
    const secondNode = await openAnotherNode(services, t)
    const { useFrom, events } = await openKey(services)
    await useFrom('192.0.2.1')
    await Promise.all([useFrom('198.51.100.7'), useFrom('198.51.100.8', secondNode)])
    await useFrom('192.0.2.1', await openAnotherNode(services, t))
    assert.equal((await services.mailsTo(ADA, 'api_key_new_network')).length, 1)
    assert.equal((await events('api_key_new_network')).length, 1)
  })

  test('of a key that is used from everywhere a bounded number of networks is kept, for 90 days', async t => {
    const services = await openServices(engine, t)
    const { useFrom, events } = await openKey(services)
    const { clock } = services
    for (let n = 0; n < MAX_KNOWN_NETWORKS + 6; n++) await useFrom(`198.51.${n}.1`)
    assert.equal((await events('api_key_new_network')).length, MAX_KNOWN_NETWORKS - 1)
    const housekeeping = createHousekeeping(services)
    clock.advance(RETENTION.keyNetworks)
    await useFrom('198.51.0.1')
    clock.advance(1)
    await housekeeping.run()
    await useFrom('198.51.1.1')
    assert.equal((await events('api_key_new_network')).length, MAX_KNOWN_NETWORKS, 'known no more')
  })

  test('a dormant key in use again is a security event beside its mail', async t => {
    const services = await openServices(engine, t)
    const { useFrom, events } = await openKey(services)
    services.clock.advance(DORMANT_AFTER)
    await useFrom('192.0.2.1')
    await useFrom('192.0.2.1')
    assert.equal((await services.mailsTo(ADA, 'api_key_used_again')).length, 1)
    assert.equal((await events('api_key_used_again')).length, 1)
  })
})
