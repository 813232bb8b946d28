import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createCharges, IDEMPOTENCY_WINDOW } from '../../src/billing/charges.ts'
import { DAY, HOUR, type Instant } from '../../src/clock.ts'
import { NODE_TIMEOUT_MS } from '../../src/hub/presence-store.ts'
import { newId } from '../../src/ids.ts'
import type { WrongCode } from '../../src/magic-links/code-limits.ts'
import { createHousekeeping, RETENTION } from '../../src/operations/housekeeping.ts'
import { securityEvent } from '../../src/security-events/security-event.ts'
import {
  address,
  aKey,
  aLink,
  aMessage,
  anAuthorization,
  aSession,
  aSigningKey,
  insertUser,
  NOW,
} from '../contract/fixtures.ts'
import { type EngineName, forEachEngine, openTestStorage, type TestStorage } from '../support/engines.ts'
import { openServices } from '../support/services.ts'

async function open(engine: EngineName, t: TestContext) {
  const opened = await openTestStorage(engine, t)
  opened.clock.set(NOW)
  const { storage } = opened
  const { store } = storage
  return { ...opened, store, run: createHousekeeping(opened).run }
}

function newWrongCode(at: Instant): WrongCode {
  return { id: newId(at), linkId: newId(at), at, mailbox: 'm', isReturning: false, networks: [] }
}

async function countOf({ storage }: TestStorage, table: string): Promise<number> {
  const { rows } = await storage.engine.connection.execute(`select count(*) as n from ${table}`, [])
  return Number((rows[0] as { n: number | string }).n)
}

