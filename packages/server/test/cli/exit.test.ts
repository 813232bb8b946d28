import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { platform } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { HOUR } from '../../src/clock.ts'
import { freePort } from '../support/free-port.ts'
import { patienceMs, until } from '../support/patience.ts'
import { environment, launcher, serve, temporaryFolder } from '../support/serve.ts'

test('the server starts with a clock behind the last heartbeat of a killed process', async t => {
  const { settings, file } = newDataDir(t)
  const killedProcess = await serve(settings)
  await killedProcess.end('SIGKILL')
  setHeartbeats(file, HOUR)
  const server = await serve(settings)
  t.after(() => server.end('SIGKILL'))
  const { nodes } = readNodes(file)
  assert.equal(nodes.length, 1, 'the dead node is not taken for a live one')
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  assert.equal(await server.end('SIGTERM'), 0)
})

test('the process ends with a message and status 1 when its writer thread dies', async t => {
  const { settings } = newDataDir(t)
  const preload = `process.once('worker', worker => process.once('SIGUSR2', () => worker.terminate()))`
  const nodeOptions = `--import=data:text/javascript,${encodeURIComponent(preload)}`
  const server = await serve({ ...settings, NODE_OPTIONS: nodeOptions })
  t.after(() => server.end('SIGKILL'))
  process.kill(server.pid, 'SIGUSR2')
  assert.equal(await server.exited, 1, server.output())
  assert.match(
    server.output(),
    /Keyway stopped after a failure: the thread that writes the database has ended/,
  )
})

test('the process survives running out of file descriptors', {
  skip: platform() === 'win32',
}, async t => {
  const { settings } = newDataDir(t)
  const port = await freePort()
  const command = ['-c', 'ulimit -n 60; exec "$0" "$@"', process.execPath, launcher, 'serve']
  const child = spawn('sh', command, { env: environment({ ...settings, KEYWAY_PORT: String(port) }) })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', text => (output += text))
  const exited = once(child, 'exit')
  await untilAlive(`http://localhost:${port}/livez`)
  const sockets = Array.from({ length: 200 }, () => connect(port, 'localhost').on('error', () => {}))
  await Promise.all(sockets.map(socket => once(socket, 'connect').catch(() => {})))
  await until('it waits instead of spinning', async () => {
    const timeBefore = processorTime(child.pid!)
    await wait(1000)
    return timeBefore === null || processorTime(child.pid!)! - timeBefore < 500
  })
  assert.equal(child.exitCode, null, output)
  for (const socket of sockets) socket.destroy()
  await untilAlive(`http://localhost:${port}/livez`)
  child.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null], output)
})

/** CPU time of a process in milliseconds; null if the system has no /proc. */
function processorTime(pid: number): number | null {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) return null
  const fields = readFileSync(file, 'utf8').split(') ')[1]!.split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}

test('the process survives output that cannot be written', { skip: !existsSync('/dev/full') }, async t => {
  const { settings } = newDataDir(t)
  const port = await freePort()
  const fullDevice = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [launcher, 'serve'], {
    env: environment({ ...settings, KEYWAY_PORT: String(port), KEYWAY_LOG_LEVEL: 'debug' }),
    stdio: ['ignore', fullDevice, 'pipe'],
  })
  closeSync(fullDevice)
  t.after(() => child.kill('SIGKILL'))
  await untilAlive(`http://localhost:${port}/livez`)
  for (let call = 0; call < 20; call++)
    assert.equal((await fetch(`http://localhost:${port}/livez`)).status, 200)
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null])
})

async function untilAlive(url: string): Promise<void> {
  await until(`${url} answers`, () =>
    fetch(url, { signal: AbortSignal.timeout(patienceMs(1000)) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
}

test('an unexpected exit prints a message and has status 1', () => {
  const cliUrl = new URL('../../src/cli.ts', import.meta.url)
  // A command that waits for a promise that never settles, while nothing keeps the event loop alive.
  const script = `
    import { registerHooks } from 'node:module'
    const source = 'export const overview = () => new Promise(() => {}), helpOf = overview'
    registerHooks({
      load: (url, context, next) =>
        url.endsWith('/cli/help.ts') ? { format: 'module', source, shortCircuit: true } : next(url, context),
    })
    const { main } = await import(${JSON.stringify(cliUrl.href)})
    void main(['--help'])`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: environment({}),
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(status, 1, stderr)
  assert.match(stderr, /ended before its command had finished/)
})

function newDataDir(t: TestContext) {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const settings = { KEYWAY_DATA_DIR: folder.path, KEYWAY_PORT: '0' }
  return { settings, file: join(folder.path, 'keyway.db') }
}

/** Moves the heartbeats into the future, as written by a process whose clock was ahead. */
function setHeartbeats(file: string, ahead: number): void {
  const database = new DatabaseSync(file)
  database.exec(`update nodes set seen_at = seen_at + ${ahead}`)
  database.close()
}

function readNodes(file: string) {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return { nodes: database.prepare('select id from nodes').all() }
  } finally {
    database.close()
  }
}
