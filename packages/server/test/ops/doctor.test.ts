import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { MIN_FORWARDED_REQUESTS } from '../../src/http/proxy-watch.ts'
import { newId } from '../../src/ids.ts'
import { createSecrets } from '../../src/secrets.ts'
import type { Services } from '../../src/services.ts'
import type { EmailAddress } from '../../src/users/email-address.ts'
import { freePort } from '../support/free-port.ts'
import { createJourney } from '../support/journey.ts'
import { runCommand } from './command.ts'
import { startKeyway } from './running.ts'

interface Finding {
  check: string
  ok: boolean
  detail: string
}

/** Runs doctor on services in which `change` has replaced something, and returns its findings. */
async function examine(t: TestContext, change: (services: Services) => Partial<Services> = () => ({})) {
  const { services, url } = await startKeyway(t)
  const { status, data, text } = await runCommand({ ...services, ...change(services) } as Services, 'doctor')
  const findings: Finding[] = data.findings
  const problems = findings.filter(({ ok }) => !ok)
  return { status, text, findings, wrong: problems, url }
}

function withConfig(change: Partial<Services['config']>) {
  return ({ config }: Services) => ({ config: { ...config, ...change } })
}

/** Sets the database only in the settings that doctor checks; the service itself uses SQLite. */
function withDatabase(url: string) {
  return ({ config }: Services) => ({
    config: { ...config, database: { engine: 'postgres' as const, url } },
  })
}

test('doctor reports all checks and no problem on a healthy service', async t => {
  const { status, findings, wrong: problems, text } = await examine(t)
  assert.deepEqual(problems, [])
  assert.equal(status, 0)
  const reportedChecks = findings.map(({ check }) => check)
  const expectedChecks = [
    'data directory',
    'database',
    'clock',
    'secrets',
    'signing keys',
    'mail',
    'public URL',
    'proxies',
  ]
  assert.deepEqual(
    expectedChecks.filter(check => !reportedChecks.includes(check)),
    [],
  )
  assert.match(text, /^ok {4}data directory: /)
})

test('doctor reports a public URL that does not answer or is another service', async t => {
  const unusedUrl = `http://localhost:${await freePort()}`
  const unreachableUrlReport = await examine(t, withConfig({ publicUrl: unusedUrl }))
  assert.equal(unreachableUrlReport.status, 1)
  assert.deepEqual(
    unreachableUrlReport.wrong.map(({ check }) => check),
    ['public URL'],
  )
  assert.match(unreachableUrlReport.wrong[0]!.detail, /ECONNREFUSED.*service runs/)

  const otherService = await startKeyway(t)
  const otherServiceReport = await examine(t, withConfig({ publicUrl: otherService.url }))
  assert.match(otherServiceReport.wrong[0]!.detail, /another service/)

  const otherServer = createServer((_, response) => response.end('<h1>Welcome to nginx</h1>')).listen(0)
  t.after(() => otherServer.close())
  const page = `http://localhost:${(otherServer.address() as AddressInfo).port}`
  const otherServerReport = await examine(t, withConfig({ publicUrl: page }))
  assert.match(otherServerReport.wrong[0]!.detail, /not a response of this service/)
})

