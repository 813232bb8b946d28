import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { announceExpired } from '../../src/api-keys/key-expiry.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createCharges } from '../../src/billing/charges.ts'
import { DAY, HOUR, SECOND, toRfc3339OrNull } from '../../src/clock.ts'
import { lowBalances } from '../../src/endings/webhook-events.ts'
import type { PresenceRow } from '../../src/hub/presence-store.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { newId } from '../../src/ids.ts'
import type { SpendLimit } from '../../src/limits/limit.ts'
import { NO_LIMITS } from '../../src/limits/limit.ts'
import { createHousekeeping } from '../../src/operations/housekeeping.ts'
import { createDispatcher } from '../../src/outbox/dispatcher.ts'
import { MailRejected } from '../../src/outbox/outbox.ts'
import type { Session } from '../../src/sessions/session.ts'
import type { Transaction } from '../../src/store.ts'
import { WEBHOOK_EVENT_TYPES, type WebhookEventType } from '../../src/webhooks/webhook-event.ts'
import { aKey, anApp, anEntry, aSession, aUser, audited, insertUser } from '../contract/fixtures.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { address, openServices, type Services } from '../support/services.ts'
import {
  deliveryOf,
  LOCAL_NETWORKS,
  openEndpoint,
  type ReceivedEvent,
  subscribe,
} from '../support/webhook-endpoint.ts'

const GUIDE = join(import.meta.dirname, '../../../../docs/webhooks.md')
const NEW_KEY = { name: 'Robot', scopes: null, expiresAt: null, appId: 'console', allowedNetworks: [] }

async function openEvents(engine: EngineName, t: TestContext, events: WebhookEventType[] = []) {
  const services = await openServices(engine, t, { webhookPrivateNetworks: LOCAL_NETWORKS })
  const endpoint = await openEndpoint(t)
  await subscribe(services, endpoint.url, events)
  const delivery = deliveryOf(services)
  /** Waits a second of the clock, delivers what is due, and returns the events that arrived since the last call. */
  async function received(): Promise<ReceivedEvent[]> {
    services.clock.advance(SECOND)
    await delivery.drain()
    return endpoint.received.splice(0)
  }
  const receivedTypes = async () => (await received()).map(({ body }) => `${body.sequence} ${body.type}`)
  return { services, ...services, received, receivedTypes }
}

function connectionOf(userId: string, nodeId: string, connectedAt: number): PresenceRow {
  const [connectionId, keyId] = [newId(connectedAt), newId(connectedAt)]
  return {
    connectionId,
    nodeId,
    userId,
    keyId,
    keyName: null,
    address: '192.0.2.1',
    client: null,
    connectedAt,
  }
}

