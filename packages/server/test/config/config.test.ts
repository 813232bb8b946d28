import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { ConfigError, configWarnings, loadConfig } from '../../src/config.ts'

const SECRET = Buffer.alloc(32, 1).toString('base64')
const SMTP_SETTINGS = { KEYWAY_MAIL_URL: 'smtp://mail.example.com', KEYWAY_SUPPORT_EMAIL: 'help@example.com' }
const PUBLIC_SETTINGS = { KEYWAY_PUBLIC_URL: 'https://keyway.example.com', ...SMTP_SETTINGS }

function mistakesOf(environment: Record<string, string>): string[] {
  try {
    loadConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
    throw error
  }
  return []
}

function assertMistake(environment: Record<string, string>, pattern: RegExp): void {
  const mistakes = mistakesOf(environment)
  assert.equal(mistakes.length, 1, mistakes.join('\n'))
  assert.match(mistakes[0]!, pattern)
  assert.match(mistakes[0]!, /Example: /)
}

function temporaryFile(t: TestContext, content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-config-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'value'), content)
  return join(folder, 'value')
}

describe('settings', () => {
  test('no setting is required', () => {
    const config = loadConfig({})
    assert.equal(config.publicUrl, 'http://localhost:8080')
    assert.equal(config.verifyUrl, 'http://localhost:8080/verify')
    assert.equal(config.host, '127.0.0.1')
    assert.equal(config.database.engine, 'sqlite')
    assert.deepEqual(config.mail, { kind: 'inbox' })
    assert.deepEqual(config.mailFrom, { name: 'Keyway', address: 'no-reply@localhost' })
    assert.deepEqual(configWarnings(config), [])
  })

  test('every mistake is listed at once, each with an example', () => {
    const mistakes = mistakesOf({
      KEYWAY_PORT: '99999',
      KEYWAY_LOG_LEVEL: 'loud',
      KEYWAY_MAX_ACTIVE_KEYS: 'many',
      KEYWAY_TRUSTED_PROXIES: '10.0.0.1/8',
    })
    assert.equal(mistakes.length, 4)
    for (const mistake of mistakes) assert.match(mistake, /^KEYWAY_\w+ .+ Example: KEYWAY_\w+=\S/)
  })

  test('a mistyped name is a mistake with the nearest setting as suggestion', () => {
    assertMistake({ KEYWAY_PUBLIC_URI: 'https://x.example' }, /did you mean KEYWAY_PUBLIC_URL\?/)
    assertMistake({ KEYWAY_SECRETS_FILE: '/x' }, /did you mean KEYWAY_SECRET_FILE\?/)
    assertMistake({ KEYWAY_PORT_FILE: '/x' }, /KEYWAY_PORT_FILE is not a setting/)
  })

  test('service links of Kubernetes are ignored', () => {
    const serviceLinks = {
      KEYWAY_PORT: 'tcp://10.0.0.1:8080',
      KEYWAY_PORT_8080_TCP_ADDR: '10.0.0.1',
      KEYWAY_SERVICE_HOST: '10.0.0.1',
    }
    assert.equal(loadConfig(serviceLinks).port, 8080)
  })

  test('variables of the SDK are ignored', () => {
    assert.deepEqual(mistakesOf({ KEYWAY_API_KEY: 'svc_', KEYWAY_URL: 'http://localhost:8080' }), [])
  })

  test('an empty variable counts as not set', () => {
    assert.equal(loadConfig({ KEYWAY_PORT: '', KEYWAY_MAIL_URL: ' ' }).port, 8080)
  })

  test('PORT is read if KEYWAY_PORT is not set', () => {
    assert.equal(loadConfig({ PORT: '3000' }).port, 3000)
    assert.equal(loadConfig({ PORT: '3000' }).publicUrl, 'http://localhost:3000')
    assert.equal(loadConfig({ PORT: '3000', KEYWAY_PORT: '4000' }).port, 4000)
  })

  test('several processes need PostgreSQL and a fixed port', () => {
    const postgres = {
      KEYWAY_DATABASE_URL: 'postgres://localhost/keyway',
      KEYWAY_SECRET: SECRET,
    }
    const processesFor = (KEYWAY_PROCESSES: string) => loadConfig({ ...postgres, KEYWAY_PROCESSES }).processes
    assert.equal(processesFor('4'), 4)
    assert.equal(processesFor('auto'), availableParallelism())
    assert.equal(loadConfig({}).processes, 1)
    assert.equal(loadConfig({ KEYWAY_PROCESSES: 'auto' }).processes, 1, 'SQLite has one writer')
    assertMistake({ KEYWAY_PROCESSES: '2' }, /KEYWAY_PROCESSES above 1 needs PostgreSQL/)
    assertMistake({ ...postgres, KEYWAY_PROCESSES: '2', KEYWAY_PORT: '0' }, /a KEYWAY_PORT other than 0/)
    for (const wrong of ['0', '-1', '1.5', 'all', '1000'])
      assertMistake({ ...postgres, KEYWAY_PROCESSES: wrong }, /KEYWAY_PROCESSES/)
  })

  test('a secret can be read from a file, but not be set in both ways', t => {
    const file = temporaryFile(t, `${SECRET}\n`)
    assert.deepEqual(loadConfig({ KEYWAY_SECRET_FILE: file }).secrets, [Buffer.alloc(32, 1)])
    assertMistake({ KEYWAY_SECRET_FILE: file, KEYWAY_SECRET: SECRET }, /KEYWAY_SECRET_FILE too: keep one/)
    assertMistake({ KEYWAY_SECRET_FILE: `${file}.gone` }, /ENOENT/)
    assertMistake({ KEYWAY_SECRET_FILE: temporaryFile(t, '\n') }, /is empty/)
  })

  test('messages do not contain the text of a secret', () => {
    const secret = 'hunter2%'
    const mistakes = mistakesOf({
      KEYWAY_SECRET: secret,
      KEYWAY_MAIL_URL: `smtp://me:${secret}@mail.example.com`,
      KEYWAY_DATABASE_URL: `mysql://me:${secret}@db.example.com`,
      KEYWAY_EVENTS_URL: `amqp://me:${secret}@events.example.com`,
    })
    assert.ok(mistakes.length >= 4)
    assert.doesNotMatch(mistakes.join('\n'), /hunter2/)
  })
})

