import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openJournal } from '../../src/backup/journal.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { journalFiles, readJournalLines } from '../../src/backup/journal-reader.ts'
import { createJournalWriter } from '../../src/backup/journal-writer.ts'
import type { Fact } from '../../src/endings/fact.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { aKey, anApp, anEntry, aSession, audited, insertUser, NOW } from '../contract/fixtures.ts'
import { openTestStorage } from '../support/engines.ts'
import { temporaryFolder } from '../support/serve.ts'

/** A writer over a SQLite store only, since the writer does the same on both engines. */
async function openWriter(t: TestContext) {
  const { storage, secrets } = await openTestStorage('sqlite', t)
  const { path: folder, remove } = temporaryFolder()
  t.after(remove)
  const clock = { now: () => NOW + 9 }
  const journal = await openJournal(folder, { clock, secrets, serviceId: 'service' })
  t.after(journal.close)
  const logged: Record<string, unknown>[] = []
  const log = createLog('info', { write: line => void logged.push(JSON.parse(line)) })
  const write = createJournalWriter({ journal, store: storage.store, clock, log })
  let entriesRead = 0
  /** Passes facts to the writer; returns the journal entries that it adds for them. */
  async function entriesOf(...facts: Fact[]): Promise<JournalEntry[]> {
    await write(facts)
    const entries: JournalEntry[] = []
    for await (const { entry } of readJournalLines(await journalFiles(folder), {
      secrets,
      unauthenticated: false,
    }))
      if (entry.type !== 'opened') entries.push(entry)
    const addedEntries = entries.slice(entriesRead)
    entriesRead = entries.length
    return addedEntries
  }
  return { storage, journal, folder, write, entriesOf, logged, user: await insertUser(storage.store) }
}

const changedFact = (kind: 'api_key' | 'session' | 'user', id: string, userId: string): Fact => ({
  type: 'changed',
  kind,
  id,
  userId,
})

test('the journal has the state of a changed key, once for all changes of a transaction', async t => {
  const { storage, user, entriesOf } = await openWriter(t)
  const key = aKey(user.id, { revokedAt: NOW + 1, expiresAt: NOW + 5, allowedNetworks: ['192.0.2.0/24'] })
  const unchangedKey = aKey(user.id)
  for (const each of [key, unchangedKey]) await storage.store.apiKeys.insert(each)
  const fact = changedFact('api_key', key.id, user.id)
  const entry = (id: string, state: object) => ({ type: 'api_key', at: NOW + 9, id, ...state })
  const unchangedState = {
    revoked_at: null,
    expires_at: unchangedKey.expiresAt,
    allowed_networks: unchangedKey.allowedNetworks,
  }
  assert.deepEqual(await entriesOf(fact, fact, changedFact('api_key', unchangedKey.id, user.id)), [
    entry(key.id, { revoked_at: NOW + 1, expires_at: NOW + 5, allowed_networks: ['192.0.2.0/24'] }),
    entry(unchangedKey.id, unchangedState),
  ])
  assert.deepEqual(await entriesOf(changedFact('api_key', newId(NOW), user.id)), [])
})

test('the journal has the end of a session, and nothing about a session that goes on', async t => {
  const { storage, user, entriesOf } = await openWriter(t)
  const session = aSession(user.id)
  await storage.store.sessions.insert(session)
  const fact = changedFact('session', session.id, user.id)
  assert.deepEqual(await entriesOf(fact), [])
  await storage.transaction(tx => tx.sessions.end(session.id, 'reuse', NOW + 1, { at: NOW, caller: null }))
  assert.deepEqual(await entriesOf(fact), [
    { type: 'session', at: NOW + 1, id: session.id, ended_by: 'reuse' },
  ])
  assert.deepEqual(await entriesOf(changedFact('session', newId(NOW), user.id)), [])
})

test('the journal has the status, role and deletion of a changed account', async t => {
  const { storage, user, entriesOf } = await openWriter(t)
  await storage.transaction(tx => audited(tx).users.setRole(user.id, 'support', NOW))
  assert.deepEqual(await entriesOf(changedFact('user', user.id, user.id)), [
    { type: 'user', at: NOW + 9, id: user.id, status: 'active', role: 'support', deletes_at: null },
  ])
  assert.deepEqual(await entriesOf(changedFact('user', newId(NOW), user.id)), [])
})