forEachEngine(engine => {
  test('every kind of event is sent, with the subject and the data that the guide lists', async t => {
    const { services, received } = await openEvents(engine, t)
    await causeEveryEvent(services)
    const events = await received()
    assert.deepEqual(new Set(events.map(({ body }) => body.type)), new Set(WEBHOOK_EVENT_TYPES))
    for (const [type, { subject, fields }] of documentedEvents()) {
      const eventsOfType = events.filter(({ body }) => body.type === type)
      const names = new Set(eventsOfType.flatMap(({ body }) => Object.keys(body.data)))
      assert.deepEqual([...names].toSorted(), fields.toSorted(), type)
      for (const { body } of eventsOfType) assert.equal(body.subject.type, subject, type)
    }
    for (const { raw } of events) assert.doesNotMatch(raw, /@|192\.0\.2|\b(?:Robot|Ada)\b|\bsvc_/)
  })

  test('an agent is announced once when it is recorded, and once when it disconnects or its node ends', async t => {
    const events = ['agent.connected', 'agent.disconnected'] as const
    const { services, received, clock, storage, signIn } = await openEvents(engine, t, [...events])
    const { user } = await signIn('ada@example.com')
    const presence = recordedPresence(services)
    const [node, deadNode] = [newId(clock.now()), newId(clock.now())]
    const heartbeat = (id: string) =>
      presence.heartbeat({
        id,
        startedAt: clock.now(),
        seenAt: clock.now(),
        version: '1',
        sealsEvents: true,
        relayVersion: 1,
      })
    await heartbeat(node)
    await heartbeat(deadNode)
    const connection = connectionOf(user.id, node, clock.now())
    const otherConnections = [
      connectionOf(user.id, node, clock.now()),
      connectionOf(user.id, deadNode, clock.now()),
    ]
    const receivedAgentEvents = async () =>
      (await received()).map(
        ({ body: { type, data, sequence } }) => `${data.connection_id} ${sequence} ${type}`,
      )
    await presence.record(node, [connection, ...otherConnections], [])
    const expectedEvents = [connection, ...otherConnections].map(
      ({ connectionId }) => `${connectionId} 1 agent.connected`,
    )
    assert.deepEqual((await receivedAgentEvents()).toSorted(), expectedEvents.toSorted())
    await presence.record(node, [{ ...connection, keyId: newId(clock.now()) }], [])
    await presence.record(node, [], [newId(clock.now())])
    assert.deepEqual(await receivedAgentEvents(), [], 'a renewal with another key, and an unknown connection')
    await presence.record(node, [], [connection.connectionId])
    assert.deepEqual(await receivedAgentEvents(), [`${connection.connectionId} 2 agent.disconnected`])
    await presence.deregister(node)
    assert.deepEqual(await receivedAgentEvents(), [
      `${otherConnections[0]!.connectionId} 2 agent.disconnected`,
    ])
    clock.advance(DAY)
    await createHousekeeping({ storage, clock, log: services.log }).run()
    assert.deepEqual(await receivedAgentEvents(), [
      `${otherConnections[1]!.connectionId} 2 agent.disconnected`,
    ])
  })

  test('a key that expires is announced once over all nodes, and not if it was revoked or expired before', async t => {
    const { services, receivedTypes, clock, apiKeys, signIn, caller } = await openEvents(engine, t, [
      'api_key.expired',
    ])
    const { user } = await signIn('ada@example.com')
    const createExpiring = async (inMs: number) =>
      (await apiKeys.create(user.id, { ...NEW_KEY, expiresAt: clock.now() + inMs }, caller())).apiKey
    const key = await createExpiring(HOUR)
    const revokedKey = await createExpiring(HOUR)
    await apiKeys.revokeById(revokedKey.id)
    clock.advance(HOUR - 1)
    assert.equal(await announceExpired(services), 0)
    clock.advance(1)
    const storage = await services.opened.reopen()
    const announcedCounts = await Promise.all([
      announceExpired(services),
      announceExpired({ ...services, storage }),
    ])
    assert.deepEqual(announcedCounts.toSorted(), [0, 1])
    assert.equal(await announceExpired(services), 0)
    assert.deepEqual(await receivedTypes(), ['1 api_key.expired'])
    await apiKeys.revokeById(key.id)
    assert.deepEqual(await receivedTypes(), [])
  })

  test('keys that expired before there was an endpoint are not announced', async t => {
    const services = await openServices(engine, t, { webhookPrivateNetworks: LOCAL_NETWORKS })
    const { apiKeys, clock, caller } = services
    const { user } = await services.signIn('ada@example.com')
    await apiKeys.create(user.id, { ...NEW_KEY, expiresAt: clock.now() + HOUR }, caller())
    clock.advance(HOUR)
    assert.equal(await announceExpired(services), 0)
    await subscribe(services, 'http://127.0.0.1:1/')
    assert.equal(await announceExpired(services), 0)
  })

  test('keys are announced that expired in the last three days, since the oldest endpoint that is enabled for it', async t => {
    const services = await openServices(engine, t, { webhookPrivateNetworks: LOCAL_NETWORKS })
    const { clock, storage } = services
    const { user } = await services.signIn('ada@example.com')
    const subscribeTo = (...events: WebhookEventType[]) => subscribe(services, 'http://127.0.0.1:1/', events)
    const expireKeys = async (count: number) => {
      clock.advance(1)
      await storage.transaction(async tx => {
        for (let n = 0; n < count; n++) await tx.apiKeys.insert(aKey(user.id, { expiresAt: clock.now() }))
      })
    }
    const { id } = await subscribeTo('api_key.expired')
    await (await services.webhooks()).change(id, { enabled: false }, BY_COMMAND_LINE)
    await subscribeTo('api_key.expiring')
    await expireKeys(1)
    assert.equal(await announceExpired(services), 0)

    await subscribeTo()
    await expireKeys(101)
    await subscribeTo('api_key.expired')
    assert.equal(await announceExpired(services), 101)

    await expireKeys(1)
    await expireKeys(1)
    clock.advance(3 * DAY - 1)
    assert.equal(await announceExpired(services), 1)
  })

  test('a mail that its server refuses permanently is announced as a bounce, with the person and without the address', async t => {
    const { services, received, outbox, storage, clock, signIn } = await openEvents(engine, t, [
      'mail.bounced',
    ])
    const { user } = await signIn('ada@example.com')
    const mailer = {
      deliver: () => Promise.reject(new MailRejected('550 no such user')),
      check: async () => {},
      close() {},
    }
    const write = () => ({}) as never
    const dispatcher = createDispatcher({ ...services, mailer, write })
    await dispatcher.drain()
    await received()
    const id = newId(clock.now())
    const mail = {
      id,
      recipient: address('nobody@example.com'),
      userId: null,
      content: { kind: 'test' as const },
    }
    await storage.transaction(tx => outbox.enqueue(tx, { ...mail, now: clock.now() }))
    const mailToAda = { ...mail, id: newId(clock.now()), recipient: address('ada@example.com') }
    await storage.transaction(tx => outbox.enqueue(tx, { ...mailToAda, now: clock.now() }))
    await dispatcher.drain()
    const events = (await received()).map(({ body, raw }) => [body.data.user_id, body.subject.id, raw])
    assert.deepEqual(
      events.map(([person, subject]) => [person, subject]).toSorted(),
      [
        [null, id],
        [user.id, user.id],
      ].toSorted(),
    )
    for (const [, , raw] of events) assert.match(raw, /"reason":"refused","provider":null/)
  })

  test('an event about an account says what changed and its new state, and a change without effect sends none', async t => {
    const { storage, received, clock } = await openEvents(engine, t, [...WEBHOOK_EVENT_TYPES])
    const eventsOf = createEventsOf(storage, received)
    const now = clock.now()
    const user = aUser({ createdAt: now })
    const { id } = user
    const by = { at: now, caller: null }
    const otherAddress = address('other@example.com')
    const updatedEvents = (data: object) => [['user.updated', id, { user_id: id, ...data }]]
    const stateEvents = (type: string, status: string) => [[`user.${type}`, id, { user_id: id, status }]]
    const unknownId = newId(now)
    assert.deepEqual(await eventsOf(tx => tx.users.insert(user)), [
      ['user.created', id, { user_id: id, role: 'user', status: 'active' }],
    ])
    assert.deepEqual(await eventsOf(tx => tx.users.insert({ ...user, id: unknownId })), [])
    const importedUser = aUser({ role: 'support' })
    assert.deepEqual(await eventsOf(tx => tx.users.insertImported(importedUser, null)), [
      ['user.created', importedUser.id, { user_id: importedUser.id, role: 'support', status: 'active' }],
    ])
    assert.deepEqual(await eventsOf(tx => tx.users.insertImported(importedUser, null)), [])
    assert.deepEqual(
      await eventsOf(tx => tx.users.rename(id, 'Ada', now)),
      updatedEvents({ changed: ['name'] }),
    )
    assert.deepEqual(
      await eventsOf(tx => tx.users.setLocale(id, 'de', now)),
      updatedEvents({ changed: ['locale'] }),
    )
    assert.deepEqual(
      await eventsOf(tx => audited(tx).users.setRole(id, 'support', now)),
      updatedEvents({ changed: ['role'], role: 'support' }),
    )
    assert.deepEqual(
      await eventsOf(tx => tx.users.changeEmail(id, user.email!, otherAddress, by)),
      updatedEvents({ changed: ['email'] }),
    )
    const deletionEvents = (deletesAt: number | null) =>
      updatedEvents({ changed: ['deletes_at'], deletes_at: toRfc3339OrNull(deletesAt) })
    assert.deepEqual(await eventsOf(tx => tx.users.scheduleDeletion(id, now, by)), deletionEvents(now))
    assert.deepEqual(
      await eventsOf(tx => tx.users.postponeDeletion(id, now + 3 * DAY, now)),
      deletionEvents(now + 3 * DAY),
    )
    assert.deepEqual(await eventsOf(tx => tx.users.cancelDeletion(id, by)), deletionEvents(null))
    assert.deepEqual(await eventsOf(tx => tx.users.cancelDeletion(id, by)), [])
    assert.deepEqual(
      await eventsOf(tx => audited(tx).users.suspend(id, now)),
      stateEvents('suspended', 'suspended'),
    )
    assert.deepEqual(await eventsOf(tx => audited(tx).users.suspend(id, now)), [])
    assert.deepEqual(
      await eventsOf(tx => audited(tx).users.activate(id, now)),
      stateEvents('activated', 'active'),
    )
    assert.deepEqual(await eventsOf(tx => audited(tx).users.activate(id, now)), [])
    assert.deepEqual(await eventsOf(tx => tx.users.erase(id, now)), stateEvents('deleted', 'deleted'))
    for (const withoutEffect of [
      (tx: Transaction) => tx.users.erase(id, now),
      (tx: Transaction) => tx.users.rename(unknownId, 'Ada', now),
      (tx: Transaction) => tx.users.setLocale(unknownId, 'de', now),
      (tx: Transaction) => audited(tx).users.setRole(unknownId, 'user', now),
      (tx: Transaction) => tx.users.changeEmail(unknownId, user.email!, otherAddress, by),
    ])
      assert.deepEqual(await eventsOf(withoutEffect), [])
  })

  test('an event about a key says which fields changed, and its successor', async t => {
    const { storage, received, clock } = await openEvents(engine, t, [...WEBHOOK_EVENT_TYPES])
    const eventsOf = createEventsOf(storage, received)
    const now = clock.now()
    const { id: userId } = await insertUser(storage.store)
    const event = (type: string, id: string, data: object = {}) => [
      `api_key.${type}`,
      id,
      { key_id: id, user_id: userId, ...data },
    ]
    const insert = async (change = {}) => {
      const key = aKey(userId, { createdAt: now, expiresAt: now + DAY, ...change })
      const { appId: app_id, scopes, expiresAt } = key
      const data = { app_id, scopes, expires_at: toRfc3339OrNull(expiresAt) }
      assert.deepEqual(await eventsOf(tx => tx.apiKeys.insert(key)), [event('created', key.id, data)])
      return key.id
    }
    const id = await insert()
    await insert({ expiresAt: null })
    const update = (change: Parameters<Transaction['apiKeys']['update']>[2], owner = userId) =>
      eventsOf(tx => tx.apiKeys.update(owner, id, change, now))
    assert.deepEqual(await update({ name: null, allowedNetworks: [], externalId: 'x' }), [
      event('updated', id, { changed: ['name', 'allowed_networks', 'external_id'] }),
    ])
    assert.deepEqual(await update({ metadata: null, limits: NO_LIMITS, operatorLimits: NO_LIMITS }), [
      event('updated', id, { changed: ['metadata', 'limits', 'operator_limits'] }),
    ])
    assert.deepEqual(await update({ name: 'x' }, newId(now)), [])

    const [successor, second] = [newId(now), await insert()]
    const rotatedEvent = (key: string, expiresAt: number) =>
      event('rotated', key, { replaced_by: successor, expires_at: toRfc3339OrNull(expiresAt) })
    const replace = (key: string, expiresAt: number) =>
      eventsOf(tx => tx.apiKeys.replace(key, successor, expiresAt, now, null))
    assert.deepEqual(await replace(id, now + HOUR), [rotatedEvent(id, now + HOUR)])
    assert.deepEqual(await replace(id, now + HOUR), [])
    assert.deepEqual(await replace(second, now), [rotatedEvent(second, now), event('revoked', second)])

    const revoke = () => eventsOf(tx => tx.apiKeys.revoke(id, now, { at: now, caller: null }))
    assert.deepEqual(await revoke(), [event('revoked', id)])
    assert.deepEqual(await revoke(), [])
    const importedKey = aKey(userId, { createdAt: now })
    assert.equal((await eventsOf(tx => tx.apiKeys.insertImported(importedKey)))[0]?.[0], 'api_key.created')
    assert.deepEqual(await eventsOf(tx => tx.apiKeys.insertImported(importedKey)), [])
    const eventsOfRevokingAll = await eventsOf(tx => tx.apiKeys.revokeAllOf(userId, now))
    assert.ok(eventsOfRevokingAll.some(([type, key]) => type === 'api_key.revoked' && key === importedKey.id))
  })

  test('an event about the end of a session says its cause, and reuse has an event of its own', async t => {
    const { storage, received, clock } = await openEvents(engine, t, [...WEBHOOK_EVENT_TYPES])
    const eventsOf = createEventsOf(storage, received)
    const now = clock.now()
    const by = { at: now, caller: null }
    const { id: userId } = await insertUser(storage.store)
    await storage.store.apps.insert(anApp())
    const insert = async (change: Partial<Session> = {}) => {
      const session = aSession(userId, change)
      const { id, appId: app_id, kind } = session
      assert.deepEqual(await eventsOf(tx => tx.sessions.insert(session)), [
        ['session.created', id, { session_id: id, user_id: userId, app_id, kind }],
      ])
      return id
    }
    const endedEvents = (id: string, cause: string) => [
      'session.ended',
      id,
      { session_id: id, user_id: userId, cause },
    ]
    const end = (id: string, cause: 'logout' | 'reuse') => eventsOf(tx => tx.sessions.end(id, cause, now, by))
    const loggedOutSession = await insert()
    assert.deepEqual(await end(loggedOutSession, 'logout'), [endedEvents(loggedOutSession, 'logout')])
    assert.deepEqual(await end(loggedOutSession, 'logout'), [])
    const reusedSession = await insert()
    assert.deepEqual(await end(reusedSession, 'reuse'), [
      ['session.reuse_detected', reusedSession, { session_id: reusedSession, user_id: userId }],
      endedEvents(reusedSession, 'reuse'),
    ])
    const suspendedSession = await insert()
    assert.deepEqual(await eventsOf(tx => tx.sessions.endAllOf(userId, 'suspended', null, by)), [
      endedEvents(suspendedSession, 'suspended'),
    ])
    const surplusSession = await insert()
    assert.deepEqual(await eventsOf(tx => tx.sessions.endSurplusOf(userId, 0, 10, by)), [
      endedEvents(surplusSession, 'revoked'),
    ])
    const signInId = newId(now)
    const grant = { scopes: [], audience: null, signInId }
    const appSessionFields: Partial<Session> = { appId: 'shop', kind: 'app', grant }
    for (const [endSessions, cause] of [
      [(tx: Transaction) => tx.sessions.endAllOfApp(userId, 'shop', by), 'revoked'],
      [(tx: Transaction) => tx.sessions.endSomeOfApp('shop', 10, by), 'revoked'],
      [(tx: Transaction) => tx.sessions.endAllOfSignIn(signInId, by), 'logout'],
    ] as const) {
      const id = await insert(appSessionFields)
      assert.deepEqual(await eventsOf(endSessions), [endedEvents(id, cause)])
    }
  })

  test('an act that is rolled back, and one that changes nothing, are not announced', async t => {
    const { receivedTypes, storage, users, signIn, clock } = await openEvents(engine, t, [
      'user.updated',
      'user.suspended',
    ])
    const { user } = await signIn('ada@example.com')
    await assert.rejects(
      storage.transaction(async tx => {
        await tx.users.rename(user.id, 'Ada', clock.now())
        throw new Error('no')
      }),
    )
    await users.suspend(user.id)
    await users.suspend(user.id)
    assert.deepEqual(await receivedTypes(), ['1 user.suspended'])
  })
})

