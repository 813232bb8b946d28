import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type AuditType, BY_COMMAND } from '../../src/audit/audit-event.ts'
import { DAY, MINUTE, SECOND } from '../../src/clock.ts'
import type { Fact } from '../../src/endings/fact.ts'
import { createRevocations, FEED_WINDOW } from '../../src/endings/revocation-feed.ts'
import type { Event } from '../../src/events.ts'
import { newId } from '../../src/ids.ts'
import { securityEvent } from '../../src/security-events/security-event.ts'
import type { Transaction } from '../../src/store.ts'
import type { EmailAddress } from '../../src/users/email-address.ts'
import {
  aKey,
  aLink,
  anApp,
  anEntry,
  aSession,
  audited,
  BY_SERVICE,
  insertUser,
  NOW,
} from '../contract/fixtures.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { address, caller } from '../support/services.ts'

const BY_CALLER = { at: NOW + 1, caller: caller('198.51.100.7', 'their browser') }

async function openFacts(engine: EngineName, t: TestContext) {
  const testStorage = await openTestStorage(engine, t)
  const { storage } = testStorage
  const user = await insertUser(storage.store)
  const received: Event[] = []
  storage.events.subscribe(event => received.push(event))
  const page = { limit: 100, after: null }

  /**
   * Returns the facts of one operation as text. Asserts that it stored exactly their endings and security events, and
   * published exactly their events.
   */
  async function factsOf(operation: (tx: Transaction) => Promise<unknown>): Promise<string[]> {
    const idsBefore = {
      endings: (await storage.store.endings.since(0, null, 1000)).map(({ id }) => id),
      events: (await storage.store.securityEvents.list(user.id, page)).rows.map(({ id }) => id),
    }
    received.length = 0
    const facts = await storage.transaction(async tx => {
      await operation(tx)
      return [...tx.facts]
    })
    // Events arrive in the order of the commits: after this one, all earlier ones have arrived.
    const lastEvent = Promise.withResolvers<void>()
    const unsubscribe = storage.events.subscribe(({ type }) => type === 'mail.queued' && lastEvent.resolve())
    await storage.events.publish({ type: 'mail.queued' })
    await lastEvent.promise
    unsubscribe()

    const endings = facts.flatMap(fact => (fact.type === 'ending' ? [fact.ending] : []))
    const storedEndings = await storage.store.endings.since(0, null, 1000)
    const addedEndings = storedEndings.filter(({ id }) => !idsBefore.endings.includes(id))
    assert.deepEqual(sortedById(addedEndings), sortedById(endings))
    const eventFacts = facts.flatMap(fact => (fact.type === 'security_event' ? [fact.event] : []))
    const { rows } = await storage.store.securityEvents.list(user.id, page)
    assert.deepEqual(
      sortedById(rows.filter(({ id }) => !idsBefore.events.includes(id))),
      sortedById(eventFacts),
    )
    const changedFacts = facts.flatMap(fact => (fact.type === 'changed' ? [`${fact.kind} ${fact.id}`] : []))
    assert.deepEqual(received.filter(({ type }) => type !== 'mail.queued').map(subjectOf), changedFacts)
    return facts.map(textOf)
  }
  return { ...testStorage, user, factsOf }
}

