import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { refusalOf, statusOf, toScopes } from '../../src/api-keys/api-key.ts'
import type { NewApiKey } from '../../src/api-keys/api-keys.ts'
import { createKeyNotices } from '../../src/api-keys/key-notices.ts'
import { createLastUsed, type LastUsedNotices } from '../../src/api-keys/last-used.ts'
import { CHANGE_LIMITS } from '../../src/change-limits.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/clock.ts'
import { KeywayError } from '../../src/errors.ts'
import type { Event } from '../../src/events.ts'
import { newId } from '../../src/ids.ts'
import type { RateWindow } from '../../src/rate-windows.ts'
import { createStorage } from '../../src/storage/database.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const NEW_KEY: NewApiKey = {
  name: null,
  scopes: null,
  expiresAt: null,
  appId: 'service-sdk',
  allowedNetworks: [],
}
const FIRST_PAGE = { limit: 50, after: null }

async function withOwner(services: Services, email = 'ada@example.com') {
  const { user } = await services.signIn(email)
  const makeKey = (change: Partial<NewApiKey> = {}) =>
    services.apiKeys.create(user.id, { ...NEW_KEY, ...change }, caller())
  return { userId: user.id, makeKey }
}

/** Resolves with the next event of this type. */
function nextEvent(services: Services, type: Event['type']): Promise<Event> {
  return new Promise(resolve => {
    const unsubscribe = services.storage.events.subscribe(event => {
      if (event.type !== type) return
      unsubscribe()
      resolve(event)
    })
  })
}

async function eventsOf(services: Services, userId: string): Promise<string[]> {
  return (await services.store.securityEvents.list(userId, FIRST_PAGE)).rows.map(({ type }) => type)
}