test('a low balance is announced by the charge that crosses the mark, and by no other entry', () => {
  const mark = 5_000_000
  const entry = (amount: number, balanceAfter: number) => ({ ...anEntry('ann', amount), balanceAfter })
  const crossingEntry = entry(-1, mark - 1)
  const announcedEvents = lowBalances(
    [crossingEntry, entry(-1, mark), entry(-2, mark - 3), entry(1, mark - 1), entry(-2, mark - 1)],
    mark,
  )
  const data = (balance: string) => ({ user_id: 'ann', balance, mark: '5.00', currency: 'USD' })
  const event = { type: 'balance.low', subject: { type: 'balance', id: 'ann' }, at: crossingEntry.createdAt }
  assert.deepEqual(announcedEvents, [
    { ...event, data: data('4.999999') },
    { ...event, data: data('4.999999') },
  ])
})

/**
 * A function that runs an operation in a transaction, and returns the type, the id of the subject and the data of each
 * webhook event that it caused.
 */
function createEventsOf(storage: Services['storage'], received: () => Promise<ReceivedEvent[]>) {
  return async (operation: (tx: Transaction) => Promise<unknown>) => {
    await storage.transaction(operation)
    return (await received()).map(({ body: { type, subject, data } }) => [type, subject.id, data])
  }
}