describe('addresses of other machines', () => {
  const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]', '%2Fvar%2Frun%2Fpostgresql']
  const warningsOf = (settings: Record<string, string>) =>
    configWarnings(
      loadConfig({
        ...PUBLIC_SETTINGS,
        KEYWAY_MAIL_FROM: 'me@example.com',
        KEYWAY_SECRET: SECRET,
        ...settings,
      }),
    ).join()
  const databaseWarnings = (url: string) => warningsOf({ KEYWAY_DATABASE_URL: url })
  const eventsWarnings = (url: string) =>
    warningsOf({ KEYWAY_DATABASE_URL: 'postgres://localhost/keyway', KEYWAY_EVENTS_URL: url })

  test('a remote PostgreSQL without TLS causes one warning', () => {
    for (const query of ['', '?sslmode=disable', '?sslmode=prefer', '?ssl=false'])
      assert.match(
        databaseWarnings(`postgres://me:pw@db.example.com/keyway${query}`),
        /KEYWAY_DATABASE_URL.*TLS/,
      )
    assert.doesNotMatch(databaseWarnings('postgres://me:pw@db.example.com/keyway'), /KEYWAY_EVENTS_URL|pw/)
    for (const query of ['?sslmode=require', '?sslmode=verify-full', '?ssl=true'])
      assert.equal(databaseWarnings(`postgres://me@db.example.com/keyway${query}`), '')
    for (const host of LOCAL_HOSTS) assert.equal(databaseWarnings(`postgres://me@${host}/keyway`), '')
    assert.equal(databaseWarnings('postgres:///keyway?host=/var/run/postgresql'), '')
  })

  test('a separate events URL without TLS causes a warning, for Redis and PostgreSQL', () => {
    assert.match(eventsWarnings('redis://:pw@redis.example.com'), /KEYWAY_EVENTS_URL.*rediss/)
    assert.match(eventsWarnings('postgres://me:pw@db.example.com/keyway'), /KEYWAY_EVENTS_URL.*TLS/)
    for (const url of ['rediss://redis.example.com', 'redis://127.0.0.1', 'redis://localhost:6380'])
      assert.equal(eventsWarnings(url), '')
  })
})

