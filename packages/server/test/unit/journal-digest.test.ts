import assert from 'node:assert/strict'
import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openJournal } from '../../src/backup/journal.ts'
import { type DigestOptions, digestJournal, filesNeeded } from '../../src/backup/journal-digest.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { journalFiles } from '../../src/backup/journal-reader.ts'
import { DAY } from '../../src/clock.ts'
import { createSecrets } from '../../src/secrets.ts'
import { linesOf } from '../backup/files.ts'
import { temporaryFolder } from '../support/serve.ts'

const secrets = createSecrets([Buffer.alloc(32, 1)])
const TRUST = { secrets, unauthenticated: false }
const FIRST_DAY = Date.UTC(2030, 0, 1)
const NOON = FIRST_DAY + DAY / 2

function open(t: TestContext) {
  const { path: folder, remove } = temporaryFolder()
  t.after(remove)
  return {
    folder,
    /**
     * Writes these entries to a new file. If `isCut`, the file lacks the last of them, and the line that marks the file
     * as complete.
     */
    async write(entries: readonly JournalEntry[], { at = NOON, serviceId = 'service', isCut = false } = {}) {
      const existingFiles = await journalFiles(folder).catch((): string[] => [])
      const journal = await openJournal(folder, { clock: { now: () => at }, secrets, serviceId })
      await journal.append(entries)
      await journal.close()
      const file = (await journalFiles(folder)).find(each => !existingFiles.includes(each))!
      if (isCut) truncateSync(file, Buffer.byteLength(linesOf(file).slice(0, -2).join('')))
      return file
    },
    async digest(options: Partial<DigestOptions> = {}) {
      return digestJournal(await journalFiles(folder), { trust: TRUST, serviceId: 'service', ...options })
    },
  }
}

/** The digest of a journal with one file, which has these entries in this order. */
async function digestOf(t: TestContext, entries: readonly JournalEntry[]) {
  const { write, digest } = open(t)
  await write(entries)
  return digest()
}

const link = (at: number): JournalEntry => ({ type: 'magic_link', at, id: 'l' })
const apiKey = (at: number, network: string, more = {}): JournalEntry => ({
  type: 'api_key',
  at,
  id: 'k',
  revoked_at: null,
  expires_at: null,
  allowed_networks: [network],
  ...more,
})
const user = (at: number, status: 'active' | 'suspended' | 'deleted', more = {}): JournalEntry => ({
  type: 'user',
  at,
  id: 'u',
  status,
  ...more,
})

test('a key has its earliest end and its latest networks, in any order of entries', async t => {
  const entries = [
    apiKey(10, 'a', { expires_at: 90 }),
    apiKey(20, 'b', { revoked_at: 20, expires_at: 100 }),
    apiKey(30, 'c', { revoked_at: 30 }),
  ]
  for (const each of [entries, entries.toReversed(), [entries[1]!, entries[2]!, entries[0]!]])
    assert.deepEqual((await digestOf(t, each)).keys.get('k'), {
      revokedAt: 20,
      expiresAt: 90,
      allowedNetworks: ['c'],
      at: 30,
    })
  const { keys } = await digestOf(t, [apiKey(10, 'a'), apiKey(10, 'b')])
  assert.deepEqual(keys.get('k')?.allowedNetworks, ['b'], 'the later line of one millisecond')
})

test('an account has its latest status, role and deletion, each from the last entry that has it', async t => {
  const entries = [
    user(10, 'active', { role: 'admin', deletes_at: 500 }),
    user(20, 'suspended', { role: 'support' }),
    user(30, 'active'),
    user(40, 'active', { deletes_at: null }),
  ]
  for (const each of [entries, entries.toReversed()])
    assert.deepEqual((await digestOf(t, each)).users.get('u'), {
      status: 'active',
      at: 40,
      role: { role: 'support', at: 20 },
      deletion: { deletesAt: null, at: 40 },
    })
  const noRoleOrDeletion = { role: null, deletion: null }
  assert.deepEqual((await digestOf(t, [user(10, 'suspended')])).users.get('u'), {
    status: 'suspended',
    at: 10,
    ...noRoleOrDeletion,
  })
  const { users } = await digestOf(t, [
    user(10, 'active', { role: 'user', deletes_at: 1 }),
    user(10, 'suspended', { role: 'admin', deletes_at: 2 }),
  ])
  assert.deepEqual(users.get('u'), {
    status: 'suspended',
    at: 10,
    role: { role: 'admin', at: 10 },
    deletion: { deletesAt: 2, at: 10 },
  })
})

