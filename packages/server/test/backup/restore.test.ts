import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createBackup } from '../../src/backup/backup.ts'
import { checkBackup, readRows, writeBackup } from '../../src/backup/backup-file.ts'
import { openJournal } from '../../src/backup/journal.ts'
import { type JournalEntry, serviceIdOf } from '../../src/backup/journal-entry.ts'
import { createRestore, MAX_COMMIT_DELAY, type RestoreOptions } from '../../src/backup/restore.ts'
import { DAY } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { createBackupStore } from '../../src/storage/backup.ts'
import { openPepper } from '../../src/users/trial-credit.ts'
import { aKey, anEntry, insertUser } from '../contract/fixtures.ts'
import { openTestStorage } from '../support/engines.ts'
import { temporaryFolder } from '../support/serve.ts'

/**
 * A backup of one account with a key, and an empty database. SQLite suffices, since the rules of a restore do not
 * depend on the engine.
 */
async function openBackup(t: TestContext) {
  const { path, remove } = temporaryFolder()
  t.after(remove)
  const { storage, secrets } = await openTestStorage('sqlite', t)
  const user = await insertUser(storage.store, { deletesAt: Date.now() + DAY })
  const key = aKey(user.id)
  await storage.store.apiKeys.insert(key)
  const file = join(path, 'monday.keyway')
  const backUp = createBackup({
    store: createBackupStore(storage.engine),
    version: 'test',
    secrets,
    openPepper: sealed => secrets.open('address-pepper', sealed, 'address-pepper'),
  })
  const { createdAt, counts } = await backUp(file)
  const target = await openTestStorage('sqlite', t)
  const journalDir = join(path, 'journal')
  const now = createdAt + 1000
  const restore = createRestore({
    store: createBackupStore(target.storage.engine),
    clock: { now: () => now },
    secrets,
  })
  return {
    ...{ user, key, file, createdAt, counts, now, secrets, journalDir },
    store: target.storage.store,
    restore: (options: Partial<RestoreOptions> = {}) =>
      restore(file, { journalDir: null, keepKeys: false, unauthenticated: false, ...options }),
    async journal(entries: readonly JournalEntry[], at = createdAt) {
      const journal = await openJournal(journalDir, {
        clock: { now: () => at },
        secrets,
        serviceId: 'service',
      })
      await journal.append(entries)
      await journal.close()
    },
  }
}

test('a backup names the service that wrote it, if the service has ever started', async t => {
  const { file, secrets } = await openBackup(t)
  const authentication = { secrets, unauthenticated: false }
  assert.equal((await checkBackup(file, authentication)).header.service, null)
  const { storage } = await openTestStorage('sqlite', t)
  const pepper = await openPepper(storage, secrets)
  const secondFile = `${file}.second`
  await createBackup({
    store: createBackupStore(storage.engine),
    version: 'test',
    secrets,
    openPepper: sealed => secrets.open('address-pepper', sealed, 'address-pepper'),
  })(secondFile)
  assert.equal((await checkBackup(secondFile, authentication)).header.service, serviceIdOf(pepper))
})

test('a restore without a journal revokes all keys, and gives people time to cancel deletions', async t => {
  const { restore, store, user, key, counts, createdAt, now } = await openBackup(t)
  assert.deepEqual(await restore(), {
    backupFrom: createdAt,
    counts,
    sessionsEnded: 0,
    linksEnded: 0,
    keysRevoked: 1,
    journal: null,
  })
  assert.equal((await store.users.find(user.id))?.deletesAt, now + 7 * DAY)
  assert.equal((await store.apiKeys.findOwned(user.id, key.id))?.revokedAt, now)
})

test('a restore that is to keep the keys revokes none', async t => {
  const { restore, store, user, key } = await openBackup(t)
  assert.equal((await restore({ keepKeys: true })).keysRevoked, 0)
  assert.equal((await store.apiKeys.findOwned(user.id, key.id))?.revokedAt, null)
})

test('a restore applies the entries of the journal since the backup, and counts those of unknown subjects', async t => {
  const { restore, store, user, key, journal, journalDir, createdAt } = await openBackup(t)
  const at = createdAt - MAX_COMMIT_DELAY
  const keyState = { type: 'api_key' as const, revoked_at: at, expires_at: null, allowed_networks: [] }
  const entry = { ...anEntry(user.id, 500), balanceAfter: 500 }
  const entryOfUnknownUser = { ...anEntry(newId(createdAt), 500), balanceAfter: 500 }
  await journal([
    { ...keyState, at: at - 1, id: newId(at) },
    { ...keyState, at, id: key.id },
    { ...keyState, at, id: newId(at) },
    { type: 'user', at, id: user.id, status: 'active', role: 'support', deletes_at: at + DAY },
    { type: 'magic_link', at, id: newId(at) },
    { type: 'ledger', at, entry },
    { type: 'ledger', at, entry: entryOfUnknownUser },
  ])
  const report = await restore({ journalDir })
  assert.deepEqual(report.journal, { applied: 3, unknown: 2, openEnds: [], missing: null })
  assert.equal(report.keysRevoked, 0)
  assert.equal((await store.apiKeys.findOwned(user.id, key.id))?.revokedAt, at)
  const { role, deletesAt } = (await store.users.find(user.id))!
  assert.deepEqual([role, deletesAt], ['support', at + DAY])
})

test('a journal must begin at the time of the backup or before', async t => {
  const backupWithLateJournal = await openBackup(t)
  await backupWithLateJournal.journal([], backupWithLateJournal.createdAt + 1)
  await assert.rejects(
    backupWithLateJournal.restore({ journalDir: backupWithLateJournal.journalDir }),
    ({ message }: Error) =>
      message.startsWith(
        `The journal in ${backupWithLateJournal.journalDir} begins at ${new Date(backupWithLateJournal.createdAt + 1).toJSON()}`,
      ),
  )
  const backupWithTimelyJournal = await openBackup(t)
  await backupWithTimelyJournal.journal([])
  assert.deepEqual(
    (await backupWithTimelyJournal.restore({ journalDir: backupWithTimelyJournal.journalDir })).journal
      ?.applied,
    0,
  )
})

test('a backup with migrations or tables that this version does not know is refused, and nothing is written', async t => {
  const { restore, file, secrets, store, user } = await openBackup(t)
  const { header } = await checkBackup(file, { secrets, unauthenticated: false })
  const rewrite = async (change: object, table = 'users') => {
    const rows = readRows(await checkBackup(file, { secrets, unauthenticated: false }))
    const changedRows = (await Array.fromAsync(rows)).map(each => ({
      ...each,
      table: each.table === 'users' ? table : each.table,
    }))
    await writeBackup(
      file,
      { ...header, ...change },
      (async function* () {
        yield* changedRows
      })(),
      secrets,
    )
  }
  await rewrite({ version: '9.0.0', migrations: [...header.migrations, '9998_newer', '9999_newest'] })
  await assert.rejects(restore(), {
    message:
      'The backup is of version 9.0.0, which is newer (9998_newer, 9999_newest). Restore it with that version.',
  })
  await rewrite({}, 'signing_keys')
  await assert.rejects(restore(), {
    message: 'The backup has rows of "signing_keys", which does not belong in backups.',
  })
  assert.equal(await store.users.find(user.id), null)
})

test('a database with accounts is not restored into', async t => {
  const { restore } = await openBackup(t)
  await restore()
  await assert.rejects(
    restore(),
    /^OperatorError: This database has accounts already; a restore needs an empty one\./,
  )
})
