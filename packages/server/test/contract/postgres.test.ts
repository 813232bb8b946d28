import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import type { Event } from '../../src/events.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { CannotStart } from '../../src/operator-error.ts'
import { createStorage, type DatabaseStorage } from '../../src/storage/database.ts'
import type { EngineTransaction } from '../../src/storage/engine.ts'
import { openPostgres, withRetries } from '../../src/storage/postgres.ts'
import { openTestStorage, postgresConfig, postgresMissing, type TestStorage } from '../support/engines.ts'
import { patienceMs, until } from '../support/patience.ts'
import { withClient, withOwnTimeouts } from '../support/postgres.ts'
import { startProxy } from '../support/proxy.ts'
import { aUser } from './fixtures.ts'

describe('postgres', { skip: postgresMissing() }, () => {
  test('an event of any length reaches another node once', async t => {
    const testStorage = await openTestStorage('postgres', t)
    const otherNode = await testStorage.reopen()
    const payload = 'ü€😀'.repeat(5000)
    const relay = {
      type: 'hub.relay',
      to: ['node'],
      message: {
        kind: 'order',
        from: newId(1),
        question: 1,
        order: { op: 'deliver', userId: newId(2), to: 'all', frame: payload },
      },
    } as const
    const receivedEvents = nextEvents(otherNode, 4)
    await testStorage.storage.transaction(async tx => {
      tx.publish(relay)
      tx.publish({ type: 'mail.queued' })
      tx.publish({ type: 'mail.queued' })
    })
    await testStorage.storage.events.publish(relay)
    assert.deepEqual(await receivedEvents, [relay, { type: 'mail.queued' }, { type: 'mail.queued' }, relay])
  })

  test('a read is repeated if the database refused the connection, but not after a timeout', async () => {
    const attemptsAfter = async (code: string) => {
      let attempts = 0
      const read = withRetries(true, async () => {
        attempts++
        throw Object.assign(new Error(`connect ${code} 192.0.2.1:5432`), { code })
      })
      await assert.rejects(read, { code: 'unavailable' })
      return attempts
    }
    assert.equal(await attemptsAfter('ECONNREFUSED'), 4)
    assert.equal(await attemptsAfter('ETIMEDOUT'), 1)
  })

  test('a listener that lost its connection reconnects and emits events.gap', async t => {
    const { storage, config } = await openTestStorage('postgres', t)
    const receivedEvents = nextEvents(storage, 1)
    await cutListeners(urlOf(config))
    assert.deepEqual(await receivedEvents, [{ type: 'events.gap' }])
    assert.equal(storage.eventsHealth().listening, true)
    const pendingEvents = nextEvents(storage, 1)
    await storage.events.publish({ type: 'mail.queued' })
    assert.deepEqual(await pendingEvents, [{ type: 'mail.queued' }])
  })

  test('a database that refuses connections stops the start with one sentence', async t => {
    const { config, log } = await openTestStorage('postgres', t)
    const openWith = (change: (url: URL) => void) => {
      const url = new URL(urlOf(config))
      change(url)
      return createStorage(postgresConfig(url.href), log)
    }
    for (const change of [
      (url: URL) => Object.assign(url, { pathname: '/no_such_database' }),
      (url: URL) => Object.assign(url, { username: 'nobody', password: 'not-to-be-shown' }),
    ]) {
      await assert.rejects(openWith(change), (error: Error) => {
        assert.ok(error instanceof CannotStart)
        assert.match(error.message, /^PostgreSQL refuses: .* does not exist\. Check KEYWAY_DATABASE_URL\.$/)
        return true
      })
    }
  })

  test('a deadlocked transaction is retried, and both commit', async t => {
    const { storage } = await openTestStorage('postgres', t)
    await storage.store.instance.replace('a', '')
    await storage.store.instance.replace('b', '')
    let runCount = 0
    const bothLocked = barrier(2)
    const firstCommit = Promise.withResolvers<void>()
    const update = async (one: string, two: string) => {
      await storage.transaction(async tx => {
        const attempt = ++runCount
        // The aborted transaction is retried only after the other has committed, so they deadlock exactly once.
        if (attempt === 3) await firstCommit.promise
        await tx.instance.replace(one, `by ${one}`)
        if (attempt <= 2) await bothLocked()
        await tx.instance.replace(two, `by ${one}`)
      })
      firstCommit.resolve()
    }
    await Promise.all([update('a', 'b'), update('b', 'a')])
    assert.equal(runCount, 3)
    assert.equal(await storage.store.instance.find('a'), await storage.store.instance.find('b'))
  })

  test('a transaction fails with the error of its first failed statement, also if a later one is noticed earlier', async t => {
    const { engine } = (await openTestStorage('postgres', t)).storage
    /** Sends two statements and awaits only the second, which fails because the first did. */
    const failThenSelect = async (tx: EngineTransaction, failing: string) => {
      tx.execute(failing, []).catch(() => {})
      await tx.execute('select 1', [])
    }
    await assert.rejects(
      engine.transaction(tx => failThenSelect(tx, 'select 1 / 0')),
      { code: '22012' },
    )
    let runCount = 0
    await engine.transaction(async tx => {
      runCount++
      if (runCount < 3)
        await failThenSelect(tx, `do $$ begin raise exception using errcode = '40P01'; end $$`)
    })
    assert.equal(runCount, 3, 'the transaction is retried as after any deadlock')
  })

  test('a transaction that keeps failing to serialize is tried four times, then unavailable', async t => {
    const { storage } = await openTestStorage('postgres', t)
    let runCount = 0
    const failingTransaction = storage.engine.transaction(async tx => {
      runCount++
      await tx.execute(`do $$ begin raise exception 'again' using errcode = '40001'; end $$`, [])
    })
    await assert.rejects(failingTransaction, { code: 'unavailable' })
    assert.equal(runCount, 4)
  })

  test('the outcome of a COMMIT without an answer is read back, and the transaction not repeated', async t => {
    const { storage, proxy } = await openThroughProxy(t)
    const user = aUser()
    let runCount = 0
    proxy.cutCommits(1, 'unanswered')
    const outcome = await storage.transaction(
      async tx => {
        runCount++
        await tx.users.insert(user)
        return 'made'
      },
      async store => ((await store.users.find(user.id)) ? 'made' : undefined),
    )
    assert.equal(outcome, 'made')
    assert.equal(runCount, 1)
    assert.equal(proxy.commitsCut, 1)
  })

  test('a COMMIT without an answer and without a way to read back its outcome is unavailable', async t => {
    const { storage, proxy } = await openThroughProxy(t)
    const user = aUser()
    proxy.cutCommits(1, 'unanswered')
    const pendingTransaction = storage.transaction(async tx => {
      await tx.users.insert(user)
    })
    await assert.rejects(pendingTransaction, { code: 'unavailable' })
  })

  test('cutting all connections fails only calls in progress; the next call succeeds', async t => {
    const { storage, config } = await openTestStorage('postgres', t)
    await Promise.all(Array.from({ length: 10 }, () => storage.store.apps.list()))
    const gapEventArrival = nextEvents(storage, 1)
    await withClient(urlOf(config), client =>
      client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      ),
    )
    await gapEventArrival
    assert.equal((await storage.store.apps.list()).length, 4)
  })

  test('a server that shuts down while it accepts a connection fails only that call', async t => {
    const url = await startStoppingServer(t)
    const engine = await openPostgres(
      { url, events: { kind: 'in-process' }, secrets: [Buffer.alloc(32)] },
      createLog('silent'),
    )
    t.after(() => engine.close())
    await assert.rejects(engine.readClock(), { code: 'unavailable' })
  })

  test('writers that use up their connections leave those of reads free, and are refused in time', async t => {
    const { config } = await openTestStorage('postgres', t)
    const database = { engine: 'postgres' as const, url: withOwnTimeouts(urlOf(config)) }
    const storage = await createStorage({ ...config, database }, createLog('silent'))
    t.after(() => storage.close())
    const startWrites = (work = async () => {}) =>
      Array.from({ length: 14 }, () => storage.transaction<void>(() => work()))
    await until('all connections are open', () =>
      Promise.all(startWrites()).then(
        () => true,
        () => false,
      ),
    )
    const release = Promise.withResolvers<void>()
    const blockedWrites = startWrites(() => release.promise)
    const startedAt = performance.now()
    assert.equal((await storage.store.apps.list()).length, 4)
    await assert.rejects(
      storage.transaction(async () => {}),
      { code: 'unavailable' },
    )
    assert.ok(performance.now() - startedAt < patienceMs(3000))
    release.resolve()
    await Promise.all(blockedWrites)
    await storage.transaction(async tx => assert.equal((await tx.apps.list()).length, 4))
  })
})

