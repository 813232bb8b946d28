import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { WebSocket } from 'ws'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createLog } from '../../src/log.ts'
import { altered } from '../support/altered.ts'
import { keywayProcess, keyway as runHere } from '../support/command-line.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { basicAuthorization, openServer } from '../support/http.ts'
import { createJourney } from '../support/journey.ts'
import { createEmptyDatabase } from '../support/postgres.ts'
import { serve, temporaryFolder } from '../support/serve.ts'
import { type ReceivedMail, startSmtpServer, type TestSmtpServer } from '../support/smtp.ts'
import { startKeyway } from './running.ts'
import { createFormBrowser } from './web-browser.ts'

const ADA = 'ada.lovelace@example.com'

/** Collects all secrets of one run, and all its output that clients or operators could read. */
async function collectSecretsAndOutput(engine: EngineName, t: TestContext) {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const smtpPassword = `smtp-${randomBytes(12).toString('hex')}`
  const databasePassword = `database-${randomBytes(12).toString('hex')}`
  const smtp = await startSmtpServer(t, { startTls: false, auth: { user: 'keyway', password: smtpPassword } })
  const secret = randomBytes(32).toString('base64')
  const hookSecret = `whsec_${randomBytes(24).toString('base64')}`
  const secrets = new Set<string>([smtpPassword, databasePassword, secret, hookSecret])
  const settings: Record<string, string> = {
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_DATA_DIR: join(folder.path, 'data'),
    KEYWAY_LOG_LEVEL: 'debug',
    KEYWAY_SECRET: secret,
    KEYWAY_MAIL_URL: `smtp://keyway:${smtpPassword}@127.0.0.1:${smtp.port}`,
    KEYWAY_MAIL_HOOK_SECRET: hookSecret,
    KEYWAY_SUPPORT_EMAIL: 'support@example.net',
    KEYWAY_MAIL_FROM: 'Keyway <no-reply@example.net>',
    KEYWAY_FAILURE_LIMITS: '25/minute',
  }
  if (engine === 'postgres') {
    const database = await createEmptyDatabase()
    t.after(database.drop)
    const url = new URL(database.url)
    url.password = databasePassword
    settings.KEYWAY_DATABASE_URL = url.href
  }
  const server = await serve(settings)
  t.after(() => server.end('SIGKILL'))
  const clientOutput: string[] = []

  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(server.url + path, {
      method,
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    // Responses that contain a secret on purpose are no leak; all others must contain none.
    const returnsSecret =
      response.ok && /magic-link|refresh|agent-token|api-keys/.test(path) && method === 'POST'
    if (!returnsSecret) clientOutput.push(text)
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
  }
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
  const keyway = (...args: string[]) => runHere(settings, ...args)

  async function requestMail() {
    const mailCountBefore = smtp.mails.length
    const { body } = await call('POST', '/auth/send-magic-link', { email: ADA })
    const mail = await signInMail(smtp, mailCountBefore)
    const [, token = ''] = /token=([\w-]{43})/.exec(mail.text)!
    const [code = ''] = /\b\d{4} ?\d{4}\b/.exec(mail.text.replace(/https?:\S+/g, ''))!
    for (const each of [token, code.replace(' ', ''), body.login_id]) secrets.add(each)
    return { token, code: code.replace(' ', ''), loginId: body.login_id as string }
  }
  async function signIn() {
    const { token } = await requestMail()
    const { body } = await call('POST', '/auth/verify-magic-link', { email: ADA, token })
    secrets.add(body.access_token).add(body.refresh_token)
    return { ...body, token }
  }

  // Signs in by link and by code, with success and without.
  const firstSignIn = await signIn()
  await call('POST', '/auth/verify-magic-link', { email: ADA, token: firstSignIn.token })
  await call('POST', '/auth/verify-magic-link', { email: 'other@example.com', token: firstSignIn.token })
  const mailWithCode = await requestMail()
  await call('POST', '/auth/verify-magic-link', {
    email: ADA,
    login_id: mailWithCode.loginId,
    code: '00000000',
  })
  const secondSignIn = await call('POST', '/auth/verify-magic-link', {
    email: ADA,
    login_id: mailWithCode.loginId,
    code: mailWithCode.code,
  })
  secrets.add(secondSignIn.body.access_token).add(secondSignIn.body.refresh_token)
  const refreshAnswer = await call('POST', '/auth/refresh', {
    refresh_token: secondSignIn.body.refresh_token,
  })
  secrets.add(refreshAnswer.body.refresh_token).add(refreshAnswer.body.access_token)
  const reuseAnswer = await call('POST', '/auth/refresh', { refresh_token: secondSignIn.body.refresh_token })
  assert.equal(reuseAnswer.body.code, 'refresh_token_reused')
  await call('POST', '/auth/refresh', { refresh_token: refreshAnswer.body.refresh_token })

  // Creates keys, exchanges them, and uses the hub and apps.
  const adaHeaders = bearer(firstSignIn.access_token)
  const createdKey = await call('POST', '/v1/api-keys', { name: 'one' }, adaHeaders)
  const rotationAnswer = await call('POST', `/v1/api-keys/${createdKey.body.id}/rotate`, {}, adaHeaders)
  secrets.add(createdKey.body.key).add(rotationAnswer.body.key)
  const agentTokenAnswer = await call('POST', '/auth/agent-token', { api_key: rotationAnswer.body.key })
  secrets.add(agentTokenAnswer.body.token)
  await call('GET', '/v1/me', undefined, bearer(rotationAnswer.body.key))
  await call('GET', '/v1/me', undefined, bearer(agentTokenAnswer.body.token))
  await call('GET', `/v1/api-keys?token=${createdKey.body.key}`, undefined, adaHeaders)
  await call('GET', `/nowhere/${createdKey.body.key}?access_token=${firstSignIn.access_token}`)
  await call('POST', '/auth/agent-token', { api_key: `${createdKey.body.key}x` })
  await call('POST', '/auth/agent-token', `{"api_key": "${createdKey.body.key}"`)
  await call('POST', '/auth/agent-token', { api_key: [createdKey.body.key] })
  await visitHub(server.url, agentTokenAnswer.body.token, createdKey.body.key)
  await keyway('apps', 'add', 'shop', '--name', 'Shop')
  const appSecret = (await keyway('apps', 'secret', 'shop')).out.trim()
  secrets.add(appSecret)
  await call(
    'POST',
    '/auth/introspect',
    { token: rotationAnswer.body.key },
    basicAuthorization('shop', appSecret),
  )
  await call(
    'POST',
    '/auth/introspect',
    { token: firstSignIn.access_token },
    basicAuthorization('shop', `${appSecret}x`),
  )
  const chargeBody = { user_id: firstSignIn.user.id, amount: '0.01', description: 'a call' }
  const idempotencyHeader = { 'Idempotency-Key': 'u5d1Zp8yQm4kR0vT2xWc' }
  await call('POST', '/v1/charges', chargeBody, {
    ...basicAuthorization('shop', appSecret),
    ...idempotencyHeader,
  })
  await call('POST', '/hooks/mail/resend', { type: 'email.bounced' }, { 'svix-signature': 'v1,x' })
  const complaint = { RecordType: 'SpamComplaint', Email: 'gone@example.com' }
  await call('POST', '/hooks/mail/postmark', complaint, basicAuthorization('keyway', hookSecret))
  await call('POST', '/auth/send-magic-link', { email: 'gone@example.com' })

  // Visits pages, whose cookies are secrets too.
  const browser = createFormBrowser(server.url)
  const mailCountBefore = smtp.mails.length
  await browser.submit('/sign-in', '/sign-in', { email: ADA })
  const [, pageToken = ''] = /token=([\w-]{43})/.exec((await signInMail(smtp, mailCountBefore)).text)!
  secrets.add(pageToken)
  await browser.submit(`/verify?token=${pageToken}&email=${encodeURIComponent(ADA)}`, '/verify', {})
  for (const value of browser.cookies.values()) secrets.add(value)
  assert.ok(browser.cookies.has('keyway_session'))
  await browser.get(`/verify?token=${pageToken}&email=${encodeURIComponent(ADA)}`)

  // Exceeds limits, revokes credentials, and runs the operator's commands.
  for (let guess = 0; guess < 40; guess++)
    await call('POST', '/auth/agent-token', { api_key: `svc_${'A'.repeat(32)}` })
  for (let sent = 0; sent < 6; sent++) await call('POST', '/auth/send-magic-link', { email: ADA })
  await call('POST', '/auth/revoke', { token: rotationAnswer.body.key })
  await call('POST', '/auth/agent-token', { api_key: rotationAnswer.body.key })
  for (const path of [
    '/v1/me',
    '/v1/sessions',
    '/v1/api-keys',
    '/v1/security-events',
    '/v1/me/ledger',
    '/v1/agents',
  ])
    await call('GET', path, undefined, adaHeaders)
  for (const args of [['users', 'show', ADA], ['users', 'suspend', ADA], ['check-config'], ['doctor']]) {
    const { out, err } = await keyway(...args)
    clientOutput.push(out, err)
  }
  await call('GET', '/v1/me', undefined, adaHeaders)
  await call('POST', '/auth/logout', { refresh_token: firstSignIn.refresh_token })
  clientOutput.push((await (await fetch(`${server.url}/metrics`)).text()) ?? '')
  await server.end('SIGTERM')
  return { secrets, log: server.output(), clientOutput, settings }
}

/** The first sign-in mail after the first `before` mails; notices may come in between. */
async function signInMail(smtp: TestSmtpServer, before: number): Promise<ReceivedMail> {
  for (let count = before + 1; ; count++) {
    await smtp.received(count)
    const mail = smtp.mails[count - 1]!
    if (mail.text.includes('token=')) return mail
  }
}

/** The position of a secret, or -1. A code must be a whole number, since longer numbers may contain its digits. */
function findSecret(text: string, secret: string): number {
  return /^\d+$/.test(secret) ? text.search(new RegExp(`(?<!\\d)${secret}(?!\\d)`)) : text.indexOf(secret)
}

/** Waits until the report file is complete, and returns its content. */
async function untilWritten(file: string): Promise<{ header: { processId: number } }> {
  for await (const _ of watch(dirname(file), { signal: AbortSignal.timeout(20_000) })) {
    try {
      return JSON.parse(readFileSync(file, 'utf8'))
    } catch {}
  }
  throw new Error(`${file} was not written`)
}

/** Makes one accepted connection, and several that are refused. */
async function visitHub(url: string, token: string, key: string): Promise<void> {
  const hub = `${url.replace('http', 'ws')}/hub`
  const openAndClose = (socket: WebSocket) =>
    new Promise<void>(resolve => {
      socket.on('message', () => socket.close())
      socket.on('close', () => resolve())
      socket.on('error', () => resolve())
    })
  await openAndClose(new WebSocket(hub, ['keyway.hub.v1'], { headers: { Authorization: `Bearer ${token}` } }))
  await openAndClose(new WebSocket(hub, ['keyway.hub.v1', `bearer.${token}`]))
  await openAndClose(new WebSocket(hub, ['keyway.hub.v1', `bearer.${altered(token)}`]))
  await openAndClose(new WebSocket(`${hub}?token=${token}`))
  await openAndClose(new WebSocket(hub, { headers: { Authorization: `Bearer ${key}` } }))
}

forEachEngine(engine => {
  test('LOG-01: logs, metrics, errors, lists and commands contain no issued secret and no whole address', async t => {
    const { secrets, log, clientOutput } = await collectSecretsAndOutput(engine, t)
    assert.ok(secrets.size > 20, `${secrets.size} secrets`)
    assert.ok(log.split('\n').length > 100, 'the log was at debug')
    for (const text of [log, ...clientOutput]) {
      for (const secret of secrets) {
        const offset = findSecret(text, secret)
        assert.equal(offset, -1, `…${text.slice(Math.max(0, offset - 200), offset + secret.length + 20)}…`)
      }
    }
    assert.doesNotMatch(log, /[a-z.]{3,}@example\.com/, 'addresses are masked')
  })
})

test('LOG-01: an unexpected error is logged and not shown to the client, and neither contains the request', async t => {
  const lines: string[] = []
  const log = createLog('debug', { write: line => void lines.push(line) })
  const server = await openServer('sqlite', t, { log })
  const { tokens } = await server.signIn('ada@example.com')
  const key = await server.createKey(tokens.accessToken)
  server.agentTokens.exchange = () => Promise.reject(new TypeError('cannot read properties of undefined'))
  const answer = await server.post('/auth/agent-token', { api_key: key.key })
  assert.deepEqual([answer.status, answer.body.code], [500, 'internal_error'])
  assert.doesNotMatch(answer.text, /TypeError|undefined|\.ts/)
  const failureLine = lines.find(line => line.includes('request failed'))!
  assert.match(failureLine, /TypeError/)
  assert.equal(JSON.parse(failureLine).request_id, answer.body.request_id)
  assert.ok(!lines.join().includes(key.key) && !lines.join().includes(tokens.accessToken))
})

test('LOG-01: messages about invalid secret settings do not contain their values, also from files', async t => {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const file = join(folder.path, 'secret')
  writeFileSync(file, 'file-secret-that-is-too-short')
  const settings = {
    KEYWAY_DATA_DIR: folder.path,
    KEYWAY_SECRET_FILE: file,
    KEYWAY_DATABASE_URL: 'mysql://keyway:db-pass-phrase@db/keyway',
    KEYWAY_MAIL_URL: 'smtp://keyway:mail%pass@smtp.example.com',
    KEYWAY_MAIL_HOOK_SECRET: 'short-hook',
  }
  const { status, out, err } = await keywayProcess(settings, 'check-config')
  assert.equal(status, 78)
  assert.doesNotMatch(out + err, /file-secret|db-pass|mail%pass|short-hook/)
  assert.match(err, /KEYWAY_SECRET/)
})

test('LOG-01: a diagnostic report of Node contains no settings', async t => {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const secret = randomBytes(32).toString('base64')
  const server = await serve({
    KEYWAY_DATA_DIR: join(folder.path, 'data'),
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_SECRET: secret,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --report-on-signal --report-dir=${folder.path} --report-filename=report.json`,
  })
  t.after(() => server.end('SIGKILL'))
  const pendingReport = untilWritten(join(folder.path, 'report.json'))
  process.kill(server.pid, 'SIGUSR2')
  const report = await pendingReport
  assert.equal(report.header.processId, server.pid)
  assert.ok(!JSON.stringify(report).includes(secret))
})

test('LOG-02: no input in fields, paths or headers breaks the JSON lines of the log', async t => {
  const lines: string[] = []
  const log = createLog('debug', { write: line => void lines.push(line) })
  const server = await openServer('sqlite', t, { log })
  const injection = 'x\r\n{"level":"error","msg":"forged"}\u001b[31m\u2028"}'
  const { tokens } = await server.signIn('ada@example.com')
  const { call } = server
  const agent = { 'User-Agent': 'curl"}\t{"level":"error"' }
  await call('POST', '/v1/api-keys', { token: tokens.accessToken, body: { name: injection }, headers: agent })
  await call('PATCH', '/v1/me', { token: tokens.accessToken, body: { name: injection }, headers: agent })
  await call('POST', '/auth/send-magic-link', { body: { email: `${injection}@example.com` }, headers: agent })
  await call('POST', '/auth/agent-token', { body: { api_key: injection }, headers: agent })
  await call('GET', `/${encodeURIComponent(injection)}`, { headers: agent })
  await server.raw(`GET /%0d%0a{"level":"error"} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: "}\r\n\r\n`)
  assert.ok(lines.length > 4)
  for (const line of lines) {
    const logRecord = JSON.parse(line)
    assert.equal(line.indexOf('\n'), line.length - 1)
    assert.ok(!line.includes('\u001b'))
    assert.notEqual(logRecord.msg, 'forged')
  }
})

test('LOG-03: refused credentials, rights and limits are logged with time, operation, network and request id', async t => {
  const lines: string[] = []
  const log = createLog('info', { write: line => void lines.push(line) })
  const server = await openServer('sqlite', t, { log, failureLimits: [{ window: 'minute', limit: 3 }] })
  const { tokens } = await server.signIn('ada@example.com')
  await server.get('/v1/me', { token: tokens.accessToken })
  assert.deepEqual(lines, [], 'at info what succeeds has no line')
  const refusals = []
  for (let guess = 0; guess < 5; guess++)
    refusals.push(await server.post('/auth/agent-token', { api_key: `svc_${'B'.repeat(32)}` }))
  await server.post('/auth/agent-token', { nonsense: true })
  const logLines = lines.map(line => JSON.parse(line))
  assert.deepEqual(
    logLines.map(({ code, request_id }) => [code, request_id]),
    refusals.map(({ body }) => [body.code, body.request_id]),
  )
  assert.equal(logLines.at(-1).code, 'rate_limited')
  assert.deepEqual(
    [logLines[0].route, logLines[0].network, logLines[0].level, Number.isNaN(Date.parse(logLines[0].time))],
    ['exchangeApiKey', '127.0.0.1', 'info', false],
  )
  for (let guess = 0; guess < 200; guess++) await server.get('/v1/me', { token: 'x' })
  assert.ok(lines.length < 60, 'a flood is counted, not written')
})

test('LOG-03: security events are logged after their commit, at debug, and reuse as a warning', async t => {
  const lines: string[] = []
  const log = createLog('debug', { write: line => void lines.push(line) })
  const { url, services } = await startKeyway(t, {}, { log })
  const journey = createJourney(url)
  const signIn = async () => {
    await journey.sendLink(ADA)
    return journey.verify(ADA, await journey.readToken(ADA))
  }
  const { user, access_token: access, refresh_token: token } = await signIn()
  const { id } = await journey.createKey(access, 'one')
  await journey.revoke(access, id)
  const refresh = () =>
    fetch(`${url}/auth/refresh`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ refresh_token: token }),
    })
  await refresh()
  assert.equal((await refresh()).status, 401)
  await services.users.suspend(user.id, BY_COMMAND_LINE)
  const securityEvents = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'security event')
  const types = securityEvents.map(({ type }) => type)
  for (const type of [
    'account_created',
    'sign_in',
    'api_key_created',
    'api_key_revoked',
    'account_suspended',
  ])
    assert.ok(types.includes(type), type)
  assert.deepEqual(
    securityEvents.filter(({ level }) => level === 'warn').map(({ type }) => type),
    ['refresh_token_reused'],
  )
  for (const event of securityEvents) {
    assert.equal(event.user_id, user.id)
    assert.ok(!Number.isNaN(Date.parse(event.time)))
  }
  assert.equal(securityEvents.find(({ type }) => type === 'api_key_revoked').key_id, id)
  const { rows } = await services.storage.store.securityEvents.list(user.id, { limit: 100, after: null })
  assert.deepEqual(rows.map(({ type }) => type).sort(), types.sort(), 'told as stored')
})
