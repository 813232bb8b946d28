import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { KeyStatus } from '../../src/hub/hub-ports.ts'
import { createKeyStatusLoader } from '../../src/hub/key-status-loader.ts'
import { until } from '../support/patience.ts'

/** A loader whose database answers with the keys whose id begins with `k`, unless it fails. */
function open() {
  const asked: (readonly string[])[] = []
  const database = { isDown: false }
  const loader = createKeyStatusLoader({
    async keyStatus(ids) {
      asked.push(ids)
      if (database.isDown) throw new Error('the database is down')
      return new Map(ids.filter(id => id[0] === 'k').map(id => [id, { id } as KeyStatus]))
    },
  })
  return { loader, asked, database }
}

test('the keys that are asked for in one turn are read together, 500 at a time, and each once', async () => {
  const { loader, asked } = open()
  const ids = Array.from({ length: 501 }, (_, n) => `k${n}`)
  const found = await Promise.all([...ids, 'k0', 'unknown'].map(loader.load))
  assert.deepEqual(
    found.map(status => status?.id),
    [...ids, 'k0', undefined],
  )
  assert.deepEqual(asked, [ids.slice(0, 500), ['k500', 'unknown']])
  await loader.load('k0')
  assert.deepEqual(asked.at(-1), ['k0'], 'a later call reads again')
})

test('a status waits for what else the caller awaits, and is loaded again if it changed in that time', async () => {
  const { loader, asked } = open()
  const connection = { statusIsStale: false }
  const also = Promise.withResolvers<void>()
  const loading = loader.loadFor(connection, 'k', also.promise)
  await until('a query', () => asked.length === 1)
  connection.statusIsStale = true
  also.resolve()
  assert.equal((await loading)?.id, 'k')
  assert.equal(asked.length, 2)
})

test('a query is repeated until the database answers or the loader is stopped', async () => {
  const { loader, asked, database } = open()
  database.isDown = true
  const status = loader.load('k')
  await until('a query', () => asked.length === 1)
  database.isDown = false
  assert.equal((await status)?.id, 'k')
  assert.equal(asked.length, 2)
  database.isDown = true
  void loader.load('k')
  await until('a query', () => asked.length === 3)
  loader.stop()
  await wait(600)
  assert.equal(asked.length, 3)
})
