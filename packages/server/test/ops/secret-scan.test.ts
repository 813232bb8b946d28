import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { root, sourceFiles, src } from '../structure/source.ts'
import { freePort } from '../support/free-port.ts'
import { createJourney } from '../support/journey.ts'
import { OBSERVED } from '../support/observed-modules.ts'
import { onceInTime } from '../support/patience.ts'
import { type Leak, scanRecording } from '../support/secret-scan.ts'
import { serve, temporaryFolder } from '../support/serve.ts'

const RUNNER = join(root, 'packages/server/test/support/run-tests.ts')
const RECORDER = join(root, 'packages/server/test/support/record.cjs')

function npmTest(file: string): Promise<{ code: number; stdout: string; stderr: string }> {
  // With this variable a nested test runner would report to the outer one.
  const { NODE_TEST_CONTEXT, ...env } = process.env
  return new Promise(resolve =>
    execFile(process.execPath, [RUNNER, file], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    ),
  )
}

/** The findings of the scan for a process that printed `before`, created the secret, and printed `after`. */
function scan({ kind = 'API key', secret = '', source = 'log', before = '', after = '' }): Leak[] {
  const folder = temporaryFolder()
  try {
    const head = `program: keyway serve\n\n\x1e${source}\n${before}`
    writeFileSync(join(folder.path, '1.0.x.output'), `${head}${after}\n`)
    writeFileSync(
      join(folder.path, '1.0.x.secrets'),
      `${kind}\t${Buffer.byteLength(head)}\t${JSON.stringify(secret)}\n`,
    )
    return scanRecording(folder.path).leaks
  } finally {
    folder.remove()
  }
}

test('a test run fails if a process printed a secret, and reports the place without the secret', async () => {
  const { code, stdout } = await npmTest('packages/server/test/ops/leaking-fixture.ts')
  assert.equal(code, 1)
  assert.match(stdout, /^ℹ pass 1$/m, 'nothing but the scan failed')
  assert.match(stdout, /^ℹ secrets 1 issued, .* MB of output from \d processes scanned, 1 FOUND$/m)
  const [line = '', file = ''] =
    /^✖ secret in output: API key in log of packages\/server\/test\/ops\/leaking-fixture\.ts \((.+), line \d+\)$/m.exec(
      stdout,
    ) ?? []
  assert.ok(line, stdout)
  assert.ok(existsSync(file), 'what was recorded is there to be looked into')
  const [key = ''] = /svc_\w{32}/.exec(readFileSync(file, 'latin1'))!
  assert.ok(key && !stdout.includes(key))
  rmSync(join(file, '..'), { recursive: true })
})

