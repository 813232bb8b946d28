import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate, setTimeout as wait } from 'node:timers/promises'
import { createBackup } from '../../src/backup/backup.ts'
import { createClock, SECOND } from '../../src/clock.ts'
import { createRevocations } from '../../src/endings/revocation-feed.ts'
import { newId } from '../../src/ids.ts'
import { createSessions } from '../../src/sessions/sessions.ts'
import { createBackupStore } from '../../src/storage/backup.ts'
import type { Storage } from '../../src/store.ts'
import { freshSettings } from '../backup/commands.ts'
import { linesOf, namesIn } from '../backup/files.ts'
import { keyway, outputOf } from '../support/command-line.ts'
import { forEachEngine, postgresMissing } from '../support/engines.ts'
import { createPrintedLinks, signIn, startNode } from '../support/nodes.ts'
import { caller, openServices, refusedWith } from '../support/services.ts'

/** A gate where one caller waits until the test opens it; `reached` resolves when the caller has arrived. */
function createGate(t: TestContext) {
  const callerArrived = Promise.withResolvers<void>()
  const gateOpened = Promise.withResolvers<void>()
  // Runs before the hooks of other resources, which wait for the caller at the gate.
  t.after(() => gateOpened.resolve())
  return {
    reached: callerArrived.promise,
    open: gateOpened.resolve,
    /** @param query called once a second while waiting, since PostgreSQL ends a transaction that idles too long */
    async pass<Value>(value: Value, query: () => Promise<unknown> = async () => {}): Promise<Value> {
      callerArrived.resolve()
      const isOpen = gateOpened.promise.then(() => true)
      while (!(await Promise.race([isOpen, wait(SECOND, false)]))) await query()
      return value
    },
  }
}

/** The storage, with transactions that wait at the gate just before their COMMIT. */
function withLateCommits<Base extends Storage>(storage: Base, gate: ReturnType<typeof createGate>): Base {
  return {
    ...storage,
    transaction: (work, readBack) =>
      storage.transaction(async tx => gate.pass(await work(tx)), readBack as undefined),
  } as Base
}

forEachEngine(engine => {
  test('an ending that commits nine seconds late is in the feed of a consumer that had read past its timestamp', async t => {
    const gate = createGate(t)
    const services = await openServices(engine, t)
    const { storage, clock } = services
    const { user, session } = await services.signIn('ann@example.com')
    const sessionsCommittingLate = createSessions({
      ...services,
      storage: withLateCommits(storage, gate),
      lifetimes: services.lifetimes,
    })
    const pendingEnd = sessionsCommittingLate.end(user.id, session.id, caller())
    await gate.reached
    clock.advance(9 * SECOND)
    const feed = createRevocations({ storage, clock })
    const pageBefore = await feed.since(null, 100)
    assert.deepEqual(pageBefore!.endings, [])
    gate.open()
    await pendingEnd
    const pageAfter = await feed.since(pageBefore!.cursor, 100)
    assert.deepEqual(
      pageAfter!.endings.map(({ subjectId }) => subjectId),
      [session.id],
    )
  })

  test('a refresh that read its session before a logout does not continue it', async t => {
    const gate = createGate(t)
    const services = await openServices(engine, t)
    const { storage } = services
    const { tokens, session } = await services.signIn('ann@example.com')
    const { sessions } = storage.store
    const slowlyReadingStorage: Storage = {
      ...storage,
      store: {
        ...storage.store,
        sessions: { ...sessions, findWithUser: async id => gate.pass(await sessions.findWithUser(id)) },
      },
    }
    const sessionsReadingSlowly = createSessions({
      ...services,
      storage: slowlyReadingStorage,
      lifetimes: services.lifetimes,
    })
    const pendingRefresh = refusedWith(sessionsReadingSlowly.refresh(tokens.refreshToken, null, caller()))
    await gate.reached
    await services.sessions.endByToken(tokens.refreshToken, 'logout', caller())
    const endedSession = await sessions.find(session.id)
    gate.open()
    assert.equal(await pendingRefresh, 'invalid_refresh_token')
    assert.deepEqual(await sessions.find(session.id), endedSession, 'neither revived nor rotated')
  })
})

test('a charge that commits during a backup is restored from the journal', {
  // On SQLite a backup waits for the open transaction, so no charge can commit during it.
  skip: postgresMissing(),
}, async t => {
  const gate = createGate(t)
  const settings = await freshSettings('postgres', t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const ann = await signIn(node.origin, links, 'ann@example.com')
  const { storage, secrets } = node.services
  const clock = createClock()
  const id = newId(clock.now())
  const pendingCharge = storage.transaction(async tx =>
    gate.pass(
      await tx.billing.post({
        id,
        userId: ann.user.id,
        kind: 'charge',
        amount: -500_000,
        appId: null,
        description: 'late',
        cause: id,
        keyId: null,
        lineageId: null,
        createdAt: clock.now(),
      }),
      () => tx.billing.balance(ann.user.id),
    ),
  )
  await gate.reached
  const chargedAt = clock.now()
  while (clock.now() <= chargedAt) await setImmediate()
  const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
  const openPepper = (sealed: string) => secrets.open('address-pepper', sealed, 'address-pepper')
  const store = createBackupStore(storage.engine)
  await createBackup({ store, version: '0', secrets, openPepper })(file)
  gate.open()
  await pendingCharge
  await node.close()
  const target = await freshSettings('postgres', t)
  await outputOf(keyway(target, 'restore', file, '--journal', settings.KEYWAY_JOURNAL_DIR!))
  const restoredNode = await startNode(t, target)
  assert.equal(await restoredNode.services.storage.store.billing.balance(ann.user.id), 1_500_000)
})

test('the journal contains only the last attempt of a retried transaction', {
  skip: postgresMissing(),
}, async t => {
  const settings = await freshSettings('postgres', t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const people = [
    await signIn(node.origin, links, 'ann@example.com'),
    await signIn(node.origin, links, 'bob@example.com'),
  ] as const
  const { storage } = node.services
  const [ann, bob] = [people[0].user.id, people[1].user.id]
  const folder = settings.KEYWAY_JOURNAL_DIR!
  mkdirSync(folder, { recursive: true })

  // The transactions deadlock: PostgreSQL aborts one of them, which is retried. If the retry locks its first row before
  // the other transaction has woken up to lock it, they deadlock again.
  const bothRowsLocked = Promise.withResolvers<void>()
  let lockedCount = 0
  let attempts = 0
  const claim = (name: string, first: string, second: string) =>
    storage.transaction(async tx => {
      const attempt = ++attempts
      await tx.billing.claimTrialCredit(`${name} in attempt ${attempt}`, first, Date.now())
      await tx.users.lock(first)
      if (++lockedCount === 2) bothRowsLocked.resolve()
      await bothRowsLocked.promise
      await tx.users.lock(second)
      return `${name} in attempt ${attempt}`
    })
  const committedNames = await Promise.all([claim('ann', ann, bob), claim('bob', bob, ann)])
  assert.ok(attempts >= 3, `${attempts} attempts`)
  await node.close()
  const journaledNames = namesIn(folder)
    .flatMap(name => linesOf(join(folder, name)))
    .flatMap(line => /"address_hash":"(\w+ in attempt \d)"/.exec(line)?.[1] ?? [])
  assert.deepEqual(journaledNames.sort(), committedNames.sort())
})