async function causeEveryEvent(services: Services): Promise<void> {
  const { apiKeys, users, sessions, clock, caller, signIn, suppressions, auditKeeping, apps } = services
  const { user, tokens } = await signIn('ada@example.com')
  const { apiKey } = await apiKeys.create(user.id, NEW_KEY, caller())
  await apiKeys.update(user.id, apiKey.id, { name: 'Other' }, 'person')
  const { apiKey: next } = await apiKeys.rotate(user.id, apiKey.id, 60, caller())
  await apiKeys.revokeById(next.id)
  await users.rename(user.id, 'Ada')
  await users.setRole(user.id, 'support')
  await sessions.refresh(tokens.refreshToken, null, caller())
  await sessions.refresh(tokens.refreshToken, null, caller()).catch(() => {})

  const dailySpend: SpendLimit[] = [{ amount: 1_600_000, per: 'day' }]
  const limitedKey = await apiKeys.create(
    user.id,
    { ...NEW_KEY, limits: { ...NO_LIMITS, spend: dailySpend } },
    caller(),
  )
  const charges = createCharges({ ...services, onSpend: apiKeys.alerts.onSpend })
  const charge = { userId: user.id, keyId: limitedKey.apiKey.id, amount: 1_600_000, description: 'x' }
  await charges.charge(await apps.find('hub'), charge, 'key-of-the-charge-0')

  const presence = recordedPresence(services)
  const row = connectionOf(user.id, newId(clock.now()), clock.now())
  await presence.record(row.nodeId, [row], [])
  await presence.record(row.nodeId, [], [row.connectionId])
  await suppressions.record({ addresses: ['ada@example.com'], reason: 'bounce' }, 'resend')
  await users.suspend(user.id)
  await users.activate(user.id)
  await auditKeeping.seal()

  const { user: otherUser } = await signIn('eve@example.com')
  await apiKeys.create(otherUser.id, { ...NEW_KEY, expiresAt: clock.now() + 30 * DAY }, caller())
  clock.advance(17 * DAY)
  await apiKeys.warnOfExpiry()
  clock.advance(13 * DAY)
  await announceExpired(services)
  await users.delete(otherUser.id)
}

/** Reads the guide's table of event types; asserts that it lists all. */
function documentedEvents(): Map<string, { subject: string; fields: string[] }> {
  const rows = readFileSync(GUIDE, 'utf8').matchAll(/^\| `([a-z_]+\.[a-z_]+)` \| `(\w+)` \| ([^|]+) \|/gm)
  const entriesByType = [...rows].map(([, type, subject, fields]) => {
    const names = [...fields!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)
    return [type!, { subject: subject!, fields: names }] as const
  })
  assert.deepEqual(
    entriesByType.map(([type]) => type),
    [...WEBHOOK_EVENT_TYPES],
  )
  return new Map(entriesByType)
}
