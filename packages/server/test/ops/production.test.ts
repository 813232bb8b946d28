import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { onceInTime } from '../support/patience.ts'
import { createEmptyDatabase } from '../support/postgres.ts'
import { environment, temporaryFolder } from '../support/serve.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { makeCertificate } from './certificate.ts'
import { startTlsProxy } from './tls-proxy.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const SETUP_SCRIPT = join(ROOT, 'deploy/production/setup.sh')
const LAUNCHER = join(ROOT, 'packages/server/bin/keyway.js')
const TEN_MINUTES = 10 * 60 * 1000
const execute = promisify(execFile)

async function setUp(t: TestContext) {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const etc = join(folder.path, 'etc')
  const smtp = await startSmtpServer(t, {
    startTls: false,
    auth: { user: 'keyway', password: 'mail pass/word' },
  })
  const database = await createEmptyDatabase()
  t.after(database.drop)
  const certificate = await makeCertificate(folder.path)
  const port = await freePort()
  const proxy = await startTlsProxy(t, certificate, () => port)
  const options = {
    domain: `localhost:${proxy.port}`,
    'database-url': database.url,
    'mail-url': `smtp://keyway:${encodeURIComponent('mail pass/word')}@127.0.0.1:${smtp.port}`,
    'mail-from': 'The Example <no-reply@example.com>',
    'support-email': 'support@example.com',
    port: String(port),
    'metrics-port': String(await freePort()),
    etc,
    state: join(folder.path, 'state'),
  }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  const setup = (...additionalArgs: string[]) =>
    execute(SETUP_SCRIPT, [...args, '--no-install', '--no-service', ...additionalArgs], {
      env: environment({}),
    })
  /** Parses the settings as systemd does. */
  const settings = () => {
    const envLines = readFileSync(join(etc, 'keyway.env'), 'utf8').trim().split('\n')
    const lines = envLines.filter(line => !line.startsWith('#'))
    assert.equal(new Set(lines).size, lines.length, 'no line stands twice')
    return Object.fromEntries(lines.map(line => /^(\w+)='(.*)'$/.exec(line)!.slice(1, 3) as [string, string]))
  }
  const caSettings = { NODE_EXTRA_CA_CERTS: certificate.file }
  return { etc, smtp, certificate, url: `https://localhost:${proxy.port}`, setup, settings, caSettings }
}

