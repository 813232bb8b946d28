import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { until } from '../support/patience.ts'
import { environment, launcher, serve, temporaryFolder } from '../support/serve.ts'
import { startKeyway } from './running.ts'

/** Paths that scanners request and that a careless set-up would expose. */
const SCANNED_PATHS = [
  '/.env',
  '/.git/config',
  '/.git/HEAD',
  '/package.json',
  '/package-lock.json',
  '/data/keyway.db',
  '/data/secret',
  '/keyway.db',
  '/server.ts',
  '/src/server.ts',
  '/packages/server/src/server.ts',
  '/node_modules/hono/package.json',
  '/script.js.map',
  '/debug',
  '/debug/pprof',
  '/health',
  '/status',
  '/server-status',
  '/actuator/env',
  '/..%2f..%2fetc%2fpasswd',
  '/%2e%2e/%2e%2e/etc/passwd',
  '//etc/passwd',
]

test('LOG-04: undocumented paths are not served', async t => {
  const { url } = await startKeyway(t)
  for (const path of SCANNED_PATHS) {
    const answer = await fetch(url + path, { redirect: 'manual' })
    assert.equal(answer.status, 404, path)
    assert.doesNotMatch(await answer.text(), /node_modules|\.ts\b|Error:|root:/, path)
  }
})

test('LOG-04: health checks reveal no version or address, and no response names its software', async t => {
  const { url } = await startKeyway(t)
  for (const path of ['/livez', '/readyz', '/v1/me', '/sign-in', '/nowhere']) {
    const answer = await fetch(url + path)
    for (const name of ['server', 'x-powered-by', 'via']) assert.equal(answer.headers.get(name), null, path)
    if (!path.endsWith('z')) continue
    assert.doesNotMatch(await answer.text(), /\d+\.\d+\.\d+|sqlite|postgres:|node/i)
  }
})

/** The headers that docs and SECURITY.md promise for each kind of response. */
test('every kind of response has the security headers for browsers', async t => {
  const { url } = await startKeyway(t)
  for (const path of [
    '/',
    '/v1/me',
    '/livez',
    '/openapi.json',
    '/docs',
    '/errors/not_found',
    '/sign-in',
    '/nowhere',
    '/inbox',
  ]) {
    const { headers } = await fetch(url + path, {
      headers: { Accept: path === '/' ? '*/*' : 'text/html,*/*' },
    })
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'|default-src 'self'/, path)
    assert.match(policy, /frame-ancestors 'none'/, path)
    assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval|\*/, path)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    assert.match(headers.get('referrer-policy') ?? '', /^(no-referrer|same-origin|strict-origin)/, path)
    assert.ok(headers.get('cache-control'), path)
    assert.ok(headers.get('x-request-id'), path)
  }
})

async function settingsWithFolder(t: TestContext, settings: Record<string, string>) {
  const folder = temporaryFolder()
  t.after(folder.remove)
  return { KEYWAY_DATA_DIR: folder.path, KEYWAY_PORT: '0', ...settings }
}

test('LOG-05: no debug header, environment variable or default credential gives access', async t => {
  const settings = await settingsWithFolder(t, {
    NODE_ENV: 'test',
    AUTH_TEST: '1',
    TEST_OTP: '00000000',
    DEBUG: '*',
  })
  const server = await serve(settings)
  t.after(() => server.end('SIGKILL'))
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const response = await post('/auth/send-magic-link', { email: 'ada@example.com' })
  const { login_id: loginId } = (await response.json()) as { login_id: string }
  for (const code of ['00000000', '12345678', '11111111', '99999999'])
    assert.equal(
      (await post('/auth/verify-magic-link', { email: 'ada@example.com', login_id: loginId, code })).status,
      400,
    )
  const testHeaders = {
    'X-Test-Clock': '2000-01-01T00:00:00Z',
    'X-Forwarded-User': 'admin',
    'X-Test-User': 'admin',
  }
  const me = await fetch(`${server.url}/v1/me`, { headers: testHeaders })
  assert.equal(me.status, 401)

  const unknownSettingResult = await promisify(execFile)(process.execPath, [launcher, 'check-config'], {
    env: environment({ ...settings, KEYWAY_TEST_MODE: 'true' }),
  }).catch(error => error as { code: number; stderr: string })
  assert.equal(
    (unknownSettingResult as { code: number }).code,
    78,
    'a setting that does not exist is refused, not ignored',
  )
})

test('LOG-06: the process survives a series of refused, broken and malformed requests', async t => {
  const server = await serve(await settingsWithFolder(t, { KEYWAY_LOG_LEVEL: 'warn' }))
  t.after(() => server.end('SIGKILL'))
  const oddBodies = ['{', '[]', 'null', '"x"', '{"api_key":{}}', '\u0000', '{"__proto__":{"admin":true}}']
  for (const path of [
    '/auth/agent-token',
    '/auth/refresh',
    '/auth/verify-magic-link',
    '/auth/logout',
    '/auth/revoke',
    '/hooks/mail/resend',
  ])
    for (const body of oddBodies) {
      const answer = await fetch(server.url + path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      })
      assert.ok(answer.status < 500, `${path} ${body}`)
    }
  assert.equal((await fetch(`${server.url}/livez`)).status, 200)
  assert.doesNotMatch(server.output(), /unhandled|uncaught|request failed/i)
  assert.equal(await server.end('SIGTERM'), 0)
})

test('the process survives a closed log output', async t => {
  const env = environment(await settingsWithFolder(t, {}))
  const child = spawn(process.execPath, [launcher, 'serve'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  t.after(() => child.kill('SIGKILL'))
  let url = ''
  for await (const chunk of child.stdout) {
    url = /"url":"([^"]+)","msg":"Keyway is ready"/.exec(String(chunk))?.[1] ?? url
    if (url) break
  }
  child.stdout.destroy()
  for (const email of ['a@example.com', 'b@example.com']) {
    const body = JSON.stringify({ email })
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${url}/auth/send-magic-link`, { method: 'POST', headers, body })
    assert.equal(response.status, 200)
    await untilMailArrives(url, email)
  }
  assert.equal((await fetch(`${url}/livez`)).status, 200)
  assert.equal(child.exitCode, null)
})

async function untilMailArrives(url: string, email: string): Promise<void> {
  await until(`a mail for ${email}`, async () => {
    const answer = await fetch(`${url}/inbox?to=${email}`, { headers: { Accept: 'application/json' } })
    return ((await answer.json()) as { data: unknown[] }).data.length > 0
  })
}
