import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { HOUR } from '../../src/clock.ts'
import { holdDataDir, isDataDirHeld } from '../../src/storage/data-dir-lock.ts'
import { connect, makeKey, openHub } from '../hub/fixture.ts'
import { keyway, outputOf } from '../support/command-line.ts'
import { openServices } from '../support/services.ts'

test('a command closes agents of a server whose system clock was stepped back by an hour', async t => {
  const { services, settings, hub, ada, bob } = await serveAheadOfSystem(t)
  using _held = holdDataDir(settings.KEYWAY_DATA_DIR)
  await outputOf(keyway(settings, 'keys', 'revoke', ada.key.id))
  await outputOf(keyway(settings, 'users', 'suspend', 'bob@example.com'))
  await hub.sweep()
  assert.equal(await ada.agent.end(), '4410 revoked')
  assert.equal(await bob.agent.end(), '4403 account_suspended')
  const { revokedAt } = (await services.store.apiKeys.findOwned(ada.key.userId, ada.key.id))!
  assert.ok(Math.abs(revokedAt! - services.clock.now()) < 60_000)
})

test('a heartbeat in the future does not change the time of a command without a running server', async t => {
  const { services, settings, ada } = await serveAheadOfSystem(t)
  const systemTime = await services.storage.readClock()
  await outputOf(keyway(settings, 'keys', 'revoke', ada.key.id))
  const { revokedAt } = (await services.store.apiKeys.findOwned(ada.key.userId, ada.key.id))!
  assert.ok(Math.abs(revokedAt! - systemTime) < 60_000)
})

test('checking whether the data directory is held neither locks it nor creates files', async t => {
  const { settings } = await serveAheadOfSystem(t)
  const folder = settings.KEYWAY_DATA_DIR
  assert.equal(isDataDirHeld(folder), false)
  {
    using _held = holdDataDir(folder)
    assert.equal(isDataDirHeld(folder), true)
  }
  assert.equal(isDataDirHeld(folder), false)
})

/** Starts a hub with two agents. Its clock is an hour ahead of the system's, as after the system clock stepped back. */
async function serveAheadOfSystem(t: TestContext) {
  const services = await openServices('sqlite', t)
  services.clock.set((await services.storage.readClock()) + HOUR)
  const { hub, url } = await openHub(services, t)
  const agentOf = async (email: string) => {
    const { user } = await services.signIn(email)
    const key = await makeKey(services, user.id)
    return { key, agent: await connect(services, url, key) }
  }
  const settings = {
    KEYWAY_DATA_DIR: services.opened.config.dataDir,
    KEYWAY_SECRET: Buffer.alloc(32, 7).toString('base64'),
  }
  return {
    services,
    settings,
    hub,
    ada: await agentOf('ada@example.com'),
    bob: await agentOf('bob@example.com'),
  }
}