test('the journal has all secrets of an app, once for all changes, and its removal', async t => {
  const { storage, entriesOf } = await openWriter(t)
  await storage.store.apps.insert(anApp())
  for (const hash of ['a', 'b']) await storage.transaction(tx => tx.apps.addSecret('shop', hash, NOW + 1))
  const fact: Fact = { type: 'app_secrets', id: 'shop' }
  const secrets = ['a', 'b'].map(hash => ({ hash, created_at: NOW + 1 }))
  const [entry, ...more] = await entriesOf(fact, fact)
  assert.ok(entry?.type === 'app_secrets')
  assert.deepEqual(more, [])
  const sortedSecrets = entry.secrets.toSorted((x, y) => (x.hash < y.hash ? -1 : 1))
  assert.deepEqual(
    { ...entry, secrets: sortedSecrets },
    { type: 'app_secrets', at: NOW + 9, id: 'shop', secrets },
  )
  await storage.transaction(tx => tx.apps.remove('shop', NOW + 2))
  assert.deepEqual(await entriesOf(fact), [
    { type: 'app_secrets', at: NOW + 9, id: 'shop', secrets: [], removed_at: NOW + 2 },
  ])
})

test('the journal has links, invitations, charges, credits, authorisations, consents and policies as they were recorded', async t => {
  const { entriesOf } = await openWriter(t)
  const entry = { ...anEntry('u', 500), balanceAfter: 500 }
  const state = { userId: 'u', appId: 'a', grantedAt: 1, revokedAt: 2 }
  const journaledState = { user_id: 'u', app_id: 'a', granted_at: 1, revoked_at: 2 }
  const links = ['x', 'x', 'y'].map(id => ({ type: 'magic_link', id, at: 3 }) as const)
  const at = NOW + 9
  const facts: Fact[] = [
    ...links,
    { type: 'invitation', id: 'i', at: 4 },
    { type: 'ledger', entry },
    { type: 'trial_credit', addressHash: 'h', userId: 'u', at: 5 },
    { type: 'charge_authorization', authorization: state },
    { type: 'consent', consent: { ...state, id: 'c', scopes: ['openid'] } },
    { type: 'policies', set: { policies: { defaultKeyLifetimeDays: 7 }, changedAt: 6 } },
  ]
  assert.deepEqual(await entriesOf(...facts), [
    ...links,
    { type: 'invitation', id: 'i', at: 4 },
    { type: 'ledger', entry, at },
    { type: 'trial_credit', at: 5, address_hash: 'h', user_id: 'u' },
    { type: 'charge_authorization', at, ...journaledState },
    { type: 'consent', at, id: 'c', scopes: ['openid'], ...journaledState },
    { type: 'policies', at, policies: { defaultKeyLifetimeDays: 7 }, changed_at: 6 },
  ])
  const ending = { id: 'e', kind: 'user', subjectId: 'u', userId: 'u', at: 1 } as const
  assert.deepEqual(await entriesOf({ type: 'ending', ending }), [])
})

test('a journal that cannot be written is logged as an error, and the change stands', async t => {
  const { journal, write, logged, folder } = await openWriter(t)
  const brokenWriter = createJournalWriter({
    journal: { ...journal, append: () => Promise.reject(new Error('the disk is full')) },
    store: undefined as never,
    clock: { now: () => NOW },
    log: createLog('info', { write: line => void logged.push(JSON.parse(line)) }),
  })
  await write([])
  await brokenWriter([])
  assert.deepEqual(logged, [])
  await brokenWriter([{ type: 'magic_link', id: 'x', at: 1 }])
  const loggedFields = logged.map(({ level, error, msg }) => ({ level, error, msg }))
  assert.deepEqual(loggedFields, [
    {
      level: 'error',
      error: 'Error: the disk is full',
      msg: 'the journal cannot be written: a restore would lose this change',
    },
  ])
  assert.equal((await journalFiles(folder)).length, 1)
})
