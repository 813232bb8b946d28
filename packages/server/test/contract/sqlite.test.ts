import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { lockDataDir } from '../../src/storage/data-dir-lock.ts'
import type { SqliteEngine } from '../../src/storage/sqlite.ts'
import { openTestStorage } from '../support/engines.ts'

describe('sqlite', () => {
  test('concurrent transactions share commits', async t => {
    const { storage } = await openTestStorage('sqlite', t)
    const engine = storage.engine as SqliteEngine
    const commitsBefore = engine.commitCount
    const names = Array.from({ length: 64 }, (_, number) => `name ${number}`)
    await Promise.all(names.map(name => storage.transaction(tx => tx.instance.replace(name, 'x'))))
    assert.ok(
      engine.commitCount - commitsBefore <= 32,
      `${engine.commitCount - commitsBefore} commits for 64 transactions`,
    )
    for (const name of names) assert.equal(await storage.store.instance.find(name), 'x')
  })

  test('concurrent single writes outside a transaction share commits', async t => {
    const { storage } = await openTestStorage('sqlite', t)
    const engine = storage.engine as SqliteEngine
    const commitsBefore = engine.commitCount
    await Promise.all(
      Array.from({ length: 64 }, (_, number) => storage.store.instance.replace(`${number}`, 'x')),
    )
    assert.ok(engine.commitCount - commitsBefore <= 32)
  })

  test('writes are durable before they are acknowledged: WAL, synchronous=full, foreign keys', async t => {
    const { storage } = await openTestStorage('sqlite', t)
    // The pragmas are read on the writer's connection, since each connection has its own.
    const [journal, synchronous, foreignKeys] = await storage.engine.transaction(async tx => [
      await tx.execute('pragma journal_mode', []),
      await tx.execute('pragma synchronous', []),
      await tx.execute('pragma foreign_keys', []),
    ])
    assert.deepEqual(journal!.rows, [{ journal_mode: 'wal' }])
    assert.deepEqual(synchronous!.rows, [{ synchronous: 2 }])
    assert.deepEqual(foreignKeys!.rows, [{ foreign_keys: 1 }])
  })

  test('a full disk fails writes with unavailable, and writing resumes once there is space', async t => {
    const { storage } = await openTestStorage('sqlite', t)
    const { rows } = await storage.engine.connection.execute('select page_count from pragma_page_count()', [])
    const pages = (rows[0] as { page_count: number }).page_count
    const setMaxPages = (count: number) =>
      storage.engine.transaction(tx => tx.execute(`pragma max_page_count = ${count}`, []))
    await setMaxPages(pages + 20)
    const write = (number: number) =>
      storage.transaction(tx => tx.instance.replace(`name ${number}`, 'x'.repeat(20_000)))
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, number) => write(number)))
    const refusedWrites = outcomes.filter(outcome => outcome.status === 'rejected')
    assert.ok(refusedWrites.length > 0)
    for (const outcome of refusedWrites) assert.equal(outcome.reason.code, 'unavailable')
    for (const [number, outcome] of outcomes.entries()) {
      const storedValue = await storage.store.instance.find(`name ${number}`)
      assert.equal(storedValue !== null, outcome.status === 'fulfilled', `name ${number}`)
    }
    await setMaxPages(1_000_000)
    await write(1)
  })

  test('a failed commit publishes no event of any transaction in its group', async t => {
    const { storage } = await openTestStorage('sqlite', t)
    const receivedUserIds: string[] = []
    storage.events.subscribe(event => event.type === 'user.changed' && receivedUserIds.push(event.userId))
    const write = (name: string, breaks: boolean) =>
      storage.engine.transaction(async tx => {
        await tx.execute(`insert into instance values ('${name}', 'x')`, [])
        if (breaks) {
          // The constraint is checked by COMMIT, which fails.
          await tx.execute('pragma defer_foreign_keys = on', [])
          await tx.execute(`insert into balances (user_id, balance) values ('nobody', 1)`, [])
        }
        tx.publish({ type: 'user.changed', userId: name })
      })
    // The clock stands still, since a batch is committed once it is 20 ms old: on a busy machine the two transactions
    // might otherwise not share a commit.
    const now = performance.now()
    const stoppedClock = t.mock.method(performance, 'now', () => now)
    const outcomes = await Promise.allSettled([write('neighbour', false), write('breaking', true)])
    stoppedClock.mock.restore()
    assert.deepEqual(
      outcomes.map(outcome => outcome.status === 'rejected' && outcome.reason.code),
      ['unavailable', 'unavailable'],
    )
    assert.equal(await storage.store.instance.find('neighbour'), null)
    await write('next', false)
    assert.deepEqual(receivedUserIds, ['next'])
  })

  test('a second process can write while the first one runs', async t => {
    const { storage, config } = await openTestStorage('sqlite', t)
    const { file } = config.database as { file: string }
    const writeScript = `
      const { DatabaseSync } = require('node:sqlite')
      const database = new DatabaseSync(process.argv[1], { timeout: 2000 })
      database.exec("begin immediate; insert into instance values ('from', 'outside'); commit")`
    assert.equal(spawnSync(process.execPath, ['-e', writeScript, file]).status, 0)
    assert.equal(await storage.store.instance.find('from'), 'outside')
    await storage.store.instance.replace('from', 'inside')
  })

  test('after a clean close all data is in the database file', async t => {
    const { storage, config } = await openTestStorage('sqlite', t)
    await storage.store.instance.replace('name', 'value')
    await storage.store.instance.find('name')
    await storage.close()
    const { file } = config.database as { file: string }
    assert.ok(existsSync(file))
    assert.deepEqual([existsSync(`${file}-wal`), existsSync(`${file}-shm`)], [false, false])
  })

  test('only one process may serve a data folder', async t => {
    const { config } = await openTestStorage('sqlite', t)
    const dataDir = join(config.dataDir, 'served')
    const unlock = lockDataDir(dataDir)
    assert.ok(unlock)
    assert.equal(lockDataDir(dataDir), null)
    unlock()
    lockDataDir(dataDir)!()
    assert.equal(statSync(dataDir).mode & 0o777, 0o700)
    assert.equal(dirname((config.database as { file: string }).file), config.dataDir)
  })
})
