import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { root } from '../structure/source.ts'
import { GO_LIBRARIES, runGo } from '../support/go.ts'
import { PYTHON, packageMissing } from '../support/missing-servers.ts'
import { until } from '../support/patience.ts'
import { CLIENT_CHECKS, type ClientCheckResult, runClientConformance } from './client-conformance.ts'

const pythonMissing = packageMissing('python3-websockets', [PYTHON, '-c', 'import websockets, httpx'])
const goMissing = packageMissing('golang-github-gorilla-websocket-dev', [
  'ls',
  `${GO_LIBRARIES}/src/github.com/gorilla/websocket`,
])
/** The timeout of tests with many checks, each of which starts a process. */
const SLOW_TEST = { timeout: 900_000 }

function assertConforms(results: ClientCheckResult[]): void {
  const failedResults = results.filter(({ outcome }) => outcome === 'failed')
  assert.deepEqual(
    failedResults.map(({ check, why }) => `§${check.section} ${check.promise}: ${why}`),
    [],
  )
}

test('an agent of the npm package passes the conformance checks for clients', SLOW_TEST, async () => {
  assertConforms(await runClientConformance([process.execPath, join(root, 'examples/echo-agent.ts')]))
})

test('an agent of the Python package passes the conformance checks for clients, all of them', {
  skip: pythonMissing,
  ...SLOW_TEST,
}, async () => {
  const path = `PYTHONPATH=${join(root, 'packages/python/src')}`
  const command = ['env', path, 'PYTHONDONTWRITEBYTECODE=1', PYTHON] as const
  const results = await runClientConformance([...command, join(root, 'examples/echo_agent.py')])
  assertConforms(results)
  assert.ok(results.every(({ outcome }) => outcome === 'ok'))
})

test('a small agent in Go, written from the document, passes the conformance checks for clients, all of them', {
  skip: goMissing,
  ...SLOW_TEST,
}, async t => {
  const results = await runClientConformance([await buildGoAgent(t)])
  assertConforms(results)
  assert.ok(results.every(({ outcome }) => outcome === 'ok'))
})

test(
  'a client that reconnects always and puts the token into the URL fails the checks',
  SLOW_TEST,
  async () => {
    const checks = CLIENT_CHECKS.filter(({ promise }) => BROKEN_PROMISES.includes(promise))
    const command = [process.execPath, '--input-type=module', '-e', CARELESS_CLIENT] as const
    const results = await runClientConformance([...command], { checks })
    assert.deepEqual(
      results.filter(({ outcome }) => outcome === 'failed').map(({ check }) => check.promise),
      BROKEN_PROMISES,
    )
  },
)

test('a client ends with the checks, also when these are killed', async () => {
  const module = JSON.stringify(new URL('client-conformance/program.ts', import.meta.url))
  const client = "console.log('client', process.pid); setInterval(() => {}, 1000)"
  const runner = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `const { Program } = await import(${module})
     const program = new Program([process.execPath, '-e', ${JSON.stringify(client)}], {})
     setInterval(() => console.log(program.output), 100)`,
  ])
  let output = ''
  runner.stdout.on('data', chunk => (output += chunk))
  const pid = Number(await until('the client is started', () => /client (\d+)\n/.exec(output)?.[1]))
  runner.kill('SIGKILL')
  await until('the client ends', () => !isRunning(pid))
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const BROKEN_PROMISES = [
  'the key is exchanged once, and the token opens the hub, as header or as subprotocol',
  'after the exchange was refused with 401 api_key_revoked the client stops for good',
  'after 4410 revoked the client stops for good and does not reconnect',
]

/** A client that puts the token into the URL, never renews, and reconnects after every close. */
const CARELESS_CLIENT = `
const { KEYWAY_URL, KEYWAY_API_KEY } = process.env
async function connect() {
  try {
    const body = JSON.stringify({ api_key: KEYWAY_API_KEY })
    const { token } = await (await fetch(KEYWAY_URL + '/auth/agent-token', { method: 'POST', body })).json()
    const socket = new WebSocket(KEYWAY_URL.replace('http', 'ws') + '/hub?token=' + token)
    socket.onclose = () => setImmediate(connect)
    socket.onmessage = ({ data }) => {
      const { type, from: to, id, data: echo } = JSON.parse(data)
      if (type === 'message') socket.send(JSON.stringify({ type: 'send', id, to, data: { echo } }))
    }
  } catch {
    setImmediate(connect)
  }
}
connect()
`

async function buildGoAgent(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-go-agent-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const program = join(folder, 'agent')
  const source = join(root, 'examples/go-agent')
  await runGo(['vet', '.'], source)
  await runGo(['build', '-o', program, '.'], source)
  return program
}