forEachEngine(engine => {
  test('a quota that is not refilled keeps its calls when the limits are set again without a number of calls', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { apiKey } = await makeKey()
    const setQuota = async (remaining: number | null) => {
      const limits = { requests: [], spend: [], quota: { remaining, refill: null } }
      return (await services.apiKeys.update(userId, apiKey.id, { limits }, 'person')).limits.quota
    }
    const quota = await setQuota(7)
    assert.equal(quota?.granted, 7)
    assert.deepEqual(await setQuota(null), quota)
  })

  test('network changes are limited per credential, and a change to the same networks is not recorded', async t => {
    const services = await openServices(engine, t)
    const { apiKeys, store, clock } = services
    const { userId, makeKey } = await withOwner(services)
    const { apiKey } = await makeKey({ allowedNetworks: ['10.0.0.0/8'] })
    const changeNetworks = (allowedNetworks: string[], by: 'person' | 'key' = 'person') =>
      apiKeys.update(userId, apiKey.id, { allowedNetworks }, by)
    const endings = async () => (await store.endings.since(0, null, 1000)).length
    const endingsBefore = await endings()
    for (let n = 0; n < 200; n++) await changeNetworks(['10.0.0.0/8'])
    assert.equal(await endings(), endingsBefore)
    const perMinute = CHANGE_LIMITS.find(({ window }) => window === 'minute')!.limit
    for (let n = 0; n < perMinute; n++) await changeNetworks([`10.0.0.${n}/32`])
    assert.equal(await endings(), endingsBefore + perMinute)
    assert.equal(await refusedWith(changeNetworks(['10.1.0.0/16'])), 'rate_limited')
    assert.equal((await apiKeys.update(userId, apiKey.id, { name: 'Laptop' }, 'person')).name, 'Laptop')
    assert.equal(await refusedWith(changeNetworks(['10.1.0.0/16'], 'key')), 'session_required')
    clock.advance(MINUTE)
    for (let n = 0; n <= perMinute; n++) await changeNetworks(['10.1.0.0/16'], 'key').catch(() => {})
    assert.deepEqual((await changeNetworks(['10.1.0.0/16'])).allowedNetworks, ['10.1.0.0/16'])
  })

  test('a key is svc_ and 32 characters, and only its hash and first 12 characters are stored', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey()
    assert.match(key, /^svc_[0-9A-Za-z]{32}$/)
    assert.equal(apiKey.keyPrefix, key.slice(0, 12))
    const storedKey = await services.apiKeys.get(userId, apiKey.id)
    assert.equal(storedKey.keyHash, createHash('sha256').update(key).digest('base64url'))
    assert.doesNotMatch(JSON.stringify(storedKey), new RegExp(key.slice(0, 13)))
    assert.ok((await eventsOf(services, userId)).includes('api_key_created'))
  })

  test('a key is stored with the fields of its creation', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const wantedFields = {
      name: 'Büro 🔑',
      scopes: toScopes(['agent:connect', 'own:thing']),
      expiresAt: services.clock.now() + DAY,
      appId: 'hub',
      allowedNetworks: ['10.0.0.0/8', '2001:db8::/32'],
    }
    const { apiKey } = await makeKey(wantedFields)
    const { name, scopes, expiresAt, appId, allowedNetworks } = await services.apiKeys.get(userId, apiKey.id)
    assert.deepEqual({ name, scopes, expiresAt, appId, allowedNetworks }, wantedFields)
  })

  test('an app id needs no registration, and an expiry must be in the future', async t => {
    const services = await openServices(engine, t)
    const { makeKey } = await withOwner(services)
    assert.equal((await makeKey({ appId: 'my-tool' })).apiKey.appId, 'my-tool')
    assert.equal(await refusedWith(makeKey({ expiresAt: services.clock.now() })), 'invalid_request')
    await makeKey({ expiresAt: services.clock.now() + 1 })
  })

  test('KEY-29: of twenty concurrent creations for the last free place one succeeds, and inactive keys take no place', async t => {
    const services = await openServices(engine, t, { maxActiveKeys: 3 })
    const { userId, makeKey } = await withOwner(services)
    const firstKey = await makeKey()
    await makeKey({ expiresAt: services.clock.now() + SECOND })
    const { won, refused } = await race(20, () => makeKey())
    assert.equal(won.length, 1)
    assert.deepEqual([...new Set(refused)], ['key_limit_reached'])
    await services.apiKeys.revoke(userId, firstKey.apiKey.id, caller())
    services.clock.advance(SECOND)
    await makeKey()
    await makeKey()
    assert.equal(await refusedWith(makeKey()), 'key_limit_reached')
  })

  test('of twenty concurrent creations with one id one succeeds, and only its key works', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const id = newId(services.clock.now())
    const { won, refused } = await race(20, () => makeKey({ id }))
    assert.equal(won.length, 1)
    assert.deepEqual([...new Set(refused)], ['idempotency_conflict'])
    assert.equal((await services.apiKeys.authenticate(won[0]!.key, caller())).id, id)
    const { rows } = await services.apiKeys.list(userId, null, FIRST_PAGE)
    assert.deepEqual(
      rows.map(row => row.id),
      [id],
    )
  })

  test('a key is not created if its condition fails, and the refusal is that of the condition', async t => {
    const services = await openServices(engine, t)
    const { userId } = await withOwner(services)
    const condition = {
      consume: async () => false,
      refusal: () => new KeywayError('forbidden', 'Not approved.'),
    }
    await assert.rejects(services.apiKeys.create(userId, NEW_KEY, caller(), condition), {
      code: 'forbidden',
      message: 'Not approved.',
    })
    assert.deepEqual((await services.apiKeys.list(userId, null, FIRST_PAGE)).rows, [])
  })

  test('keys are listed newest first, in pages, by status, and only to their owner', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const otherOwner = await withOwner(services, 'bob@example.com')
    await otherOwner.makeKey()
    const ids: string[] = []
    for (let index = 0; index < 5; index++) {
      ids.unshift((await makeKey(index === 0 ? { expiresAt: services.clock.now() + MINUTE } : {})).apiKey.id)
      services.clock.advance(1)
    }
    await services.apiKeys.revoke(userId, ids[0]!, caller())
    services.clock.advance(MINUTE)
    const list = async (status: Parameters<typeof services.apiKeys.list>[1]) =>
      (await services.apiKeys.list(userId, status, FIRST_PAGE)).rows.map(({ id }) => id)
    assert.deepEqual(await list(null), ids)
    assert.deepEqual(await list('revoked'), [ids[0]])
    assert.deepEqual(await list('active'), ids.slice(1, 4))
    assert.deepEqual(await list('expired'), [ids[4]])
    const firstPage = await services.apiKeys.list(userId, null, { limit: 3, after: null })
    const secondPage = await services.apiKeys.list(userId, null, { limit: 3, after: firstPage.next })
    assert.deepEqual(
      [...firstPage.rows, ...secondPage.rows].map(({ id }) => id),
      ids,
    )
    assert.equal(secondPage.next, null)
  })

  test('KEY-07: every operation answers alike for another user’s key and an unknown one', async t => {
    const services = await openServices(engine, t)
    const ada = await withOwner(services)
    const bob = await withOwner(services, 'bob@example.com')
    const { key, apiKey } = await ada.makeKey()
    for (const id of [apiKey.id, newId(services.clock.now())]) {
      assert.equal(await refusedWith(services.apiKeys.get(bob.userId, id)), 'not_found')
      assert.equal(
        await refusedWith(services.apiKeys.update(bob.userId, id, { name: 'x' }, 'person')),
        'not_found',
      )
      assert.equal(await refusedWith(services.apiKeys.rotate(bob.userId, id, 0, caller())), 'not_found')
      assert.equal(await refusedWith(services.apiKeys.revoke(bob.userId, id, caller())), 'not_found')
    }
    assert.equal((await services.apiKeys.authenticate(key, caller())).id, apiKey.id)
  })

  test('changed networks take effect at once, and an event is published', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey()
    const event = nextEvent(services, 'api_key.changed')
    const changedKey = await services.apiKeys.update(
      userId,
      apiKey.id,
      {
        name: 'Laptop',
        allowedNetworks: ['10.0.0.0/8'],
      },
      'person',
    )
    assert.deepEqual([changedKey.name, changedKey.allowedNetworks], ['Laptop', ['10.0.0.0/8']])
    assert.deepEqual(await event, { type: 'api_key.changed', keyId: apiKey.id, userId })
    assert.equal(
      await refusedWith(services.apiKeys.authenticate(key, caller('192.0.2.1'))),
      'network_not_allowed',
    )
    assert.ok(await services.apiKeys.authenticate(key, caller('10.255.0.1')))
  })

  test('revoking a key is permanent and idempotent: row, event and refusal', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey()
    const event = nextEvent(services, 'api_key.changed')
    const revokedKey = await services.apiKeys.revoke(userId, apiKey.id, caller())
    assert.deepEqual(await event, { type: 'api_key.changed', keyId: apiKey.id, userId })
    assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
    services.clock.advance(MINUTE)
    const keyRevokedAgain = await services.apiKeys.revoke(userId, apiKey.id, caller())
    assert.equal(keyRevokedAgain.revokedAt, revokedKey.revokedAt)
    const endings = await services.store.endings.since(0, null, 100)
    assert.equal(endings.filter(({ subjectId }) => subjectId === apiKey.id).length, 1)
    assert.equal((await eventsOf(services, userId)).filter(type => type === 'api_key_revoked').length, 1)
  })

  test('the operator may revoke any key, and an unknown one is not found', async t => {
    const services = await openServices(engine, t)
    const { makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey()
    const revokedKey = await services.apiKeys.revokeById(apiKey.id)
    assert.equal((await services.apiKeys.revokeById(apiKey.id)).revokedAt, revokedKey.revokedAt)
    assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
    assert.equal(await refusedWith(services.apiKeys.revokeById(newId(1))), 'not_found')
  })

  test('a key can be revoked by presenting it, and its owner is mailed once', async t => {
    const services = await openServices(engine, t)
    const { makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey({ name: 'Laptop' })
    assert.equal(await services.apiKeys.revokeByPossession(`${key}x`, caller()), false)
    assert.equal(await services.apiKeys.revokeByPossession(`svc_${'0'.repeat(32)}`, caller()), false)
    await race(5, () => services.apiKeys.revokeByPossession(key, caller()))
    const mails = await services.mailsTo('ada@example.com', 'api_key_revoked_by_holder')
    assert.equal(mails.length, 1)
    assert.deepEqual([mails[0]!.keyPrefix, mails[0]!.keyName], [apiKey.keyPrefix, 'Laptop'])
    assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
  })

  test('KEY-10: a key works to the last millisecond before its expiry', async t => {
    const services = await openServices(engine, t)
    const { makeKey } = await withOwner(services)
    const expiresAt = services.clock.now() + 3 * SECOND
    const { key } = await makeKey({ expiresAt })
    services.clock.set(expiresAt - 1)
    assert.ok(await services.apiKeys.authenticate(key, caller()))
    services.clock.set(expiresAt)
    assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_expired')
  })

  test('of several reasons for a refusal the first applies: revoked, expired, suspended, network', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey({
      expiresAt: services.clock.now() + MINUTE,
      allowedNetworks: ['10.0.0.0/8'],
    })
    const refusal = () => refusedWith(services.apiKeys.authenticate(key, caller()))
    assert.equal(await refusal(), 'network_not_allowed')
    await services.users.suspend(userId)
    assert.equal(await refusal(), 'account_suspended')
    services.clock.advance(MINUTE)
    assert.equal(await refusal(), 'api_key_expired')
    await services.apiKeys.revokeById(apiKey.id)
    assert.equal(await refusal(), 'api_key_revoked')
  })

  test('activating an account makes its keys work again; deleting it revokes them', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey()
    await services.users.suspend(userId)
    const refusal = async () => {
      const foundKey = (await services.apiKeys.findMany([apiKey.id])).get(apiKey.id)
      return refusalOf(foundKey!, { now: services.clock.now() })
    }
    assert.equal(await refusal(), 'account_suspended')
    await services.users.activate(userId)
    assert.ok(await services.apiKeys.authenticate(key, caller()))
    await services.users.delete(userId)
    assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
    assert.equal(await refusal(), 'api_key_revoked')
    assert.equal(await refusedWith(makeKey()), 'account_suspended')
  })

  test('KEY-19: a malformed key is refused like an unknown one', async t => {
    const services = await openServices(engine, t)
    const { makeKey } = await withOwner(services)
    const { key } = await makeKey()
    const alteredKey = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a')
    const similarTexts = [
      `${key}\n`,
      ` ${key}`,
      `${key}\0`,
      `${key}\0x`,
      key.toUpperCase().replace('SVC_', 'svc_').concat('x'),
      key.replace('svc_', 'SVC_'),
      alteredKey,
      key.slice(0, 12),
      key.slice(0, 12) + 'A'.repeat(24),
      key.replace('s', 'ｓ'),
      encodeURIComponent(`${key} `),
      '',
      [key],
      { toString: () => key },
    ] as string[]
    const messages = new Set<string>()
    for (const text of similarTexts) {
      await services.apiKeys.authenticate(text, caller()).then(
        () => assert.fail(`accepted ${text}`),
        error => messages.add(`${error.code}: ${error.message}`),
      )
    }
    assert.equal(messages.size, 1)
    assert.match([...messages][0]!, /^invalid_api_key/)
  })

  test('KEY-22: two keys with the same prefix are distinguished', async t => {
    const services = await openServices(engine, t)
    const ada = await withOwner(services)
    const bob = await withOwner(services, 'bob@example.com')
    const originalKey = await ada.makeKey()
    const hash = (key: string) => createHash('sha256').update(key).digest('base64url')
    const keyWithSamePrefix = originalKey.key.slice(0, 12) + 'z'.repeat(24)
    const { keyPrefix } = originalKey.apiKey
    const id = newId(services.clock.now())
    await services.store.apiKeys.insert({
      ...originalKey.apiKey,
      id,
      userId: bob.userId,
      keyHash: hash(keyWithSamePrefix),
      keyPrefix,
    })
    assert.equal((await services.apiKeys.authenticate(originalKey.key, caller())).userId, ada.userId)
    assert.equal((await services.apiKeys.authenticate(keyWithSamePrefix, caller())).userId, bob.userId)
  })

  test('a use is visible at once on its own node, and on others after the flush; it only moves forward', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey()
    services.clock.advance(MINUTE)
    await services.apiKeys.authenticate(key, caller())
    const usedAt = services.clock.now()
    assert.equal((await services.apiKeys.get(userId, apiKey.id)).lastUsedAt, usedAt)
    assert.equal((await services.apiKeys.list(userId, null, FIRST_PAGE)).rows[0]!.lastUsedAt, usedAt)
    const storedLastUse = async () => (await services.store.apiKeys.findOwned(userId, apiKey.id))!.lastUsedAt
    assert.equal(await storedLastUse(), null)
    await services.apiKeys.flushUses()
    assert.equal(await storedLastUse(), usedAt)
    await services.store.apiKeys.recordUse(
      new Map([[apiKey.id, { at: usedAt - 1, from: caller('10.0.0.1') }]]),
    )
    assert.equal(await storedLastUse(), usedAt)
  })

  test('a refused key records no use', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { key, apiKey } = await makeKey({ scopes: ['own:thing'], allowedNetworks: ['192.0.2.0/24'] })
    await refusedWith(services.apiKeys.authenticate(key, caller('10.0.0.1')))
    await refusedWith(services.agentTokens.exchange(key, undefined, caller()))
    assert.equal((await services.apiKeys.get(userId, apiKey.id)).lastUsedAt, null)
  })

  test('a use that could not be stored stays buffered and visible, and is retried', async t => {
    const services = await openServices(engine, t)
    const { makeKey } = await withOwner(services)
    const { apiKey } = await makeKey()
    const node = await createStorage(services.opened.config, services.log)
    const deps = { storage: node, clock: services.clock, outbox: services.outbox }
    const lastUsed = createLastUsed({
      ...deps,
      notices: { ...createKeyNotices(deps), noteNetworks: async () => {} },
    })
    lastUsed.note(apiKey.id, caller())
    await node.close()
    await assert.rejects(lastUsed.flush())
    assert.equal(lastUsed.withLastUse(apiKey).lastUsedAt, services.clock.now())
    await assert.rejects(lastUsed.flush())
  })

  test('a use recorded during a flush is stored by the next flush', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const { apiKey } = await makeKey()
    const gate = Promise.withResolvers<void>()
    const flushReached = Promise.withResolvers<void>()
    const waitingNotices: LastUsedNotices = {
      noteNetworks: async () => {},
      async notifyOfReuse() {
        flushReached.resolve()
        await gate.promise
      },
    }
    const lastUsed = createLastUsed({
      storage: services.storage,
      clock: services.clock,
      notices: waitingNotices,
    })
    const storedLastUse = async () => (await services.store.apiKeys.findOwned(userId, apiKey.id))!.lastUsedAt
    lastUsed.note(apiKey.id, caller())
    const firstUseAt = services.clock.now()
    const flush = lastUsed.flush()
    await flushReached.promise
    services.clock.advance(SECOND)
    lastUsed.note(apiKey.id, caller())
    gate.resolve()
    await flush
    assert.equal(await storedLastUse(), firstUseAt)
    assert.equal(
      lastUsed.withLastUse(apiKey).lastUsedAt,
      firstUseAt + SECOND,
      'the buffered use is visible until it is stored',
    )
    await lastUsed.flush()
    assert.equal(await storedLastUse(), firstUseAt + SECOND)
  })

  test('a rotated key passes on name, scopes, app, networks and expiry, and works during the overlap', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const wantedFields = {
      name: 'Laptop',
      scopes: toScopes(['agent:connect']),
      expiresAt: services.clock.now() + 10 * DAY,
      appId: 'hub',
      allowedNetworks: ['192.0.2.0/24'],
    }
    const oldKey = await makeKey(wantedFields)
    services.clock.advance(DAY)
    const event = nextEvent(services, 'api_key.changed')
    const successor = await services.apiKeys.rotate(userId, oldKey.apiKey.id, 3600, caller())
    assert.equal((await event).type, 'api_key.changed')
    const { name, scopes, appId, allowedNetworks, expiresAt } = successor.apiKey
    assert.deepEqual({ name, scopes, appId, allowedNetworks, expiresAt }, wantedFields)
    const replacedKey = await services.apiKeys.get(userId, oldKey.apiKey.id)
    assert.equal(replacedKey.replacedBy, successor.apiKey.id)
    assert.equal(replacedKey.expiresAt, services.clock.now() + 3600 * SECOND)
    services.clock.advance(3600 * SECOND - 1)
    await services.apiKeys.authenticate(oldKey.key, caller())
    services.clock.advance(1)
    assert.equal(await refusedWith(services.apiKeys.authenticate(oldKey.key, caller())), 'api_key_expired')
    await services.apiKeys.authenticate(successor.key, caller())
    const { rows } = await services.store.securityEvents.list(userId, FIRST_PAGE)
    const keyIdsOf = (type: string) => rows.filter(row => row.type === type).map(({ keyId }) => keyId)
    assert.deepEqual(keyIdsOf('api_key_rotated'), [oldKey.apiKey.id])
    assert.deepEqual(keyIdsOf('api_key_created'), [successor.apiKey.id, oldKey.apiKey.id])
  })

  test('an overlap never extends the old key, and a rotation without overlap revokes it', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const expiresAt = services.clock.now() + MINUTE
    const shortLivedKey = await makeKey({ expiresAt })
    await services.apiKeys.rotate(userId, shortLivedKey.apiKey.id, 86_400, caller())
    assert.equal((await services.apiKeys.get(userId, shortLivedKey.apiKey.id)).expiresAt, expiresAt)
    const { key, apiKey } = await makeKey()
    const successor = await services.apiKeys.rotate(userId, apiKey.id, 0, caller())
    assert.equal(successor.apiKey.expiresAt, null)
    assert.equal(statusOf(await services.apiKeys.get(userId, apiKey.id), services.clock.now()), 'revoked')
    assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
  })

  test('at the key limit one rotation with overlap succeeds, and every rotation without overlap', async t => {
    const services = await openServices(engine, t, { maxActiveKeys: 3 })
    const { userId, makeKey } = await withOwner(services)
    const rotate = (id: string, overlap = 60) => services.apiKeys.rotate(userId, id, overlap, caller())
    const [first, second, third] = [await makeKey(), await makeKey(), await makeKey()]
    const { won, refused } = await race(12, index => rotate([first, second, third][index % 3]!.apiKey.id))
    assert.equal(won.length, 1)
    for (const code of refused) assert.match(code, /^(key_limit_reached|api_key_replaced)$/)
    const keys = [first, second, third, won[0]!]
    const exchangeResults = await Promise.allSettled(
      keys.map(({ key }) => services.agentTokens.exchange(key, undefined, caller())),
    )
    assert.equal(exchangeResults.filter(({ status }) => status === 'fulfilled').length, 4)
    // With four active keys, further rotations succeed only without overlap, until the overlap of the first
    // rotation ends.
    const unreplacedKeys = async () => {
      const { rows } = await services.apiKeys.list(userId, 'active', FIRST_PAGE)
      return rows.filter(({ replacedBy }) => replacedBy === null).map(({ id }) => id)
    }
    for (const id of await unreplacedKeys()) {
      assert.equal(await refusedWith(rotate(id)), 'key_limit_reached')
      await rotate(id, 0)
    }
    assert.equal((await services.apiKeys.list(userId, 'active', FIRST_PAGE)).rows.length, 4)
    assert.equal(await refusedWith(makeKey()), 'key_limit_reached')
    services.clock.advance(MINUTE)
    assert.equal(await refusedWith(makeKey()), 'key_limit_reached', 'three active keys are the limit')
    await rotate((await unreplacedKeys())[0]!)
  })

  test('the creation limit of a user is exact over nodes, and includes rotations', async t => {
    const keyCreationLimits: RateWindow[] = [
      { window: 'hour', limit: 6 },
      { window: 'day', limit: 8 },
    ]
    const services = await openServices(engine, t, { keyCreationLimits })
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { keyCreationLimits, on: { node, of: services.opened } })
    const { userId, makeKey } = await withOwner(services)
    const { apiKey } = await makeKey()
    const calls = [
      () => makeKey(),
      () => otherNode.apiKeys.create(userId, NEW_KEY, caller()),
      () => services.apiKeys.rotate(userId, apiKey.id, 60, caller()),
    ]
    const { won, refused } = await race(24, index => calls[index % 3]!())
    assert.equal(won.length, 5)
    assert.ok(refused.includes('rate_limited'))
    const listAll = async () => (await services.apiKeys.list(userId, null, { limit: 100, after: null })).rows
    assert.equal((await listAll()).length, 6)
    // A revocation makes no room for another key, since the limit counts creations.
    for (const { id } of await listAll()) await services.apiKeys.revoke(userId, id, caller())
    const newestCreation = Math.max(...(await listAll()).map(({ createdAt }) => createdAt))
    assert.equal(await refusedWith(makeKey()), 'rate_limited')
    services.clock.set(newestCreation + HOUR)
    await makeKey()
    await makeKey()
    await makeKey().then(
      () => assert.fail('a ninth key of the day was made'),
      error => assert.deepEqual([error.extras.window, error.extras.retryAfter], ['day', 23 * 3600]),
    )
    const bob = await withOwner(services, 'bob@example.com')
    await bob.makeKey()
  })

  test('a creation above the limit is refused without waiting for the owner’s row lock', async t => {
    const services = await openServices(engine, t, {
      maxActiveKeys: 2,
      keyCreationLimits: [{ window: 'hour', limit: 3 }],
    })
    const { userId, makeKey } = await withOwner(services)
    const firstKey = await makeKey()
    const secondKey = await makeKey()
    await services.storage.transaction(async tx => {
      await tx.users.lock(userId)
      assert.equal(await refusedWith(makeKey()), 'key_limit_reached')
    })
    const successor = await services.apiKeys.rotate(userId, firstKey.apiKey.id, 60, caller())
    for (const { apiKey } of [secondKey, successor])
      await services.apiKeys.revoke(userId, apiKey.id, caller())
    await services.storage.transaction(async tx => {
      await tx.users.lock(userId)
      assert.equal(await refusedWith(makeKey()), 'rate_limited')
      const pendingRotation = services.apiKeys.rotate(userId, firstKey.apiKey.id, 0, caller())
      assert.equal(await refusedWith(pendingRotation), 'api_key_replaced')
    })
  })

  test('an inactive or replaced key cannot be rotated, and of twenty concurrent rotations one succeeds', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const rotate = (id: string) => services.apiKeys.rotate(userId, id, 60, caller())
    const revokedKey = await makeKey()
    await services.apiKeys.revoke(userId, revokedKey.apiKey.id, caller())
    assert.equal(await refusedWith(rotate(revokedKey.apiKey.id)), 'api_key_inactive')
    const expiringKey = await makeKey({ expiresAt: services.clock.now() + SECOND })
    const { apiKey } = await makeKey()
    services.clock.advance(SECOND)
    assert.equal(await refusedWith(rotate(expiringKey.apiKey.id)), 'api_key_inactive')
    const { won, refused } = await race(20, () => rotate(apiKey.id))
    assert.equal(won.length, 1)
    assert.deepEqual([...new Set(refused)], ['api_key_replaced'])
    const { rows } = await services.apiKeys.list(userId, 'active', FIRST_PAGE)
    assert.deepEqual(new Set(rows.map(({ id }) => id)), new Set([apiKey.id, won[0]!.apiKey.id]))
  })

  test('KEY-08: no node accepts a key after its revocation was answered', async t => {
    const services = await openServices(engine, t)
    const { userId, makeKey } = await withOwner(services)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    for (let round = 0; round < 20; round++) {
      const { key, apiKey } = await makeKey()
      await otherNode.apiKeys.authenticate(key, caller())
      await services.apiKeys.revoke(userId, apiKey.id, caller())
      const { won } = await race(4, index =>
        [services, otherNode][index % 2]!.agentTokens.exchange(key, undefined, caller()),
      )
      assert.equal(won.length, 0)
    }
  })
})