function sortedById<Row extends { id: string }>(rows: readonly Row[]): Row[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function subjectOf(event: Event): string {
  if (event.type === 'api_key.changed') return `api_key ${event.keyId}`
  if (event.type === 'session.ended') return `session ${event.sessionId}`
  return event.type === 'user.changed' ? `user ${event.userId}` : event.type
}

/** A fact as text, with instants relative to `NOW`. */
function textOf(fact: Fact): string {
  switch (fact.type) {
    case 'ending':
      return `ending: ${fact.ending.kind} ${fact.ending.subjectId} of ${fact.ending.userId} at ${fact.ending.at - NOW}`
    case 'changed':
      return `changed: ${fact.kind} ${fact.id} of ${fact.userId}`
    case 'security_event': {
      const { type, userId, at, network, client, keyId, sessionId } = fact.event
      return `event: ${type} of ${userId} at ${at - NOW} by ${network} ${client} about ${keyId ?? sessionId}`
    }
    case 'magic_link':
      return `link: ${fact.id} at ${fact.at - NOW}`
    case 'ledger':
      return `ledger: ${fact.entry.amount} of ${fact.entry.userId}`
    case 'trial_credit':
      return `credit: ${fact.addressHash} of ${fact.userId} at ${fact.at - NOW}`
    case 'charge_authorization': {
      const { appId, userId, grantedAt, revokedAt } = fact.authorization
      return `authorization: ${appId} of ${userId} from ${grantedAt - NOW} to ${revokedAt && revokedAt - NOW}`
    }
    case 'consent': {
      const { appId, userId, scopes, grantedAt, revokedAt } = fact.consent
      return `consent: ${appId} of ${userId} to ${scopes.join(' ')} from ${grantedAt - NOW} to ${revokedAt && revokedAt - NOW}`
    }
    case 'app_secrets':
      return `secrets: ${fact.id}`
    case 'invitation':
      return `invitation: ${fact.id} at ${fact.at - NOW}`
    case 'policies':
      return `policies: ${JSON.stringify(fact.set)}`
    case 'audit':
      return `audit: ${fact.event.type} of ${fact.event.subject.id}`
  }
}

forEachEngine(engine => {
  test('a change of an account is recorded if it changed something, and only then', async t => {
    const { user, factsOf } = await openFacts(engine, t)
    const { id } = user
    const unknownId = newId(NOW)
    const changedFact = `changed: user ${id} of ${id}`
    const eventLine = (type: string, at: number) => `event: ${type} of ${id} at ${at} by null null about null`
    assert.deepEqual(await factsOf(tx => audited(tx).users.setRole(id, 'admin', NOW)), [changedFact])
    assert.deepEqual(await factsOf(tx => audited(tx).users.setRole(unknownId, 'admin', NOW)), [])
    assert.deepEqual(await factsOf(tx => audited(tx).users.activate(id, NOW + 1)), [])
    assert.deepEqual(await factsOf(tx => audited(tx).users.suspend(id, NOW + 2)), [
      `ending: user ${id} of ${id} at 2`,
      changedFact,
      eventLine('account_suspended', 2),
    ])
    assert.deepEqual(await factsOf(tx => audited(tx).users.suspend(id, NOW + 3)), [])
    assert.deepEqual(await factsOf(tx => audited(tx).users.activate(id, NOW + 4)), [
      changedFact,
      eventLine('account_activated', 4),
    ])
    assert.deepEqual(await factsOf(tx => tx.users.erase(id, NOW + 5)), [
      `ending: user ${id} of ${id} at 5`,
      changedFact,
      eventLine('account_deleted', 5),
    ])
    assert.deepEqual(await factsOf(tx => tx.users.erase(id, NOW + 6)), [])
  })

  test('a planned deletion and a new address of an account are recorded with their actor', async t => {
    const { user, factsOf } = await openFacts(engine, t)
    const { id } = user
    const changedFact = `changed: user ${id} of ${id}`
    const eventLine = (type: string) =>
      `event: ${type} of ${id} at 1 by 198.51.100.7 their browser about null`
    const schedule = () => factsOf(tx => tx.users.scheduleDeletion(id, NOW + 2, BY_CALLER))
    assert.deepEqual(await schedule(), [changedFact, eventLine('account_deletion_requested')])
    assert.deepEqual(await schedule(), [])
    const postpone = () => factsOf(tx => tx.users.postponeDeletion(id, NOW + DAY, NOW + 2))
    assert.deepEqual(await postpone(), [changedFact])
    assert.deepEqual(await postpone(), [])
    const cancel = () => factsOf(tx => tx.users.cancelDeletion(id, BY_CALLER))
    assert.deepEqual(await cancel(), [changedFact, eventLine('account_deletion_cancelled')])
    assert.deepEqual(await cancel(), [])
    const change = () =>
      factsOf(tx => tx.users.changeEmail(id, user.email!, address('new@example.com'), BY_CALLER))
    assert.deepEqual(await change(), [changedFact, eventLine('email_changed')])
    assert.deepEqual(await change(), [])
  })

  test('each invitation that was replaced, accepted or revoked is recorded', async t => {
    const { user, factsOf } = await openFacts(engine, t)
    const invite = (email: EmailAddress, at: number) => {
      const id = newId(NOW)
      const answers = { acceptedAt: null, userId: null, revokedAt: null }
      const times = { createdAt: NOW + at, expiresAt: NOW + DAY }
      const invitation = { id, email, role: null, invitedBy: null, ...times, ...answers }
      return { id, facts: factsOf(tx => audited(tx).invitations.insert(invitation)) }
    }
    const [email, otherEmail] = [address('ada@example.com'), address('eve@example.com')]
    const first = invite(email, 1)
    assert.deepEqual(await first.facts, [])
    const secondInvitation = invite(email, 2)
    assert.deepEqual(await secondInvitation.facts, [`invitation: ${first.id} at 2`])
    const accept = () => factsOf(tx => tx.invitations.accept(email, user.id, NOW + 3))
    assert.deepEqual(await accept(), [`invitation: ${secondInvitation.id} at 3`])
    assert.deepEqual(await accept(), [])
    const thirdInvitation = invite(otherEmail, 4)
    await thirdInvitation.facts
    const revoke = () => factsOf(tx => tx.invitations.revoke(thirdInvitation.id, NOW + 5))
    assert.deepEqual(await revoke(), [`invitation: ${thirdInvitation.id} at 5`])
    assert.deepEqual(await revoke(), [])
  })

  test('an act of an administrator is recorded, and the person concerned learns of it without its actor', async t => {
    const { user, factsOf } = await openFacts(engine, t)
    const append = (
      type: AuditType,
      subject: { type: 'user' | 'api_key'; id: string; user_id: string | null },
    ) =>
      factsOf(tx =>
        audited(tx).audit.append([
          {
            id: newId(NOW),
            at: NOW + 1,
            actor: BY_COMMAND,
            type,
            subject,
            before: null,
            after: null,
            reason: null,
            network: '198.51.100.0/24',
            requestId: null,
          },
        ]),
      )
    const keyId = newId(NOW)
    const eventLine = (type: string, about: string | null) =>
      `event: ${type} of ${user.id} at 1 by null null about ${about}`
    const userRecord = { type: 'user', id: user.id, user_id: user.id } as const
    const keyRecord = { type: 'api_key', id: keyId, user_id: user.id } as const
    assert.deepEqual(await append('user.role_changed', userRecord), [
      `audit: user.role_changed of ${user.id}`,
      eventLine('role_changed', null),
    ])
    assert.deepEqual(await append('api_key.limits_changed', keyRecord), [
      `audit: api_key.limits_changed of ${keyId}`,
      eventLine('api_key_limits_changed', keyId),
    ])
    // Neither record causes a security event: `users.suspend` does, and a key without an owner has no user for one.
    assert.deepEqual(await append('user.suspended', userRecord), [`audit: user.suspended of ${user.id}`])
    assert.deepEqual(await append('api_key.limits_changed', { ...keyRecord, user_id: null }), [
      `audit: api_key.limits_changed of ${keyId}`,
    ])
    const setPolicies = async (tx: Transaction) => {
      await tx.policies.lock()
      await audited(tx).policies.set({ maxKeyLifetimeDays: 9 }, NOW + 2)
    }
    assert.deepEqual(await factsOf(setPolicies), [
      `policies: ${JSON.stringify({ policies: { maxKeyLifetimeDays: 9 }, changedAt: NOW + 2 })}`,
    ])
  })

  test('the end of a session queues a logout notice if its app wants one, and no other end does', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { id: userId } = await insertUser(storage.store)
    const { apps, apiKeys, sessions, logoutNotices } = storage.store
    await apps.insert(anApp({ id: 'shop', backchannelLogoutUri: 'https://shop.example.com/logout' }))
    const received: string[] = []
    storage.events.subscribe(({ type }) => received.push(type))
    const grant = { scopes: ['openid'], audience: null }
    const shopSession = aSession(userId, { appId: 'shop', kind: 'app', grant })
    const key = aKey(userId)
    const consoleSession = aSession(userId)
    for (const session of [shopSession, consoleSession]) await sessions.insert(session)
    await apiKeys.insert(key)
    await storage.transaction(async tx => {
      await tx.apiKeys.revoke(key.id, NOW + 1, BY_CALLER)
      await tx.sessions.end(consoleSession.id, 'logout', NOW + 1, BY_CALLER)
    })
    assert.equal(await logoutNotices.isAnyDue(NOW + DAY), false)
    await storage.transaction(tx => tx.sessions.end(shopSession.id, 'logout', NOW + 1, BY_CALLER))
    assert.equal(await logoutNotices.isAnyDue(NOW), false)
    const notices = await logoutNotices.lease(NOW + 1, NOW + DAY, 10)
    assert.deepEqual(
      notices.map(({ sessionId }) => sessionId),
      [shopSession.id],
    )
    await until('all events', () => received.length >= 4)
    assert.deepEqual(received, ['api_key.changed', 'session.ended', 'logout_notice.queued', 'session.ended'])
  })

  test('each restriction and end of a key is recorded with its actor, and the owner is notified of a revocation', async t => {
    const { user, storage, factsOf } = await openFacts(engine, t)
    const insert = async (change = {}) => {
      const key = aKey(user.id, change)
      await storage.store.apiKeys.insert(key)
      return key
    }
    const restrictionFacts = (id: string, at: number) => [
      `ending: api_key ${id} of ${user.id} at ${at}`,
      `changed: api_key ${id} of ${user.id}`,
    ]
    const revocationFacts = (id: string, at: number, by = '198.51.100.7 their browser') => [
      ...restrictionFacts(id, at),
      `event: api_key_revoked of ${user.id} at ${at} by ${by} about ${id}`,
    ]
    const { id } = await insert()
    const { apiKeys } = storage.store
    assert.ok(apiKeys)
    assert.deepEqual(await factsOf(tx => tx.apiKeys.update(user.id, id, { name: 'other' }, NOW + 1)), [])
    const narrowerNetworks = { allowedNetworks: ['192.0.2.1/32'] }
    assert.deepEqual(
      await factsOf(tx => tx.apiKeys.update(user.id, id, narrowerNetworks, NOW + 1)),
      restrictionFacts(id, 1),
    )
    assert.deepEqual(await factsOf(tx => tx.apiKeys.update(newId(NOW), id, narrowerNetworks, NOW + 1)), [])
    assert.deepEqual(await factsOf(tx => tx.apiKeys.revoke(id, NOW + 1, BY_CALLER)), revocationFacts(id, 1))
    assert.deepEqual(await factsOf(tx => tx.apiKeys.revoke(id, NOW + 2, BY_CALLER)), [])
    const keyRevokedByOperator = await insert()
    assert.deepEqual(
      await factsOf(tx => tx.apiKeys.revoke(keyRevokedByOperator.id, NOW + 1, { at: NOW + 1, caller: null })),
      revocationFacts(keyRevokedByOperator.id, 1, 'null null'),
    )

    const replace = (old: string, expiresAt: number) => (tx: Transaction) =>
      tx.apiKeys.replace(old, newId(NOW), expiresAt, NOW + 1, BY_CALLER.caller)
    const keyReplacedAtOnce = await insert()
    assert.deepEqual(
      await factsOf(replace(keyReplacedAtOnce.id, NOW + 1)),
      revocationFacts(keyReplacedAtOnce.id, 1),
    )
    assert.deepEqual(await factsOf(replace(keyReplacedAtOnce.id, NOW + 1)), [])
    const endingFact = (key: string, at: number) => `ending: api_key ${key} of ${user.id} at ${at}`
    const keyEndingInFeed = await insert()
    assert.deepEqual(await factsOf(replace(keyEndingInFeed.id, NOW + FEED_WINDOW)), [
      ...restrictionFacts(keyEndingInFeed.id, 1),
      endingFact(keyEndingInFeed.id, FEED_WINDOW),
    ])
    // No ending is recorded if the old key expires after FEED_WINDOW: tokens from before the rotation expire sooner.
    const keyEndingAfterFeed = await insert()
    assert.deepEqual(
      await factsOf(replace(keyEndingAfterFeed.id, NOW + 1 + FEED_WINDOW)),
      restrictionFacts(keyEndingAfterFeed.id, 1),
    )
    const keyExpiringWithinOverlap = await insert({ expiresAt: NOW + SECOND })
    assert.deepEqual(
      await factsOf(replace(keyExpiringWithinOverlap.id, NOW + MINUTE)),
      restrictionFacts(keyExpiringWithinOverlap.id, 1),
    )

    const activeKeys = (await apiKeys.list(user.id, 'active', NOW + 2, { limit: 10, after: null })).rows
    const expected = activeKeys.map(key => key.id).flatMap(key => restrictionFacts(key, 3))
    assert.equal(activeKeys.length, 3)
    const factsOfRevokingAll = await factsOf(tx => tx.apiKeys.revokeAllOf(user.id, NOW + 3))
    assert.deepEqual(factsOfRevokingAll.toSorted(), expected.toSorted())
  })

  test('each end of a session is recorded with its actor, and the owner is notified of logout, revocation and reuse', async t => {
    const { user, storage, factsOf } = await openFacts(engine, t)
    const insert = async () => {
      const session = aSession(user.id)
      await storage.store.sessions.insert(session)
      return session.id
    }
    const endFacts = (id: string, type: string | null) => [
      `ending: session ${id} of ${user.id} at 1`,
      `changed: session ${id} of ${user.id}`,
      ...(type ? [`event: ${type} of ${user.id} at 1 by 198.51.100.7 their browser about ${id}`] : []),
    ]
    const [loggedOut, reused, revoked] = [await insert(), await insert(), await insert()]
    const end = (id: string, cause: 'logout' | 'reuse') =>
      factsOf(tx => tx.sessions.end(id, cause, NOW + 1, BY_CALLER))
    assert.deepEqual(await end(loggedOut, 'logout'), endFacts(loggedOut, 'session_ended'))
    assert.deepEqual(await end(loggedOut, 'reuse'), [])
    assert.deepEqual(await end(reused, 'reuse'), endFacts(reused, 'refresh_token_reused'))
    assert.deepEqual(
      await factsOf(tx => tx.sessions.endAllOf(user.id, 'revoked', null, BY_CALLER)),
      endFacts(revoked, 'session_ended'),
    )
    const suspendedSession = await insert()
    // The sessions have no events of their own: that of the suspension covers them.
    assert.deepEqual(
      await factsOf(tx => tx.sessions.endAllOf(user.id, 'suspended', null, BY_CALLER)),
      endFacts(suspendedSession, null),
    )
  })

  test('a security event that an operation inserts itself is stored once', async t => {
    const { user, factsOf } = await openFacts(engine, t)
    const event = securityEvent('sign_in', user.id, NOW, null, { sessionId: newId(NOW) })
    assert.deepEqual(await factsOf(tx => tx.securityEvents.insert(event)), [
      `event: sign_in of ${user.id} at 0 by null null about ${event.sessionId}`,
    ])
  })

  test('the journal records every link that was used', async t => {
    const { storage, factsOf } = await openFacts(engine, t)
    const email = address('links@example.com')
    const links = [aLink({ email }), aLink({ email }), aLink({ email })] as const
    for (const link of links) await storage.store.magicLinks.insert(link)
    const [first, second, third] = links.map(({ id }) => id) as [string, string, string]
    assert.deepEqual(await factsOf(tx => tx.magicLinks.consume(first, NOW + 1)), [`link: ${first} at 1`])
    assert.deepEqual(await factsOf(tx => tx.magicLinks.consume(first, NOW + 1)), [])
    assert.deepEqual(await factsOf(tx => tx.magicLinks.consumeOthers(email, second, NOW + 2)), [
      `link: ${third} at 2`,
    ])
    assert.deepEqual(await factsOf(tx => tx.magicLinks.consumeAllOf(email, NOW + 3)), [
      `link: ${second} at 3`,
    ])
  })

  test('the journal records charges, credits, authorisations and secrets of apps', async t => {
    const { user, storage, factsOf } = await openFacts(engine, t)
    const { id } = user
    await storage.store.apps.insert(anApp({ coversFrom: 0 }))
    assert.deepEqual(await factsOf(tx => tx.billing.post(anEntry(id, 500))), [`ledger: 500 of ${id}`])
    assert.deepEqual(await factsOf(tx => tx.billing.post(anEntry(id, -501))), [])
    const claim = () => factsOf(tx => tx.billing.claimTrialCredit('hash', id, NOW + 1))
    assert.deepEqual(await claim(), [`credit: hash of ${id} at 1`])
    assert.deepEqual(await claim(), [])
    const authorize = (at: number) => factsOf(tx => tx.billing.authorize(id, 'shop', NOW + at))
    const withdraw = (at: number) => factsOf(tx => tx.billing.withdraw(id, 'shop', NOW + at))
    assert.deepEqual(await factsOf(tx => tx.billing.authorize(id, 'unknown', NOW)), [])
    assert.deepEqual(await withdraw(1), [])
    assert.deepEqual(await authorize(2), [`authorization: shop of ${id} from 2 to null`])
    assert.deepEqual(await authorize(3), [])
    assert.deepEqual(await withdraw(4), [`authorization: shop of ${id} from 2 to 4`])
    assert.deepEqual(await withdraw(5), [])
    assert.deepEqual(await authorize(6), [`authorization: shop of ${id} from 6 to null`])
    assert.deepEqual(await factsOf(tx => tx.replay.withdrawAsOf(id, 'shop', NOW + 7)), [
      `authorization: shop of ${id} from 6 to 7`,
    ])
    assert.deepEqual(await factsOf(tx => tx.replay.withdrawAsOf(id, 'shop', NOW + 7)), [])
    assert.deepEqual(await factsOf(tx => tx.apps.addSecret('shop', 'a hash', NOW)), ['secrets: shop'])
    const removeSecretsBesides = (hashes: string[]) =>
      factsOf(tx => tx.replay.removeAppSecretsBesides('shop', hashes, NOW + 1))
    assert.deepEqual(await removeSecretsBesides(['a hash']), [])
    assert.deepEqual(await removeSecretsBesides([]), ['secrets: shop'])
    await storage.transaction(tx => tx.apps.addSecret('shop', 'a hash', NOW))
    const removeSecret = () => factsOf(tx => tx.apps.removeSecret('shop', 'a hash'))
    assert.deepEqual(await removeSecret(), ['secrets: shop'])
    assert.deepEqual(await removeSecret(), [])
  })

  test('a consent is recorded when it is given, extended and withdrawn, and so is what its withdrawal ends', async t => {
    const { user, storage, factsOf } = await openFacts(engine, t)
    const { id } = user
    await storage.store.apps.insert(anApp())
    const grant = (scopes: string[], at: number) =>
      factsOf(tx =>
        tx.consents.grant({ id: newId(NOW), userId: id, appId: 'shop', scopes, grantedAt: NOW + at }, NOW),
      )
    assert.deepEqual(await grant(['openid'], 1), [`consent: shop of ${id} to openid from 1 to null`])
    assert.deepEqual(await grant(['email'], 2), [`consent: shop of ${id} to email openid from 1 to null`])
    const withdraw = () => factsOf(tx => tx.consents.withdraw(id, 'shop', NOW + 3))
    assert.deepEqual(await withdraw(), [`consent: shop of ${id} to email openid from 1 to 3`])
    assert.deepEqual(await withdraw(), [])
    assert.deepEqual(await grant([], 4), [`consent: shop of ${id} to  from 4 to null`])
    const withdrawSome = () => factsOf(tx => tx.consents.withdrawSomeOfApp('shop', 10, NOW + 5))
    assert.deepEqual(await withdrawSome(), [`consent: shop of ${id} to  from 4 to 5`])
    assert.deepEqual(await withdrawSome(), [])
    assert.deepEqual(await grant([], 6), [`consent: shop of ${id} to  from 6 to null`])
    const withdrawAsOf = (at: number) => factsOf(tx => tx.replay.withdrawConsentAsOf(id, 'shop', NOW + at))
    assert.deepEqual(await withdrawAsOf(5), [])
    assert.deepEqual(await withdrawAsOf(7), [`consent: shop of ${id} to  from 6 to 7`])
    assert.deepEqual(await withdrawAsOf(7), [])

    const signInId = newId(NOW)
    const offlineGrant = { scopes: ['offline_access'], audience: null, signInId }
    const onlineSession = aSession(id, { appId: 'shop', kind: 'app', grant: { ...offlineGrant, scopes: [] } })
    await storage.store.sessions.insert(onlineSession)
    await storage.store.sessions.insert(aSession(id, { appId: 'other', kind: 'app', grant: offlineGrant }))
    const signOut = () => factsOf(tx => tx.sessions.endAllOfSignIn(signInId, { at: NOW + 5, caller: null }))
    assert.deepEqual(await signOut(), [
      `ending: session ${onlineSession.id} of ${id} at 5`,
      `changed: session ${onlineSession.id} of ${id}`,
      `event: session_ended of ${id} at 5 by null null about ${onlineSession.id}`,
    ])
    assert.deepEqual(await signOut(), [])

    const session = aSession(id, { appId: 'shop', kind: 'app', grant: { scopes: [], audience: null } })
    await storage.store.sessions.insert(session)
    await storage.store.sessions.insert(aSession(id, { appId: 'shop' }))
    const end = () => factsOf(tx => tx.sessions.endAllOfApp(id, 'shop', { at: NOW + 6, caller: null }))
    assert.deepEqual(await end(), [
      `ending: session ${session.id} of ${id} at 6`,
      `changed: session ${session.id} of ${id}`,
      `event: session_ended of ${id} at 6 by null null about ${session.id}`,
    ])
    assert.deepEqual(await end(), [])
  })

  test('everything that the removal of an app ends is recorded', async t => {
    const { user, storage, factsOf } = await openFacts(engine, t)
    const { id } = user
    const { store } = storage
    await store.apps.insert(anApp())
    await storage.transaction(tx => tx.billing.authorize(id, 'shop', NOW))
    const session = aSession(id, { appId: 'shop', kind: 'app', grant: { scopes: [], audience: null } })
    await store.sessions.insert(session)
    await store.sessions.insert(aSession(id, { appId: 'shop' }))
    const remove = () => factsOf(tx => tx.apps.remove('shop', NOW + 1))
    assert.deepEqual(await remove(), ['secrets: shop'])
    assert.deepEqual(await remove(), [])
    const end = () => factsOf(tx => tx.sessions.endSomeOfApp('shop', 10, { at: NOW + 2, caller: null }))
    assert.deepEqual(await end(), [
      `ending: session ${session.id} of ${id} at 2`,
      `changed: session ${session.id} of ${id}`,
      `event: session_ended of ${id} at 2 by null null about ${session.id}`,
    ])
    assert.deepEqual(await end(), [])
    const withdraw = () => factsOf(tx => tx.billing.withdrawSomeOfApp('shop', NOW + 3, 10))
    assert.deepEqual(await withdraw(), [`authorization: shop of ${id} from 0 to 3`])
    assert.deepEqual(await withdraw(), [])
    await store.apps.insert(anApp())
    assert.deepEqual(await factsOf(tx => tx.apps.dropSecrets('shop')), [])
    await storage.transaction(tx => tx.apps.addSecret('shop', 'a hash', NOW))
    assert.deepEqual(await factsOf(tx => tx.apps.dropSecrets('shop')), ['secrets: shop'])
  })

  test('changes of keys by a replay are recorded like the original ones', async t => {
    const { user, storage, factsOf } = await openFacts(engine, t)
    const key = aKey(user.id)
    await storage.store.apiKeys.insert(key)
    const restrictionFacts = [
      `ending: api_key ${key.id} of ${user.id} at 1`,
      `changed: api_key ${key.id} of ${user.id}`,
    ]
    const endBy = (end: number) => factsOf(tx => tx.replay.endKeyBy(key, NOW + end, NOW + 1))
    assert.deepEqual(await endBy(DAY), restrictionFacts)
    assert.deepEqual(await endBy(2 * DAY), [])
    assert.deepEqual(await endBy(MINUTE), [
      ...restrictionFacts,
      `ending: api_key ${key.id} of ${user.id} at ${MINUTE}`,
    ])
    const replace = (from: string[]) =>
      factsOf(tx => tx.replay.replaceNetworks(key, from, ['192.0.2.1/32'], NOW + 1))
    assert.deepEqual(await replace(['203.0.113.0/24']), [])
    assert.deepEqual(await replace(key.allowedNetworks), restrictionFacts)
  })

  test('the feed notifies its subscribers of keys, sessions and accounts, and of nothing else', async t => {
    const { storage, clock, user } = await openFacts(engine, t)
    const { subscribe } = createRevocations({ storage, clock })
    const key = aKey(user.id)
    const session = aSession(user.id)
    await storage.store.apiKeys.insert(key)
    await storage.store.sessions.insert(session)
    let wakeUpCount = 0
    const countWakeUpsBy = async (operation: (tx: Transaction) => Promise<unknown>): Promise<number> => {
      wakeUpCount = 0
      const unsubscribe = subscribe(() => wakeUpCount++)
      await storage.transaction(operation)
      const lastEvent = Promise.withResolvers<void>()
      const unsubscribeEvents = storage.events.subscribe(
        ({ type }) => type === 'signing_keys.changed' && lastEvent.resolve(),
      )
      await storage.events.publish({ type: 'mail.queued' })
      await storage.events.publish({ type: 'signing_keys.changed' })
      await lastEvent.promise
      unsubscribeEvents()
      unsubscribe()
      return wakeUpCount
    }
    assert.equal(await countWakeUpsBy(async () => {}), 0)
    assert.equal(await countWakeUpsBy(tx => tx.apiKeys.revoke(key.id, NOW, BY_SERVICE)), 1)
    assert.equal(await countWakeUpsBy(tx => tx.sessions.end(session.id, 'logout', NOW, BY_SERVICE)), 1)
    assert.equal(await countWakeUpsBy(tx => audited(tx).users.suspend(user.id, NOW)), 1)
    wakeUpCount = 0
    await storage.transaction(tx => audited(tx).users.activate(user.id, NOW))
    assert.equal(wakeUpCount, 0, 'unsubscribed')
  })
})
