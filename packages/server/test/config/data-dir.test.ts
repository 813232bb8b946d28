import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { EXIT_CONFIGURATION } from '../../src/operator-error.ts'
import { createJourney } from '../support/journey.ts'
import { environment, launcher, serve } from '../support/serve.ts'

const EXAMPLE_SECRET = Buffer.alloc(32, 1).toString('base64')

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-data-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Mounts a disk with these options, and returns its folder. If that is not possible, skips the test; returns null. */
function mountDisk(t: TestContext, options: string): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder])
  t.after(() => {
    if (status === 0) spawnSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true, force: true })
  })
  if (status === 0) return folder
  t.skip('no disk can be mounted here')
  return null
}

/** Starts the service and waits for its exit; the status is null if it hangs. */
function startAndWait(settings: Record<string, string>) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, 'serve'], {
    env: environment({ KEYWAY_PORT: '0', KEYWAY_LOG_LEVEL: 'silent', ...settings }),
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  return { status, output: stdout + stderr }
}

function assertRefused(settings: Record<string, string>, expected: RegExp): void {
  const { status, output } = startAndWait(settings)
  assert.deepEqual([status, output.trim().split('\n').length], [EXIT_CONFIGURATION, 1], output)
  assert.match(output, expected)
}

test('folders are created with mode 0700 whatever the umask', t => {
  const dataDir = join(temporaryFolder(t), 'one', 'two')
  const umaskBefore = process.umask(0o277)
  try {
    assert.throws(() => statSync(dataDir))
    const { status } = startAndWait({ KEYWAY_DATA_DIR: dataDir, KEYWAY_METRICS_PORT: 'none' })
    assert.equal(status, EXIT_CONFIGURATION)
    assert.equal(existsSync(dataDir), false, 'a mistake in another setting creates nothing')
    assertRefused({ KEYWAY_DATA_DIR: dataDir, KEYWAY_JOURNAL_DIR: `${launcher}/x` }, /KEYWAY_JOURNAL_DIR/)
  } finally {
    process.umask(umaskBefore)
  }
  for (const folder of [dataDir, join(dataDir, '..')]) assert.equal(statSync(folder).mode & 0o777, 0o700)
})

test('files in an existing data directory are made unreadable for others', async t => {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const umaskBefore = process.umask(0o022)
  t.after(() => process.umask(umaskBefore))
  const settings = { KEYWAY_DATA_DIR: folder, KEYWAY_PORT: '0' }
  const firstServer = await serve(settings)
  t.after(() => firstServer.end('SIGKILL'))
  await createJourney(firstServer.url).sendLink('ada@example.com')
  assert.deepEqual(filesOpenToOthers(folder), [])
  await firstServer.end('SIGKILL')
  const files = readdirSync(folder).filter(name => statSync(join(folder, name)).isFile())
  assert.ok(files.includes('keyway.db-wal') && files.includes('secret') && files.includes('serve.lock'))
  for (const name of files) chmodSync(join(folder, name), 0o644)
  const secondServer = await serve(settings)
  t.after(() => secondServer.end('SIGKILL'))
  assert.deepEqual(filesOpenToOthers(folder), [])
  assert.match(secondServer.output(), /Warning: other users .*chmod 700/)
})

/** The files on which other users have any permission. */
function filesOpenToOthers(folder: string): string[] {
  return readdirSync(folder).filter(name => (statSync(join(folder, name)).mode & 0o077) !== 0)
}

test('a data directory that cannot be created is reported in one sentence with the reason', t => {
  const file = join(temporaryFolder(t), 'file')
  writeFileSync(file, '')
  assertRefused({ KEYWAY_DATA_DIR: file }, /^KEYWAY_DATA_DIR ".*" cannot be created: a file is in the place/)
  assertRefused(
    { KEYWAY_DATA_DIR: join(file, 'below') },
    /^KEYWAY_DATA_DIR ".*" cannot be created: a file is in the place/,
  )
  if (process.platform !== 'linux') return
  assertRefused({ KEYWAY_DATA_DIR: '/proc/x' }, /^KEYWAY_DATA_DIR "\/proc\/x" cannot be created: .*ENOENT/)
})

test('a database file or journal that cannot be created is reported in one sentence with the reason', {
  skip: process.platform !== 'linux',
}, t => {
  const folder = temporaryFolder(t)
  const databaseSettings = { KEYWAY_DATA_DIR: folder, KEYWAY_DATABASE_URL: 'sqlite:/proc/x/k.db' }
  assertRefused(databaseSettings, /^\/proc\/x\/k\.db cannot be used: .*ENOENT/)
  assertRefused({ KEYWAY_DATA_DIR: folder, KEYWAY_JOURNAL_DIR: '/proc/x' }, /^KEYWAY_JOURNAL_DIR .*ENOENT/)
})

test('a read-only data directory is reported in one sentence, with a generated and with a configured secret', t => {
  const folder = mountDisk(t, 'ro,size=1m')
  if (!folder) return
  assertRefused({ KEYWAY_DATA_DIR: folder }, /^The secret cannot be written .*: the file system is read-only/)
  assertRefused({ KEYWAY_DATA_DIR: folder, KEYWAY_SECRET: EXAMPLE_SECRET }, /serve\.lock cannot be used/)
  assertRefused({ KEYWAY_DATA_DIR: join(folder, 'x') }, /cannot be created: the file system is read-only/)
})

test('a full disk is reported, and no partial secret file is left', t => {
  const folder = mountDisk(t, 'size=64k')
  if (!folder) return
  const outcome = startAndWait({ KEYWAY_DATA_DIR: folder })
  assert.equal(outcome.status, 1)
  assert.match(outcome.output, /cannot reach its database .*disk is full/)
  const filler = join(folder, 'filler')
  assert.throws(() => writeFileSync(filler, Buffer.alloc(64 * 1024)), { code: 'ENOSPC' })
  const subfolder = join(folder, 'below')
  assertRefused({ KEYWAY_DATA_DIR: subfolder }, /^The secret cannot be written .*: the disk is full/)
  assert.deepEqual(readdirSync(subfolder), [])
})