test('a deleted account stays deleted, whatever entry is later', async t => {
  for (const entries of [
    [user(10, 'deleted'), user(20, 'active')],
    [user(20, 'active'), user(10, 'deleted')],
  ]) {
    const { status, at } = (await digestOf(t, entries)).users.get('u')!
    assert.deepEqual([status, at], ['deleted', 10])
  }
})

test('secrets of an app, authorisations, consents and policies are those of their last entry', async t => {
  const changes = (at: number): JournalEntry[] => [
    { type: 'app_secrets', at, id: 'a', secrets: [{ hash: `h${at}`, created_at: 1 }] },
    { type: 'charge_authorization', at, user_id: 'u', app_id: 'a', granted_at: at, revoked_at: null },
    { type: 'consent', at, id: 'c', user_id: 'u', app_id: 'a', scopes: [], granted_at: at, revoked_at: null },
    { type: 'policies', at, policies: {}, changed_at: at },
  ]
  const latestEntries = changes(20)
  const otherEntries: JournalEntry[] = [
    { type: 'charge_authorization', at: 5, user_id: 'u', app_id: 'b', granted_at: 5, revoked_at: null },
    { type: 'consent', at: 5, id: 'd', user_id: 'v', app_id: 'a', scopes: [], granted_at: 5, revoked_at: 5 },
  ]
  for (const entries of [
    [...otherEntries, ...changes(10), ...latestEntries],
    [...latestEntries, ...otherEntries, ...changes(10)],
  ]) {
    const digest = await digestOf(t, entries)
    assert.equal(digest.entries, 10)
    assert.deepEqual([...digest.appSecrets.values()], [latestEntries[0]])
    assert.deepEqual(digest.authorizations.get('u a'), latestEntries[1])
    assert.deepEqual(digest.authorizations.get('u b'), otherEntries[0])
    assert.deepEqual(digest.consents.get('u a'), latestEntries[2])
    assert.deepEqual(digest.consents.get('v a'), otherEntries[1])
    assert.deepEqual(digest.policies, latestEntries[3])
    assert.deepEqual([digest.keys.size, digest.users.size], [0, 0])
    assert.deepEqual([digest.authorizations.size, digest.consents.size], [2, 2])
  }
  const laterEntry: JournalEntry = { type: 'policies', at: 20, policies: {}, changed_at: 20 }
  const { policies } = await digestOf(t, [
    ...latestEntries,
    { ...laterEntry, policies: { defaultKeyLifetimeDays: 7 } },
  ])
  assert.deepEqual(policies?.policies, { defaultKeyLifetimeDays: 7 }, 'the later line of one millisecond')
})

test('entries from `since` on count, and progress is reported for each thousand', async t => {
  const { write, digest } = open(t)
  await write([link(NOON - 1), ...Array.from({ length: 2500 }, () => link(NOON))])
  const counts: number[] = []
  const { entries, beginsAt, openEnds, missing } = await digest({
    since: NOON,
    progress: count => counts.push(count),
  })
  assert.deepEqual([entries, counts], [2500, [1000, 2000]])
  assert.deepEqual([beginsAt, openEnds, missing], [NOON, [], null])
  assert.equal((await digest()).entries, 2501)
})

test('a journal begins with its earliest file, and a journal without any has no beginning', async t => {
  const { write, digest } = open(t)
  await write([link(NOON + DAY)], { at: NOON + DAY })
  await write([link(NOON)])
  assert.equal((await digest()).beginsAt, NOON)
  assert.equal((await digestJournal([], { trust: TRUST, serviceId: null })).beginsAt, null)
})