test('doctor reports an unlisted proxy, by the settings and by requests', async t => {
  const trustAllReport = await examine(t, withConfig({ trustedProxies: ['0.0.0.0/0'] }))
  assert.match(trustAllReport.wrong[0]!.detail, /evade every limit/)
  const httpsReport = await examine(t, withConfig({ publicUrl: 'https://keyway.example' }))
  assert.ok(
    httpsReport.wrong.some(
      ({ check, detail }) => check === 'proxies' && /KEYWAY_TRUSTED_PROXIES/.test(detail),
    ),
  )

  const { services, url } = await startKeyway(t)
  for (let request = 0; request < MIN_FORWARDED_REQUESTS; request++)
    await fetch(`${url}/v1/me`, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  const { data } = await runCommand(services, 'doctor')
  const readinessFinding = data.findings.find(({ check }: Finding) => check === 'readiness, trusted proxies')
  assert.match(readinessFinding.detail, /KEYWAY_TRUSTED_PROXIES/)
})

test('doctor reports a remote database without TLS, which is no failure in a container network', async t => {
  const unencryptedReport = await examine(t, withDatabase('postgres://me:pw@db.example.com/keyway'))
  assert.match(unencryptedReport.wrong[0]!.detail, /KEYWAY_DATABASE_URL.*TLS/)
  assert.equal(unencryptedReport.status, 1)
  const containerNetworkReport = await examine(t, withDatabase('postgres://me:pw@postgres/keyway'))
  assert.deepEqual(containerNetworkReport.wrong, [])
  assert.match(containerNetworkReport.text, /^ok {4}settings: KEYWAY_DATABASE_URL.*TLS/m)
  assert.equal(containerNetworkReport.status, 0)
})

test('doctor reports a data directory that others can read, and differing clocks', async t => {
  const { services } = await startKeyway(t)
  chmodSync(services.config.dataDir, 0o755)
  const readableFolderReport = await runCommand(services, 'doctor')
  assert.match(readableFolderReport.text, /LOOK {2}data directory: .*chmod -R go=/)
  chmodSync(services.config.dataDir, 0o700)
  const clock = {
    now: () => services.clock.now(),
    synchronize: async () => {},
    remainingOffset: 0,
    skew: -90_000,
  }
  const skewReport = await runCommand({ ...services, clock }, 'doctor')
  assert.match(skewReport.text, /LOOK {2}clock: .*90000 ms/)
})

test('doctor counts values sealed with an older or an unknown secret, and says what to do', async t => {
  const { services, url } = await startKeyway(t)
  await createJourney(url).sendLink('ada@example.com')
  const newSecret = Buffer.alloc(32, 1)
  const newAndOldSecrets = createSecrets([newSecret, ...services.config.secrets])
  const olderSecretReport = await runCommand({ ...services, secrets: newAndOldSecrets }, 'doctor')
  assert.match(olderSecretReport.text, /LOOK {2}secrets: \d+ stored values .*keys reseal/)
  const unknownSecretReport = await runCommand({ ...services, secrets: createSecrets([newSecret]) }, 'doctor')
  assert.match(
    unknownSecretReport.text,
    /LOOK {2}secrets: \d+ stored values were encrypted with a secret that KEYWAY_SECRET does not list/,
  )
  const oldAndNewSecrets = createSecrets([...services.config.secrets, newSecret])
  const spareSecretReport = await runCommand({ ...services, secrets: oldAndNewSecrets }, 'doctor')
  assert.match(spareSecretReport.text, /ok {4}secrets: .*can be removed/)
})

test('doctor reports a refused mail login and a stuck mail queue, without the password', async t => {
  const mail = {
    kind: 'smtp' as const,
    host: '127.0.0.1',
    port: await freePort(),
    secure: false,
    requireTls: false,
    user: 'keyway',
    password: 'smtp-pass-phrase',
  }
  const { wrong: problems, text } = await examine(t, withConfig({ mail }))
  assert.match(problems.find(({ check }) => check === 'mail')!.detail, /KEYWAY_MAIL_URL/)
  assert.doesNotMatch(text, /smtp-pass-phrase/)

  const lateMailReport = await examine(t, services => ({
    storage: {
      ...services.storage,
      store: {
        ...services.storage.store,
        outbox: {
          ...services.storage.store.outbox,
          depth: async now => ({ queued: 3, oldestDueAt: now - 120_000 }),
        },
      },
    },
  }))
  assert.match(lateMailReport.wrong[0]!.detail, /3 queued mails has waited for 120 s/)
})

test('doctor reports an audit that somebody changed in the database', async t => {
  const { services } = await startKeyway(t)
  const { user } = await createUser(services)
  await services.users.suspend(user, BY_COMMAND_LINE)
  await services.users.activate(user, BY_COMMAND_LINE)
  const check = async () => {
    const { data } = await runCommand(services, 'doctor')
    return (data.findings as Finding[]).find(each => each.check === 'audit')!
  }
  assert.deepEqual(await check(), {
    check: 'audit',
    ok: true,
    detail: '2 rows without a gap, the last not sealed yet',
  })
  await services.auditKeeping.seal()
  assert.equal((await check()).detail, '2 rows without a gap')
  const { connection } = services.storage.engine
  await connection.execute('drop trigger audit_events_no_update', [])
  await connection.execute("update audit_events set type = 'user.read' where sequence = 1", [])
  const { ok, detail } = await check()
  assert.equal(ok, false)
  assert.match(detail, /^row 1 was changed\. .*"audit head"/)
})

test('doctor names a webhook that was disabled after failures, or for which events wait too long', async t => {
  const { services } = await startKeyway(t, { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' })
  const check = async () => {
    const { data } = await runCommand(services, 'doctor')
    return (data.findings as Finding[]).find(each => each.check === 'webhooks')!
  }
  assert.deepEqual(await check(), { check: 'webhooks', ok: true, detail: 'none' })
  const webhooks = await services.webhooks()
  const newWebhook = { url: 'http://127.0.0.1:1/', events: ['user.updated' as const] }
  const { webhook } = await webhooks.create(newWebhook, BY_COMMAND_LINE)
  assert.equal((await check()).detail, '1, 0 events waiting')
  await webhooks.change(webhook.id, { enabled: false }, BY_COMMAND_LINE)
  assert.equal((await check()).ok, true, 'somebody did that on purpose')
  const { store } = services.storage
  await store.webhooks.update(webhook.id, { disabledBy: 'failures' })
  const disabledFinding = await check()
  assert.equal(disabledFinding.ok, false)
  assert.match(disabledFinding.detail, /^127\.0\.0\.1:1 \(.*\) accepted nothing.*\/admin\/webhooks/)

  const at = services.clock.now() - 61 * 60_000
  await webhooks.change(webhook.id, { enabled: true }, BY_COMMAND_LINE)
  const subject = { type: 'user', id: newId(at) } as const
  await services.storage.transaction(async tx => tx.announce({ type: 'user.updated', subject, at, data: {} }))
  const lateEventsFinding = await check()
  assert.equal(lateEventsFinding.ok, false)
  assert.match(lateEventsFinding.detail, /^1 events wait .* the oldest for 61 minutes/)
})

async function createUser({ storage, clock }: Services): Promise<{ user: string }> {
  const user = newId(clock.now())
  await storage.store.users.insert({
    id: user,
    email: 'ada@example.com' as EmailAddress,
    name: null,
    role: 'user',
    locale: null,
    status: 'active',
    deletesAt: null,
    createdAt: clock.now(),
  })
  return { user }
}