test('a recorded process records its whole output and every secret that it creates', async t => {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const env = { TEST_RECORDING: folder.path, NODE_OPTIONS: `--require ${JSON.stringify(RECORDER)}` }
  const server = await serve({
    ...env,
    KEYWAY_DATA_DIR: join(folder.path, 'data'),
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_LOG_LEVEL: 'silent',
  })
  t.after(() => server.end('SIGKILL'))
  const journey = createJourney(server.url)
  await journey.sendLink('ada@example.com')
  const { access_token } = await journey.verify('ada@example.com', await journey.readToken('ada@example.com'))
  const { key } = await journey.createKey(access_token, 'one')
  const agent = await journey.connect(await journey.exchange(key))
  agent.send('{"type":"nonsense"}')
  await onceInTime(agent, 'message')
  agent.close()
  await onceInTime(agent, 'close')
  await fetch(`${server.url}/sign-in`)
  await fetch(`${server.url}/v1/me`)
  await server.end('SIGTERM')
  const throwerFile = join(folder.path, 'thrower.mjs')
  writeFileSync(throwerFile, "throw new Error('told by nobody else')")
  await assert.rejects(
    promisify(execFile)(process.execPath, [throwerFile], { env: { ...process.env, ...env } }),
  )

  const linesOfFiles = (end: string) =>
    readdirSync(folder.path)
      .filter(name => name.endsWith(end))
      .map(name => readFileSync(join(folder.path, name), 'latin1'))
      .join('')
  const output = linesOfFiles('.output')
  for (const said of [
    /\x1elog\n(\{.*\n)*\{"level":"debug".*"route":"exchangeApiKey"/,
    /\x1estdout\nSign-in link for /,
    /\x1eerror answer\nHTTP\/1\.1 401 (.+\r?\n)*\r\n\{.*"code":/,
    /\x1ehub error\n\x81.{1,9}?\{"type":"error"/s,
    /\x1emetrics\n(.*\n)*keyway_exchanges_total\{outcome="issued"\} 1/,
    /\x1ethrown\nError: told by nobody else\n +at /,
  ])
    assert.match(output, said)
  const kinds = linesOfFiles('.secrets')
    .split('\n')
    .map(line => line.split('\t')[0]!)
  assert.deepEqual([...new Set(kinds)].filter(Boolean).sort(), [
    'API key',
    'KEYWAY_SECRET',
    'access token',
    'address-pepper',
    'agent token',
    'form-token MAC',
    'journal MAC',
    'link token',
    'login code',
    'login id',
    'login-code MAC',
    'random token',
    'refresh token',
    'session-secret',
    'signing-key',
  ])
})

test('a test run without leaks ends with a line about the amount scanned', async () => {
  const { code, stdout } = await npmTest('packages/server/test/unit/money.test.ts')
  assert.equal(code, 0, stdout)
  assert.match(stdout, /\nℹ secrets \d+ issued, [\d.]+ MB of output from \d processes scanned, none found\n$/)
})

test('a test file that does not exist is reported in one line', async () => {
  const { code, stdout, stderr } = await npmTest('nothing')
  assert.deepEqual([code, stdout, stderr], [1, '', 'No test file matches nothing.\n'])
})

test('the scan finds a secret in every encoding', () => {
  for (let round = 0; round < 20; round++) {
    const secret = `svc_${randomBytes(24).toString('base64')}`
    for (const after of [
      secret,
      `{"authorization":"Bearer ${secret}"}`,
      `GET /x?key=${encodeURIComponent(secret)}&a=b`,
      ...['a', 'ab', 'abc', 'shop'].map(
        user => `Authorization: Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`,
      ),
      Buffer.from(`{"key":"${secret}","at":1}`).toString('base64url'),
      `${'x'.repeat(70_000)}${secret}${'y'.repeat(70_000)}`,
      `its end: ${secret.slice(-20)}`,
    ])
      assert.deepEqual(
        scan({ secret, after }).map(({ kind, place, line }) => [kind, place, line]),
        [['API key', 'log of keyway serve', 4]],
        after.slice(0, 200),
      )
    const hash = createHash('sha256').update(secret).digest('base64url')
    assert.deepEqual(scan({ secret, after: `prefix ${secret.slice(0, 12)}, hash ${hash}` }), [])
  }
})

test('the scan finds a code as a separate word after its creation, and not within longer numbers, ids or metrics', () => {
  const code = { kind: 'login code', secret: '12345678' }
  for (const after of [
    'code 1234 5678',
    '"code":"12345678"',
    '(12345678)',
    'code=12345678&x',
    'It is 12345678.',
  ])
    assert.equal(scan({ ...code, after }).length, 1, after)
  for (const after of [
    '1234567812345678',
    '"time":1234567890123',
    '12345678-9abc-7def-8123-456789abcdef',
    '0.12345678',
    '12345678.5',
    'a12345678',
  ])
    assert.deepEqual(scan({ ...code, after }), [], after)
  for (const after of ['nodejs_heap_size_total_bytes 12345678', 'x{route="/a"} 12345678'])
    assert.deepEqual(scan({ ...code, source: 'metrics', after }), [], after)
  assert.equal(scan({ ...code, source: 'metrics', after: 'x{route="/12345678"} 1' }).length, 1)
  assert.deepEqual(scan({ ...code, before: '"bytes":12345678\n', after: 'x' }), [])
})

/** How the scan observes the secrets of each file that uses randomness or creates a MAC. */
const OBSERVED_BY: Record<string, string> = {
  'account-changes/email-changes.ts': 'randomToken',
  'api-keys/api-key.ts': 'newApiKey',
  'apps/app-secret.ts': 'newAppSecret',
  'audit/audit-seal.ts': 'in the log on purpose',
  'audit/audit.ts': 'a salt, which exports of the audit show: randomToken',
  'authorizations/authorizations.ts': 'randomToken',
  'backup/backup-file.ts': 'createSecrets',
  'backup/journal-entry.ts': 'a checksum, not a secret',
  'backup/journal.ts': 'createSecrets',
  'clients/registration.ts': 'randomToken',
  'config/keyway-secret.ts': 'createSecrets, which is given it',
  'device-authorizations/device-authorization.ts': 'a user code, which its device shows on purpose',
  'device-authorizations/device-authorizations.ts': 'randomToken',
  'hub/api-requests.ts': 'randomToken',
  'hub/resume-token.ts': 'randomToken',
  'ids.ts': 'names, of which only the login id is secret: createSend',
  'magic-links/login-code.ts': 'generateCode',
  'magic-links/send.ts': 'mailedLink and createSend',
  'magic-links/typed-code.ts': 'createSecrets',
  'mail/hooks/resend.ts': 'compared with what the provider sent, and sent to nobody',
  'secrets.ts': 'randomToken and createSecrets; a nonce is public',
  'sessions/refresh-token.ts': 'refreshToken and pageCookie',
  'sessions/sessions.ts': 'createSecrets, which seals it',
  'signing-keys/algorithms.ts': 'createSecrets, which seals it',
  'storage/event-seal.ts': 'a sender id, which every event carries in clear',
  'storage/postgres-events.ts': 'names of probes, which every node reads',
  'storage/redis-events.ts': 'names of probes, which every node reads',
  'users/erased-address.ts': 'stands for an address, and is no secret',
  'users/listed-administrators.ts': 'stands for an address, and is no secret',
  'users/trial-credit.ts': 'createSecrets, which seals it',
  'web/cookies.ts': 'randomToken and createSecrets',
  'web/device.ts': 'createSecrets',
  'web/forms.ts': 'createSecrets',
  'web/keys.ts': 'createSecrets',
  'web/pending-requests.ts': 'names in a sealed cookie: randomToken',
  'webhooks/signature.ts': 'createSecrets, which seals it; a signature is public',
}
const MAKES_SECRETS =
  /\b(random(Bytes|Int|UUID|FillSync|Fill|Token|Base62)|getRandomValues|generateKeyPair\w*|createHmac|hmac|\.mac)\(/

test('every function that creates secrets is observed by the scan', async () => {
  const files = (await sourceFiles()).map(({ path, text }) => ({ path: relative(src, path), text }))
  const secretMakers = files.filter(({ text }) => MAKES_SECRETS.test(text)).map(({ path }) => path)
  assert.deepEqual(
    secretMakers.sort(),
    Object.keys(OBSERVED_BY).sort(),
    'name in OBSERVED_BY how the scan knows their secrets; observe them in support/observed-modules.ts',
  )
  for (const [path, names] of Object.entries(OBSERVED)) {
    const source = files.find(file => file.path === path)
    for (const name of names) {
      assert.match(source?.text ?? '', new RegExp(`^export (async )?function ${name}\\b`, 'm'), path)
      const ownCalls = source!.text.match(new RegExp(`(?<!function )\\b${name}\\((?!process\\.env)`, 'g'))
      assert.equal(
        ownCalls,
        null,
        `${path} calls its own ${name}, which nobody observes: observe what others call`,
      )
    }
  }
})