describe('addresses of the service', () => {
  test('plain http needs a loopback host or KEYWAY_INSECURE_HTTP, which causes a warning', () => {
    const plainHttpSettings = {
      ...SMTP_SETTINGS,
      KEYWAY_MAIL_FROM: 'me@example.com',
      KEYWAY_PUBLIC_URL: 'http://keyway.example.com',
    }
    assertMistake(plainHttpSettings, /KEYWAY_PUBLIC_URL must be https/)
    const insecureConfig = loadConfig({ ...plainHttpSettings, KEYWAY_INSECURE_HTTP: 'true' })
    assert.match(configWarnings(insecureConfig).join(), /http/)
    for (const host of ['localhost', '127.0.0.1', '127.8.8.8', '[::1]', 'keyway.localhost'])
      assert.deepEqual(mistakesOf({ KEYWAY_PUBLIC_URL: `http://${host}:8080` }), [])
  })

  test('the public URL must be an origin', () => {
    assert.equal(
      loadConfig({ ...PUBLIC_SETTINGS, KEYWAY_PUBLIC_URL: 'https://Keyway.Example.com/' }).publicUrl,
      'https://keyway.example.com',
    )
    for (const tail of ['/path', '?a=b', '#c'])
      assertMistake(
        { ...PUBLIC_SETTINGS, KEYWAY_PUBLIC_URL: `https://keyway.example.com${tail}` },
        /must be an origin/,
      )
    assertMistake(
      { ...PUBLIC_SETTINGS, KEYWAY_PUBLIC_URL: 'https://u:p@keyway.example.com' },
      /must be an origin/,
    )
  })

  test('the verify URL keeps its own query and must be https', () => {
    const verifyUrl = 'https://app.example.com/verify?theme=dark'
    assert.equal(loadConfig({ ...PUBLIC_SETTINGS, KEYWAY_VERIFY_URL: verifyUrl }).verifyUrl, verifyUrl)
    assertMistake(
      { ...PUBLIC_SETTINGS, KEYWAY_VERIFY_URL: 'http://app.example.com/' },
      /KEYWAY_VERIFY_URL must be https/,
    )
    assertMistake({ ...PUBLIC_SETTINGS, KEYWAY_VERIFY_URL: `${verifyUrl}&token=1` }, /no token in its query/)
  })

  test('KEYWAY_INSECURE_HTTP does not allow plain http for a verify URL elsewhere', () => {
    const insecureSettings = {
      ...PUBLIC_SETTINGS,
      KEYWAY_PUBLIC_URL: 'http://keyway.internal',
      KEYWAY_INSECURE_HTTP: 'true',
    }
    assertMistake(
      { ...insecureSettings, KEYWAY_VERIFY_URL: 'http://app.example.com/verify' },
      /KEYWAY_VERIFY_URL must be https/,
    )
    const ownVerifyUrl = 'http://keyway.internal/verify?theme=dark'
    assert.equal(loadConfig({ ...insecureSettings, KEYWAY_VERIFY_URL: ownVerifyUrl }).verifyUrl, ownVerifyUrl)
    assert.equal(loadConfig(insecureSettings).verifyUrl, 'http://keyway.internal/verify')
  })

  test('a CORS origin must be an origin, and not *', () => {
    const origins = 'https://a.example, https://b.example:8443'
    assert.deepEqual(loadConfig({ KEYWAY_CORS_ORIGINS: origins }).corsOrigins, [
      'https://a.example',
      'https://b.example:8443',
    ])
    assertMistake({ KEYWAY_CORS_ORIGINS: '*' }, /every site/)
    assertMistake({ KEYWAY_CORS_ORIGINS: 'https://a.example/x' }, /must be an origin/)
  })
})

