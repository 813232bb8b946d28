import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { KeyStatus } from '../../src/hub/hub-ports.ts'
import { createKeyStatusLoader } from '../../src/hub/key-status-loader.ts'
import { until } from '../support/patience.ts'

/** A loader over a database that has every key whose id begins with `k`, and fails while `isDown` is set. */
function open() {
  const queries: (readonly string[])[] = []
  const database = { isDown: false }
  const loader = createKeyStatusLoader({
    async keyStatus(ids) {
      queries.push(ids)
      if (database.isDown) throw new Error('the database is down')
      return new Map(ids.filter(id => id[0] === 'k').map(id => [id, { id } as KeyStatus]))
    },
  })
  return { loader, queries, database }
}

test('the keys that are asked for in one turn are read together, 500 at a time, and each once', async () => {
  const { loader, queries } = open()
  const ids = Array.from({ length: 501 }, (_, n) => `k${n}`)
  const statuses = await Promise.all([...ids, 'k0', 'unknown'].map(loader.load))
  assert.deepEqual(
    statuses.map(status => status?.id),
    [...ids, 'k0', undefined],
  )
  assert.deepEqual(queries, [ids.slice(0, 500), ['k500', 'unknown']])
  await loader.load('k0')
  assert.deepEqual(queries.at(-1), ['k0'], 'a later call reads again')
})

test('a status waits for what else the caller awaits, and is loaded again if it changed in that time', async () => {
  const { loader, queries } = open()
  const connection = { statusIsStale: false }
  const otherWork = Promise.withResolvers<void>()
  const pendingStatus = loader.loadFor(connection, 'k', otherWork.promise)
  await until('a query', () => queries.length === 1)
  connection.statusIsStale = true
  otherWork.resolve()
  assert.equal((await pendingStatus)?.id, 'k')
  assert.equal(queries.length, 2)
})

test('a query is repeated until the database answers or the loader is stopped', async () => {
  const { loader, queries, database } = open()
  database.isDown = true
  const status = loader.load('k')
  await until('a query', () => queries.length === 1)
  database.isDown = false
  assert.equal((await status)?.id, 'k')
  assert.equal(queries.length, 2)
  database.isDown = true
  void loader.load('k')
  await until('a query', () => queries.length === 3)
  loader.stop()
  await wait(600)
  assert.equal(queries.length, 3)
})

test('a loader that waits for its database does not keep its process alive', async () => {
  const { loader, queries, database } = open()
  database.isDown = true
  const countTimers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = countTimers()
  void loader.load('k')
  while (queries.length === 0) await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.equal(countTimers(), before)
  loader.stop()
})