test('the documented production setup serves over TLS with PostgreSQL and SMTP in under ten minutes', {
  skip: postgresMissing(),
}, async t => {
  const startedAt = performance.now()
  const { etc, smtp, certificate, url, setup, settings, caSettings } = await setUp(t)
  const { stdout } = await setup()
  assert.match(stdout, /Done/)
  assert.doesNotMatch(stdout, /mail pass|mail%20pass/)

  const env = environment({ ...settings(), ...caSettings })
  const service = spawn(process.execPath, [LAUNCHER, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => service.kill('SIGKILL'))
  await onceInTime(service.stdout, 'data')

  const agent = new Agent({ ca: certificate.cert })
  const call = async (method: string, path: string, body?: object, bearer?: string) => {
    const headers = {
      ...(body && { 'content-type': 'application/json' }),
      ...(bearer && { authorization: `Bearer ${bearer}` }),
    }
    const outgoing = request(url + path, { method, agent, headers })
    outgoing.end(body && JSON.stringify(body))
    const [answer] = await onceInTime(outgoing, 'response')
    let text = ''
    for await (const chunk of answer) text += chunk
    assert.match(String(answer.headers['strict-transport-security']), /max-age/)
    return { status: answer.statusCode, body: text.startsWith('{') ? JSON.parse(text) : text }
  }

  const email = 'ada@example.com'
  await call('POST', '/auth/send-magic-link', { email })
  await smtp.received(1)
  const [, link = ''] = /(https:\/\/localhost:\d+\/verify\?\S+)/.exec(smtp.mails[0]!.text)!
  assert.ok(link.startsWith(url))
  const token = new URL(link).searchParams.get('token')
  const { body: session } = await call('POST', '/auth/verify-magic-link', { email, token })
  const { body: key } = await call('POST', '/v1/api-keys', { name: 'first' }, session.access_token)
  const { body: agentToken } = await call('POST', '/auth/agent-token', { api_key: key.key })
  const socket = new WebSocket(`${url.replace('https', 'wss')}/hub`, 'keyway.hub.v1', {
    ca: certificate.cert,
    headers: { authorization: `Bearer ${agentToken.token}` },
  })
  const [ready] = await onceInTime(socket, 'message')
  assert.equal(JSON.parse(String(ready)).type, 'ready')
  const closed = once(socket, 'close')
  await call('DELETE', `/v1/api-keys/${key.id}`, undefined, session.access_token)
  assert.equal((await closed)[0], 4410)

  // The installed command reads the settings from their file, so only the certificate authority is set here.
  const doctorResult = await execute(join(etc, 'keyway'), ['doctor'], { env: environment(caSettings) })
  assert.doesNotMatch(doctorResult.stdout, /LOOK/)
  assert.match(doctorResult.stdout, /ok {4}public URL: https:\/\/localhost/)
  const { body: readiness } = await call('GET', '/readyz')
  assert.equal(readiness.status, 'ready')
  assert.equal((await call('GET', '/metrics')).status, 404, 'metrics are not for the world')
  const metricsAnswer = await fetch(`http://127.0.0.1:${settings().KEYWAY_METRICS_PORT}/metrics`)
  assert.match(await metricsAnswer.text(), /keyway_events_listening 1/)
  assert.notDeepEqual(readdirSync(settings().KEYWAY_JOURNAL_DIR!), [], 'the journal is kept')

  const exited = once(service, 'exit')
  service.kill('SIGTERM')
  assert.equal((await exited)[0], 0)
  assert.ok(performance.now() - startedAt < TEN_MINUTES)

  for (const file of readdirSync(etc)) assert.equal(statSync(join(etc, file)).mode & 0o077, 0, file)
  assert.match(readFileSync(join(etc, 'nginx.conf'), 'utf8'), /server_name localhost;/)
  const secret = readFileSync(join(etc, 'secret'), 'utf8')
  appendFileSync(join(etc, 'keyway.env'), "# Sessions end sooner here.\nKEYWAY_SESSION_SECONDS='86400'\n")
  const settingsBefore = settings()
  await setup()
  assert.equal(readFileSync(join(etc, 'secret'), 'utf8'), secret, 'an existing secret is kept')
  assert.deepEqual(settings(), settingsBefore, 'settings that were added are kept, and none is doubled')
  await setup('--support-email', 'help@example.com')
  assert.deepEqual(settings(), { ...settingsBefore, KEYWAY_SUPPORT_EMAIL: 'help@example.com' })
})

test('an invalid setting stops the setup with its message before anything is changed', {
  skip: postgresMissing(),
}, async t => {
  const { setup } = await setUp(t)
  const failure = await setup('--mail-url', 'ftp://example.com').catch(error => error)
  assert.equal(failure.code, 78)
  assert.match(failure.stderr, /KEYWAY_MAIL_URL must be/)
  const unknownOptionFailure = await setup('--wrong').catch(error => error)
  assert.equal(unknownOptionFailure.code, 64)
})

test('the systemd units are valid', {
  skip: existsSync('/usr/bin/systemd-analyze') ? false : 'systemd-analyze is not installed here',
}, async t => {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const names = readdirSync(join(ROOT, 'deploy/systemd'))
  const stateFolder = join(folder.path, 'state')
  for (const name of names) {
    const unitText = readFileSync(join(ROOT, 'deploy/systemd', name), 'utf8')
    const installedUnit = unitText
      .replaceAll('@ROOT@', ROOT)
      .replaceAll('@ETC@', folder.path)
      .replaceAll('@STATE@', stateFolder)
    writeFileSync(join(folder.path, name), installedUnit)
  }
  const files = names.map(name => join(folder.path, name))
  const { stdout, stderr } = await execute('systemd-analyze', ['verify', '--man=no', ...files]).catch(
    error => error,
  )
  const problems = (stdout + stderr).split('\n').filter((line: string) => line.includes('keyway'))
  assert.deepEqual(problems, [])
})
