import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { root } from '../structure/source.ts'
import { freePort } from '../support/free-port.ts'
import { patienceMs } from '../support/patience.ts'
import { environment, launcher, type ServedProcess, serve, temporaryFolder } from '../support/serve.ts'

const OLD_NODE_PROGRAMS = ['/usr/bin/node', '/usr/local/bin/node']

interface ExitResult {
  code: number
  stdout: string
  stderr: string
}

function keyway(
  args: string[],
  settings: Record<string, string> = {},
  node = process.execPath,
  file = launcher,
) {
  return new Promise<ExitResult>(resolve =>
    execFile(node, [file, ...args], { env: environment(settings) }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    ),
  )
}

function isOld(node: string): boolean {
  return existsSync(node) && Number(/^v(\d+)/.exec(execFileSync(node, ['--version']).toString())?.[1]) < 24
}

async function untilPrinted(stream: Readable, pattern: RegExp): Promise<string> {
  let text = ''
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    text += chunk
    if (pattern.test(text)) return text
  }
  throw new Error(`the process ended without printing ${pattern}: ${text}`)
}

async function freshSettings(t: TestContext): Promise<Record<string, string>> {
  const folder = temporaryFolder()
  t.after(folder.remove)
  return { KEYWAY_DATA_DIR: join(folder.path, 'data'), KEYWAY_PORT: String(await freePort()) }
}

async function startServer(t: TestContext, settings: Record<string, string>): Promise<ServedProcess> {
  const server = await serve(settings)
  t.after(() => server.end('SIGKILL'))
  return server
}

/**
 * Runs `keyway serve` on a terminal, which `script` emulates, until it has printed a match of `last`. Returns its whole
 * output.
 */
async function printedOnTerminal(
  t: TestContext,
  settings: Record<string, string>,
  last: RegExp,
): Promise<string> {
  const command = `exec ${process.execPath} ${launcher} serve`
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    env: environment(settings),
  })
  t.after(() => child.kill())
  return untilPrinted(child.stdout, last)
}

