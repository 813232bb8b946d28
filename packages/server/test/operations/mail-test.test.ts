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
    const commandServices = await openServices(server.services.config, createLog('silent'))
    t.after(() => commandServices.close())
    const settleReached = Promise.withResolvers<void>()
    const rowsWereRead = Promise.withResolvers<void>()
    const { settle } = server.services.storage.store.outbox
    server.services.storage.store.outbox.settle = async (...args) => {
      settleReached.resolve()
      await rowsWereRead.promise
      return settle(...args)
    }
    const { lease, recentFor } = commandServices.storage.store.outbox
    commandServices.storage.store.outbox.lease = async (...args) => {
      await settleReached.promise
      return lease(...args)
    }
    commandServices.storage.store.outbox.recentFor = async (...args) => {
      const rows = await recentFor(...args)
      rowsWereRead.resolve()
      return rows
    }
    const { data } = await runCommand(commandServices, 'mail test', 'ada@example.com')
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