function urlOf(config: TestStorage['config']): string {
  return (config.database as { url: string }).url
}

function nextEvents(storage: DatabaseStorage, count: number): Promise<Event[]> {
  const { promise, resolve } = Promise.withResolvers<Event[]>()
  const events: Event[] = []
  const stop = storage.events.subscribe(event => {
    events.push(event)
    if (events.length < count) return
    stop()
    resolve(events)
  })
  return promise
}

async function cutListeners(url: string): Promise<void> {
  await withClient(url, client =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen%'`,
    ),
  )
}

function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let arrivedCount = 0
  return () => {
    if (++arrivedCount === count) resolve()
    return promise
  }
}

/** Opens a storage through a proxy that injects faults. */
async function openThroughProxy(t: TestContext) {
  const { config, log } = await openTestStorage('postgres', t)
  const proxy = await startProxy(urlOf(config), t)
  const storage = await createStorage(
    {
      ...postgresConfig(proxy.through(withOwnTimeouts(urlOf(config)))),
      events: { kind: 'postgres', url: urlOf(config) },
    },
    log,
  )
  t.after(() => storage.close())
  return { storage, proxy }
}

/** A server that accepts a connection and shuts down in one packet: AuthenticationOk, ReadyForQuery, ErrorResponse. */
async function startStoppingServer(t: TestContext): Promise<string> {
  const fields = ['SFATAL', 'C57P01', 'Mterminating connection due to administrator command', '']
  const packet = Buffer.concat([
    message('R', Buffer.alloc(4)),
    message('Z', Buffer.from('I')),
    message('E', Buffer.from(`${fields.join('\0')}\0`)),
  ])
  const server = createServer(socket => {
    socket.on('error', () => socket.destroy())
    socket.once('data', () => socket.end(packet))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return `postgres://keyway@127.0.0.1:${(server.address() as AddressInfo).port}/keyway`
}

/** One message of PostgreSQL's protocol: its type, its length without the type, its body. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