describe('starting and stopping', () => {
  test('a start on a terminal prints its URLs', async t => {
    const settings = await freshSettings(t)
    const printedText = await printedOnTerminal(
      t,
      settings,
      /nobody yet: .*keyway users set-role YOUR_ADDRESS admin/,
    )
    for (const path of ['/sign-in', '/docs', '/hub', '/inbox'])
      assert.match(printedText, new RegExp(`${settings.KEYWAY_PORT}${path}\\b`))
  })

  test('a start without a terminal writes one log line with the URL, whatever the log level', async t => {
    const server = await startServer(t, { ...(await freshSettings(t)), KEYWAY_LOG_LEVEL: 'silent' })
    const { level, url, msg } = JSON.parse(server.output())
    assert.deepEqual({ level, url, msg }, { level: 'info', url: server.url, msg: 'Keyway is ready' })
  })

  test('only its owner can read the data directory', async t => {
    const settings = await freshSettings(t)
    const server = await startServer(t, settings)
    assert.equal(statSync(settings.KEYWAY_DATA_DIR!).mode & 0o777, 0o700)
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  })

  test('a start on a public address prints the inbox command instead of its page', async t => {
    const settings: Record<string, string> = { ...(await freshSettings(t)), KEYWAY_HOST: '0.0.0.0' }
    const printedText = await printedOnTerminal(t, settings, /Inbox [^\n]*\n/)
    assert.match(printedText, /Inbox +npx keyway inbox/)
    assert.doesNotMatch(printedText, /\/inbox\b/)
    assert.equal((await fetch(`http://localhost:${settings.KEYWAY_PORT}/inbox`)).status, 404)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    test(`${signal} ends the server with status 0 within ten seconds`, async t => {
      const server = await startServer(t, await freshSettings(t))
      const signalledAt = performance.now()
      assert.equal(await server.end(signal), 0, server.output())
      assert.ok(performance.now() - signalledAt < patienceMs(10_000))
    })

  test('SIGTERM to npm stops the service, and npm ends with its status', async t => {
    const settings = await freshSettings(t)
    const npm = spawn('npm', ['start'], { cwd: root, env: environment(settings) })
    t.after(() => npm.kill('SIGKILL'))
    await untilPrinted(npm.stdout, /is ready/)
    npm.kill('SIGTERM')
    assert.deepEqual(await once(npm, 'exit'), [0, null])
    await assert.rejects(fetch(`http://localhost:${settings.KEYWAY_PORT}/livez`))
  })

  test('a port in use ends the start with one sentence and status 78', async t => {
    const settings = await freshSettings(t)
    const portHolder = createServer().listen(Number(settings.KEYWAY_PORT), '127.0.0.1')
    t.after(() => portHolder.close())
    const { code, stderr } = await keyway(['serve'], settings)
    assert.equal(code, 78)
    assert.match(stderr, /^Port \d+ .*is in use.*\n$/)
  })

  test('a second server on one data directory ends with one sentence and status 78', async t => {
    const settings = await freshSettings(t)
    await startServer(t, settings)
    const { code, stderr } = await keyway(['serve'], { ...settings, KEYWAY_PORT: '0' })
    assert.equal(code, 78)
    assert.equal(stderr.trim().split('\n').length, 1, stderr)
  })

  test('an unusable path ends the start with one sentence and status 78', async t => {
    const settings = await freshSettings(t)
    const folder = settings.KEYWAY_DATA_DIR!
    mkdirSync(join(folder, 'locked/serve.lock'), { recursive: true })
    mkdirSync(join(folder, 'other'))
    writeFileSync(join(folder, 'other/keyway.db'), 'this is no database '.repeat(500))
    writeFileSync(join(folder, 'other/secret'), randomBytes(32).toString('base64'))
    for (const [named, given] of [
      ['other/keyway.db', { KEYWAY_DATA_DIR: join(folder, 'other') }],
      ['other/secret/x.db', { KEYWAY_DATABASE_URL: `sqlite:${join(folder, 'other/secret/x.db')}` }],
      ['other/secret/journal', { KEYWAY_JOURNAL_DIR: join(folder, 'other/secret/journal') }],
      ['serve.lock', { KEYWAY_DATA_DIR: join(folder, 'locked') }],
    ] as const) {
      const { code, stderr } = await keyway(['serve'], { ...settings, ...given })
      assert.equal(code, 78, stderr)
      assert.equal(stderr.trim().split('\n').length, 1, stderr)
      assert.ok(stderr.includes(named), stderr)
    }
  })

  test('invalid settings are listed with status 78 before anything is created', async t => {
    const settings = await freshSettings(t)
    const { code, stderr } = await keyway(['serve'], { ...settings, KEYWAY_PORT: 'x', KEYWAY_LOG_LEVEL: 'y' })
    assert.equal(code, 78)
    assert.match(stderr, /KEYWAY_PORT .*\n.*KEYWAY_LOG_LEVEL /)
    assert.equal(existsSync(settings.KEYWAY_DATA_DIR!), false)
  })
})

describe('the launcher', () => {
  const oldNode = OLD_NODE_PROGRAMS.find(isOld)

  test('starts the required Node from an older one, and returns its exit status', {
    skip: !oldNode && 'no older Node is installed here',
  }, async () => {
    const configCheck = await keyway(['check-config', '--json'], {}, oldNode)
    assert.equal(JSON.parse(configCheck.stdout).ok, true)
    assert.equal((await keyway(['no-such-command'], {}, oldNode)).code, 64)
  })

  test('says what to do if the required Node is not installed', {
    skip: !oldNode && 'no older Node is installed here',
  }, async t => {
    const folder = temporaryFolder()
    t.after(folder.remove)
    mkdirSync(join(folder.path, 'bin'))
    cpSync(launcher, join(folder.path, 'bin/keyway.mjs'))
    const { code, stderr } = await keyway([], {}, oldNode, join(folder.path, 'bin/keyway.mjs'))
    assert.equal(code, 1)
    assert.match(stderr, /npm ci/)
  })

  test('npm test prints the same with an older Node only', {
    skip: !oldNode && 'no older Node is installed here',
  }, async () => {
    const { pretest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts
    const [program, file] = pretest.split(' ')
    assert.equal(program, 'node')
    const { code, stderr } = await keyway([], {}, oldNode, join(root, file))
    assert.equal(code, 1)
    assert.match(stderr, /npm ci/)
    assert.equal((await keyway([], {}, process.execPath, join(root, file))).code, 0)
  })
})