forEachEngine(engine => {
  test('ended rows are kept for the promised retention, to the millisecond, and then pruned', async t => {
    const opened = await open(engine, t)
    const { store, storage } = opened
    const user = await insertUser(store)
    const lastKept = (duration: number) => NOW - duration
    const firstPruned = (duration: number) => NOW - duration - 1
    const insertAtBoundary = async (duration: number, insert: (at: Instant) => Promise<unknown>) => {
      await insert(lastKept(duration))
      await insert(firstPruned(duration))
    }
    await insertAtBoundary(DAY, at => store.magicLinks.insert(aLink({ expiresAt: at, usedAt: at - 1000 })))
    await insertAtBoundary(7 * DAY, at => store.outbox.insert(sentMessage(at)))
    await insertAtBoundary(30 * DAY, at =>
      store.sessions.insert(aSession(user.id, { endedAt: at, endedBy: 'logout' })),
    )
    await insertAtBoundary(30 * DAY, at => store.sessions.insert(aSession(user.id, { expiresAt: at })))
    await insertAtBoundary(400 * DAY, at =>
      store.securityEvents.insert(securityEvent('sign_in', user.id, at, null)),
    )
    await insertAtBoundary(400 * DAY, at => store.apiKeys.insert(aKey(user.id, { expiresAt: at })))
    await store.apiKeys.insert(
      aKey(user.id, { expiresAt: firstPruned(400 * DAY), revokedAt: firstPruned(500 * DAY) }),
    )
    await store.apiKeys.insert(aKey(user.id, { createdAt: firstPruned(800 * DAY) }))
    await insertAtBoundary(DAY, at => store.inbox.insert(inboxMail(at), 200))
    await insertAtBoundary(HOUR, at =>
      store.endings.insert([{ id: newId(at), kind: 'session', subjectId: newId(at), userId: user.id, at }]),
    )
    await insertAtBoundary(DAY, at => store.wrongCodes.insert(newWrongCode(at)))
    await insertAtBoundary(HOUR, at => store.deviceAuthorizations.insert(anAuthorization({ expiresAt: at })))
    for (const at of [firstPruned(DAY), lastKept(DAY)]) {
      await storage.transaction(async tx => {
        await tx.magicLinks.lockSendBuckets([`address:${at}@example.com`])
        await tx.magicLinks.recordSend([`address:${at}@example.com`], at)
      })
    }
    await store.signingKeys.insertFirst(aSigningKey({ retiresAt: firstPruned(DAY) }))
    await store.signingKeys.insertNext(aSigningKey({ retiresAt: lastKept(DAY) }), NOW)

    assert.ok((await opened.run()) >= 8)
    const counts: Record<string, number> = {}
    const tableNames =
      'magic_links messages sessions security_events inbox endings sends send_buckets signing_keys users api_keys wrong_codes device_authorizations'
    for (const table of tableNames.split(' ')) counts[table] = await countOf(opened, table)
    assert.deepEqual(counts, {
      magic_links: 1,
      messages: 1,
      sessions: 2,
      security_events: 1,
      inbox: 1,
      endings: 1,
      sends: 1,
      send_buckets: 1,
      signing_keys: 1,
      users: 1,
      api_keys: 3,
      wrong_codes: 1,
      device_authorizations: 1,
    })
    assert.equal(await opened.run(), 0, 'a second look finds nothing')
  })

  test('keys of a deleted account are pruned a day later, in batches and on two nodes at once, and no others', async t => {
    const services = await openServices(engine, t)
    const { store, clock } = services
    const { user: ada } = await services.signIn('ada@example.com')
    const { user: eve } = await services.signIn('eve@example.com')
    await services.storage.transaction(async tx => {
      for (let n = 0; n < 1201; n++) {
        const revokedAt = n % 2 ? clock.now() : null
        await tx.apiKeys.insert(aKey(ada.id, { name: 'her secret project', revokedAt }))
      }
      await tx.apiKeys.insert(aKey(eve.id, { revokedAt: clock.now() }))
    })
    const keysOf = async (userId: string) =>
      (await store.apiKeys.list(userId, null, clock.now(), { limit: 2000, after: null })).rows.length
    await services.users.delete(ada.id)
    const { run } = createHousekeeping(services)
    clock.advance(RETENTION.keysOfDeletedAccounts)
    await run()
    assert.equal(await keysOf(ada.id), 1201)
    clock.advance(1)
    await Promise.all([run(), createHousekeeping(services).run()])
    await run()
    assert.equal(await keysOf(ada.id), 0)
    assert.equal(await keysOf(eve.id), 1)
    assert.equal(await store.apiKeys.pruneOfDeletedOwners(clock.now(), 1), 0)
    assert.equal((await store.users.find(ada.id))?.status, 'deleted')
    assert.ok((await store.billing.ledger(ada.id, { limit: 10, after: null })).rows.length > 0)
  })

  test('one batch deletes at most the requested number of rows over all accounts', async t => {
    const { store } = await open(engine, t)
    for (const n of [1, 2, 3]) {
      const { id } = await insertUser(store)
      for (let key = 0; key < n; key++) await store.apiKeys.insert(aKey(id))
      await store.users.erase(id, NOW - n)
    }
    const removedCounts = []
    for (let round = 0; round < 4; round++)
      removedCounts.push(await store.apiKeys.pruneOfDeletedOwners(NOW - 1, 2))
    assert.deepEqual(removedCounts, [2, 2, 1, 0])
    assert.equal(await store.apiKeys.pruneOfDeletedOwners(NOW, 2), 1, 'the last account’s own')
  })

  test('live rows are never pruned however old: queued mail, sessions, keys, the ledger', async t => {
    const services = await openServices(engine, t)
    const { user, session } = await services.signIn('ada@example.com')
    const { apiKey } = await services.apiKeys.create(
      user.id,
      { name: 'old', scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] },
      services.caller(),
    )
    const { store, clock } = services
    const queuedCount = (await services.store.outbox.depth(clock.now())).queued
    const { run } = createHousekeeping(services)
    clock.advance(60 * DAY)
    await run()
    assert.equal((await store.outbox.depth(clock.now())).queued, queuedCount)
    assert.ok(await store.sessions.find(session.id), 'a session that has not ended')
    assert.equal((await services.apiKeys.get(user.id, apiKey.id)).id, apiKey.id)
    clock.advance(700 * DAY)
    await run()
    assert.equal(await store.sessions.find(session.id), null, 'long past its absolute end')
    assert.equal((await services.apiKeys.get(user.id, apiKey.id)).id, apiKey.id, 'keys stay visible')
    assert.equal((await store.billing.ledger(user.id, { limit: 10, after: null })).rows.length, 1)
  })

  test('the content of a delivered mail is erased before its row is pruned', async t => {
    const { store, clock } = await open(engine, t)
    await store.outbox.insert(aMessage())
    const [leased] = await store.outbox.lease(clock.now(), clock.now() + 1000, 1)
    await store.outbox.settle(leased!.id, leased!.leasedUntil!, { state: 'sent', at: NOW, error: null })
    const [row] = await store.outbox.recentFor(leased!.recipient, 1)
    assert.deepEqual([row!.state, row!.sealedContent], ['sent', null])
  })

  test('rows of dead nodes and their connections are pruned after a minute, and suppressions at their end', async t => {
    const { store, run } = await open(engine, t)
    const silenceMs = 6 * NODE_TIMEOUT_MS
    for (const [id, seenAt] of [
      ['alive', NOW - silenceMs],
      ['dead', NOW - silenceMs - 1],
    ] as const) {
      await store.presence.heartbeat({
        id,
        startedAt: NOW - DAY,
        seenAt,
        version: '1',
        sealsEvents: true,
        relayVersion: 1,
      })
      await store.presence.record(id, [connectionOn(id)], [], NOW)
    }
    for (const [name, until] of [
      ['kept', NOW],
      ['gone', NOW - 1],
    ] as const) {
      const suppression = { address: address(`${name}@example.com`), at: NOW - DAY, until }
      await store.suppressions.record({ ...suppression, reason: 'bounce', provider: 'resend' })
    }
    assert.equal(await run(), 3)
    assert.deepEqual(
      (await store.presence.nodes(0)).map(({ id }) => id),
      ['alive'],
    )
    assert.deepEqual(
      (await store.presence.listOf('user', 0)).map(({ nodeId }) => nodeId),
      ['alive'],
    )
    assert.ok(await store.suppressions.find(address('kept@example.com'), NOW - 1))
    assert.equal(await store.suppressions.find(address('gone@example.com'), NOW - 2), null)
  })

  test('a backlog of thousands of rows is pruned in small batches within one round', async t => {
    const opened = await open(engine, t)
    const user = await insertUser(opened.store)
    const outdatedAt = NOW - RETENTION.securityEvents - 1
    await opened.storage.transaction(async tx => {
      for (let row = 0; row < 1201; row++)
        await tx.securityEvents.insert(securityEvent('sign_in', user.id, outdatedAt, null))
    })
    let largestBatch = 0
    const countingStore = {
      ...opened.store,
      securityEvents: {
        ...opened.store.securityEvents,
        prune: async (before: Instant, batch: number) => {
          const removedCount = await opened.store.securityEvents.prune(before, batch)
          largestBatch = Math.max(largestBatch, removedCount)
          return removedCount
        },
      },
    }
    const { run } = createHousekeeping({ ...opened, storage: { ...opened.storage, store: countingStore } })
    assert.equal(await run(), 1201)
    assert.equal(largestBatch, 500)
  })

  test('two nodes can prune at the same time', async t => {
    const opened = await open(engine, t)
    const user = await insertUser(opened.store)
    for (let row = 0; row < 50; row++) {
      await opened.store.sessions.insert(aSession(user.id, { endedAt: NOW - 31 * DAY, endedBy: 'logout' }))
    }
    const otherNode = createHousekeeping({ ...opened, storage: await opened.reopen() })
    const removedCounts = await Promise.all([opened.run(), otherNode.run()])
    assert.equal(removedCounts[0]! + removedCounts[1]!, 50)
  })

  test('an idempotency key of a charge may be reused after 24 hours, while the ledger keeps its entry', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('ada@example.com')
    const charges = createCharges(services)
    const chargeRequest = { userId: user.id, amount: 10_000, description: 'a day' }
    const charge = () => charges.charge({ id: 'hub' }, chargeRequest, 'one-key-for-two-days')
    const firstCharge = await charge()
    services.clock.advance(IDEMPOTENCY_WINDOW - 1)
    assert.equal((await charge()).id, firstCharge.id)
    services.clock.advance(1)
    assert.notEqual((await charge()).id, firstCharge.id)
    assert.equal(IDEMPOTENCY_WINDOW, DAY)
  })
})

function connectionOn(nodeId: string) {
  const key = { userId: 'user', keyId: 'key', keyName: null }
  return {
    connectionId: `on-${nodeId}`,
    nodeId,
    ...key,
    address: '192.0.2.1',
    client: null,
    connectedAt: NOW,
  }
}

function sentMessage(at: Instant) {
  return aMessage({ state: 'sent', settledAt: at, sealedContent: null })
}

function inboxMail(at: Instant) {
  return { id: newId(at), recipient: address('ada@example.com'), sealedMail: 'sealed', createdAt: at }
}
