import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigError, loadConfig, loadOrCreateSecret } from '../../src/config.ts'

function freshDataDir(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-secret-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'data')
}

const modeOf = (path: string) => statSync(path).mode & 0o777

test('the first start creates a data directory for its owner only, with a secret', t => {
  const dataDir = freshDataDir(t)
  const { secrets } = loadOrCreateSecret(loadConfig({ KEYWAY_DATA_DIR: dataDir }))
  assert.equal(secrets[0]?.length, 32)
  assert.equal(modeOf(dataDir), 0o700)
  assert.equal(modeOf(join(dataDir, 'secret')), 0o600)
})

test('later starts read the same secret', t => {
  const config = loadConfig({ KEYWAY_DATA_DIR: freshDataDir(t) })
  assert.deepEqual(loadOrCreateSecret(config).secrets, loadOrCreateSecret(config).secrets)
})

test('a missing secret of an existing database is reported in one sentence, and not generated again', t => {
  const config = loadConfig({ KEYWAY_DATA_DIR: freshDataDir(t) })
  mkdirSync(config.dataDir)
  writeFileSync(join(config.dataDir, 'keyway.db'), '')
  assert.throws(
    () => loadOrCreateSecret(config),
    (error: unknown) => error instanceof ConfigError && /secret .* is missing/.test(error.message),
  )
  assert.throws(() => readFileSync(join(config.dataDir, 'secret')))
})

test('a truncated secret file is reported and not replaced', t => {
  const config = loadConfig({ KEYWAY_DATA_DIR: freshDataDir(t) })
  mkdirSync(config.dataDir)
  writeFileSync(join(config.dataDir, 'secret'), 'short')
  assert.throws(() => loadOrCreateSecret(config), ConfigError)
  assert.equal(readFileSync(join(config.dataDir, 'secret'), 'utf8'), 'short')
})

test('a configured secret is used, and no secret file is written', t => {
  const configuredSecret = Buffer.alloc(32, 9)
  const config = loadConfig({
    KEYWAY_DATA_DIR: freshDataDir(t),
    KEYWAY_SECRET: configuredSecret.toString('base64'),
  })
  assert.deepEqual(loadOrCreateSecret(config).secrets, [configuredSecret])
  assert.throws(() => statSync(join(config.dataDir, 'secret')))
})