describe('limits', () => {
  test('windows may be in any order and are sorted', () => {
    assert.deepEqual(loadConfig({ KEYWAY_MAGIC_LINK_LIMITS: '50/day, 5/minute' }).magicLinkLimits, [
      { window: 'minute', limit: 5 },
      { window: 'day', limit: 50 },
    ])
  })

  test('two windows may have the same limit', () => {
    assert.deepEqual(loadConfig({ KEYWAY_MAGIC_LINK_LIMITS: '5/minute,5/hour' }).magicLinkLimits, [
      { window: 'minute', limit: 5 },
      { window: 'hour', limit: 5 },
    ])
  })

  test('a limit of 0, a repeated or unknown window, and more per minute than per hour are mistakes', () => {
    assertMistake({ KEYWAY_MAGIC_LINK_LIMITS: '0/minute' }, /at least 1/)
    assertMistake({ KEYWAY_MAGIC_LINK_LIMITS: '5/minute,6/minute' }, /at most once/)
    assertMistake({ KEYWAY_MAGIC_LINK_LIMITS: '5/week' }, /minute, hour or day/)
    assertMistake({ KEYWAY_MAGIC_LINK_LIMITS: '9/minute,3/hour' }, /9 per minute, more than its 3 per hour/)
    assertMistake({ KEYWAY_MAGIC_LINK_LIMITS: ',' }, /at least one window/)
  })

  test('only the network limits can be off', () => {
    assert.equal(loadConfig({ KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off' }).magicLinkNetworkLimits, null)
    assertMistake({ KEYWAY_MAGIC_LINK_LIMITS: 'off' }, /must be numbers/)
  })
})

describe('mail', () => {
  const mailOf = (url: string) => loadConfig({ ...SMTP_SETTINGS, KEYWAY_MAIL_URL: url }).mail

  test('SMTP requires STARTTLS unless the host is loopback or the URL has tls=off', () => {
    const smtp = { kind: 'smtp', secure: false, user: null, password: null }
    assert.deepEqual(mailOf('smtp://mail.example.com'), {
      ...smtp,
      host: 'mail.example.com',
      port: 587,
      requireTls: true,
    })
    assert.deepEqual(mailOf('smtp://mail.example.com:25?tls=off'), {
      ...smtp,
      host: 'mail.example.com',
      port: 25,
      requireTls: false,
    })
    assert.deepEqual(mailOf('smtp://127.0.0.1:2525'), {
      ...smtp,
      host: '127.0.0.1',
      port: 2525,
      requireTls: false,
    })
    assert.deepEqual(mailOf('smtps://mail.example.com'), {
      ...smtp,
      host: 'mail.example.com',
      port: 465,
      secure: true,
      requireTls: false,
    })
  })

  test('user and password are percent-decoded', () => {
    const mail = mailOf('smtp://me%40example.com:p%3Aw%2F%25@mail.example.com')
    assert.ok(mail.kind === 'smtp')
    assert.equal(mail.user, 'me@example.com')
    assert.equal(mail.password, 'p:w/%')
  })

  test('provider keys keep their letter case', () => {
    assert.deepEqual(mailOf('resend://re_AbC'), { kind: 'resend', key: 're_AbC' })
    assert.deepEqual(mailOf('postmark://AbC-1'), { kind: 'postmark', token: 'AbC-1' })
  })

  test('other mail URLs are mistakes', () => {
    for (const url of [
      'mail.example.com',
      'http://mail.example.com',
      'smtp://',
      'smtp://h?tls=no',
      'smtp://h/path',
    ])
      assertMistake({ ...SMTP_SETTINGS, KEYWAY_MAIL_URL: url }, /^KEYWAY_MAIL_URL /)
  })

  test('the local inbox needs a loopback public URL', () => {
    assertMistake({ KEYWAY_PUBLIC_URL: 'https://keyway.example.com' }, /inbox:/)
  })

  test('a support address is required unless mail goes to the inbox', () => {
    assertMistake({ KEYWAY_MAIL_URL: 'smtp://mail.example.com' }, /KEYWAY_SUPPORT_EMAIL is missing/)
  })

  test('the sender must be an address with or without a name', () => {
    const senderOf = (text: string) => loadConfig({ KEYWAY_MAIL_FROM: text }).mailFrom
    assert.deepEqual(senderOf('Ada & Co <a@example.com>'), { name: 'Ada & Co', address: 'a@example.com' })
    assert.deepEqual(senderOf('"Ada, Inc" <a@example.com>'), { name: 'Ada, Inc', address: 'a@example.com' })
    assert.deepEqual(senderOf('a@example.com'), { name: 'Keyway', address: 'a@example.com' })
    assertMistake({ KEYWAY_MAIL_FROM: 'x\r\nBcc: y <a@example.com>' }, /must be an address/)
  })
})

describe('database and secret', () => {
  const postgres = { KEYWAY_DATABASE_URL: 'postgres://u:p@db.example.com/keyway' }

  test('PostgreSQL requires a secret, and is the event carrier by default', () => {
    assertMistake(postgres, /KEYWAY_SECRET is missing/)
    const config = loadConfig({ ...postgres, KEYWAY_SECRET: SECRET })
    assert.deepEqual(config.events, { kind: 'postgres', url: postgres.KEYWAY_DATABASE_URL })
    assert.equal(config.journalDir, null)
    const eventsSettings = { KEYWAY_EVENTS_URL: 'redis://events.example.com' }
    assert.equal(loadConfig({ ...postgres, ...eventsSettings, KEYWAY_SECRET: SECRET }).events.kind, 'redis')
  })

  test('a secret must be base64 of at least 32 bytes; several are comma separated', () => {
    const shortSecret = Buffer.alloc(31).toString('base64')
    assertMistake({ KEYWAY_SECRET: shortSecret }, /at least 32 random bytes/)
    assertMistake({ KEYWAY_SECRET: `${SECRET},not base64 at all, is it? no, no, no` }, /base64/)
    const secondSecret = Buffer.alloc(40, 2).toString('base64url')
    assert.deepEqual(loadConfig({ KEYWAY_SECRET: `${SECRET}, ${secondSecret}` }).secrets, [
      Buffer.alloc(32, 1),
      Buffer.alloc(40, 2),
    ])
  })
})