test('the journal of another service is refused, and of this one or of an unknown one accepted', async t => {
  const { write, digest } = open(t)
  const file = await write([link(NOON)], { serviceId: 'another' })
  await assert.rejects(digest(), ({ message }: Error) =>
    message.startsWith(`${file} is the journal of another service (another; this one is service). Nothing`),
  )
  assert.equal((await digest({ serviceId: 'another' })).entries, 1)
  assert.equal((await digest({ serviceId: null })).entries, 1)
})

test('files without an end are listed from the day of `since` on', async t => {
  const { write, digest } = open(t)
  const files: string[] = []
  for (const day of [0, 1, 2])
    files.push(await write([link(NOON)], { at: NOON + day * DAY, isCut: day !== 1 }))
  const openEndsSince = async (since: number) => (await digest({ since })).openEnds
  const [first, , third] = files.map(file => basename(file))
  const lastOpenEnd = { file: third, at: NOON + 2 * DAY }
  const firstAndLastOpenEnds = [{ file: first, at: NOON }, lastOpenEnd]
  assert.deepEqual(await openEndsSince(0), firstAndLastOpenEnds)
  assert.deepEqual(await openEndsSince(FIRST_DAY + DAY - 1), firstAndLastOpenEnds)
  assert.deepEqual(await openEndsSince(FIRST_DAY + DAY), [lastOpenEnd])
  assert.deepEqual(await openEndsSince(FIRST_DAY + 3 * DAY), [])
})

test('a file of a needed day may not be missing, unless the operator accepts that', async t => {
  const { write, digest } = open(t)
  const files: string[] = []
  for (const day of [0, 1, 2]) files.push(await write([link(NOON)], { at: NOON + day * DAY }))
  const [, second, third] = files.map(file => basename(file))
  rmSync(files[1]!)
  const problem = `${second} is missing, which ${third} lists`
  for (const since of [0, FIRST_DAY + 2 * DAY - 1])
    await assert.rejects(digest({ since }), ({ message }: Error) =>
      message.startsWith(`The journal is incomplete: ${problem}. Nothing was changed. Restore the original`),
    )
  assert.equal((await digest({ trust: { ...TRUST, unauthenticated: true } })).missing, problem)
  assert.equal((await digest({ since: FIRST_DAY + 2 * DAY })).missing, null)
  rmSync(files[0]!)
  assert.equal((await digest()).missing, null, 'the oldest days may be deleted')
})

test('a file that is shorter than a later one lists it is truncated', async t => {
  const { write, digest } = open(t)
  const first = await write([link(NOON)])
  const second = await write([link(NOON)], { at: NOON + DAY })
  assert.equal((await digest()).missing, null)
  const lines = linesOf(first)
  writeFileSync(first, lines.slice(0, -2).join(''))
  const [bytesLeft, bytesBefore] = [
    Buffer.byteLength(lines.slice(0, -2).join('')),
    Buffer.byteLength(lines.join('')),
  ]
  await assert.rejects(
    digest(),
    new RegExp(
      `${basename(first)} is truncated: it has ${bytesLeft} bytes of complete lines, and had ${bytesBefore} when ${basename(second)} was created`,
    ),
  )
})

test('files without MACs are skipped when they are older than what is needed', () => {
  const files = ['2030-01-01-a.ndjson', '2030-01-01-b.v2.ndjson', '2030-01-02-c.ndjson']
  const neededFiles = (since: number, unauthenticated = false) =>
    filesNeeded(files, since, { secrets, unauthenticated })
  assert.deepEqual(neededFiles(FIRST_DAY + DAY - 1), files)
  assert.deepEqual(neededFiles(FIRST_DAY + DAY), files.slice(1))
  assert.deepEqual(neededFiles(FIRST_DAY + 2 * DAY), files.slice(1, 2))
  assert.deepEqual(neededFiles(FIRST_DAY + 2 * DAY, true), files)
})
