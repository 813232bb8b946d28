import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { openServices } from '../../src/services.ts'
import { runCommand } from '../ops/command.ts'
import { startKeyway } from '../ops/running.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'

forEachEngine(engine => {
  test('"mail test" waits for the attempt of a running server that leased the mail first', async t => {
    const server = await startKeyway(t, await settingsFor(engine, t))
    const beside = await openServices(server.services.config, createLog('silent'))
    t.after(() => beside.close())
    const leased = Promise.withResolvers<void>()
    const looked = Promise.withResolvers<void>()
    const { settle } = server.services.storage.store.outbox
    server.services.storage.store.outbox.settle = async (...order) => {
      leased.resolve()
      await looked.promise
      return settle(...order)
    }
    const { lease, recentFor } = beside.storage.store.outbox
    beside.storage.store.outbox.lease = async (...order) => {
      await leased.promise
      return lease(...order)
    }
    beside.storage.store.outbox.recentFor = async (...order) => {
      const rows = await recentFor(...order)
      looked.resolve()
      return rows
    }
    const { data } = await runCommand(beside, 'mail test', 'ada@example.com')
    assert.equal(data.state, 'sent')
  })
})

async function settingsFor(engine: EngineName, t: TestContext): Promise<Record<string, string>> {
  if (engine === 'sqlite') return {}
  const { config } = await openTestStorage(engine, t)
  assert.ok(config.database.engine === 'postgres')
  return {
    KEYWAY_DATABASE_URL: config.database.url,
    KEYWAY_SECRET: Buffer.alloc(32, 7).toString('base64'),
    KEYWAY_MAIL_URL: 'inbox:',
  }
}
