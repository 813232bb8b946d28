import { appendFileSync, chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { changeBackup } from '../backup/files.ts'
import type { EngineName } from '../support/engines.ts'
import { startSmtpServer } from '../support/smtp.ts'
import {
  BOTH_ENGINES,
  type CleanUps,
  command,
  expectEqual,
  expectTrue,
  freshSettings,
  moduleOf,
  output,
  probe,
  start,
  startWith,
} from './checkout.ts'

const HOUR = 3_600_000
const SQLITE_ONLY = ['sqlite'] as const

probe('6', 'time goes on after the system clock was stepped back', SQLITE_ONLY, async () => {
  const { createClock } = await moduleOf('clock.ts')
  const clock = createClock('system')
  await clock.synchronize(async () => Date.now())
  const timeBefore = clock.now()
  await clock.synchronize(async () => Date.now() - HOUR)
  await wait(200)
  const passedMs = clock.now() - timeBefore
  expectTrue(passedMs > 0 && passedMs < HOUR / 2, `${passedMs} ms passed in 200`)
})

probe('7', 'a changed backup is refused', BOTH_ENGINES, async (engine, t) => {
  const { file } = await backUpNewService(engine, t)
  const changedFile = `${file}.changed`
  changeBackup(file, changedFile, rows => rows.map(row => row.replace('"role":"user"', '"role":"admin"')))
  const { status, out } = await command(await freshSettings(engine, t), 'restore', changedFile)
  expectEqual(1, status, `the exit status of a restore (${out.split('\n')[0]})`)
})

probe('7', 'a forged line of a journal is refused', BOTH_ENGINES, async (engine, t) => {
  const { file, settings, userId } = await backUpNewService(engine, t)
  const journal = settings.KEYWAY_JOURNAL_DIR!
  const [name = ''] = readdirSync(journal)
  const forgedEntry = { type: 'user', at: Date.now(), id: userId, status: 'suspended' }
  appendFileSync(join(journal, name), `${JSON.stringify(forgedEntry)}\n`)
  const target = await freshSettings(engine, t)
  const { status, out } = await command(target, 'restore', file, '--journal', journal)
  expectEqual(1, status, `the exit status of a restore (${out.split('\n')[0]})`)
})

probe(
  '10',
  'files in an existing data directory are not readable for others',
  SQLITE_ONLY,
  async (engine, t) => {
    const settings = await freshSettings(engine, t)
    const folder = settings.KEYWAY_DATA_DIR!
    chmodSync(folder, 0o755)
    await startWith(settings, t)
    const readableFiles = readdirSync(folder).filter(name => {
      const file = statSync(join(folder, name))
      return file.isFile() && (file.mode & 0o077) !== 0
    })
    expectEqual([], readableFiles, 'readable files')
  },
)

probe(
  '12',
  'a restore with the journal revives no replaced secret of an app',
  BOTH_ENGINES,
  async (engine, t) => {
    const settings = await freshSettings(engine, t)
    const server = await startWith(settings, t)
    await output(settings, 'apps', 'add', 'shop', '--name', 'Shop')
    const createSecret = async () => (await output(settings, 'apps', 'secret', 'shop')).trim()
    const replacedSecret = await createSecret()
    const file = await backupOf(settings)
    for (let n = 0; n < 2; n++) await createSecret()
    await server.end('SIGTERM')
    const restoredSettings = await restore(engine, t, settings, file)
    const restoredServer = await startWith(restoredSettings, t)
    const headers = { Authorization: `Basic ${btoa(`shop:${replacedSecret}`)}` }
    const { status } = await restoredServer.post('/auth/introspect', { token: 'x' }, headers)
    expectEqual(401, status, 'a call with the replaced secret')
  },
)

probe('12', 'a restore with the journal undoes no demotion', BOTH_ENGINES, async (engine, t) => {
  const settings = await freshSettings(engine, t)
  const server = await startWith(settings, t)
  // There are two administrators, since the last one cannot be demoted.
  for (const email of ['bob@example.com', 'ann@example.com']) {
    await server.signIn(email)
    await output(settings, 'users', 'set-role', email, 'admin')
  }
  const file = await backupOf(settings)
  await output(settings, 'users', 'set-role', 'ann@example.com', 'user')
  await server.end('SIGTERM')
  const restoredSettings = await restore(engine, t, settings, file)
  const people = JSON.parse(await output(restoredSettings, 'users', 'list', '--json')).data
  const ann = people.find(({ email }: { email: string }) => email === 'ann@example.com')
  expectEqual('user', ann.role, 'the role of a demoted person')
})

probe(
  '14',
  'a start behind the last heartbeat of a killed process serves',
  SQLITE_ONLY,
  async (engine, t) => {
    const settings = await freshSettings(engine, t)
    await (await startWith(settings, t)).end('SIGKILL')
    const database = new DatabaseSync(join(settings.KEYWAY_DATA_DIR!, 'keyway.db'))
    database.exec(`update nodes set seen_at = seen_at + ${HOUR}`)
    database.close()
    const outcome = await startWith(settings, t).then(
      () => 'serves',
      (error: Error) => error.message.split('\n')[0],
    )
    expectEqual('serves', outcome, 'the second start')
  },
)

probe('15', '"mail test" sees that a running server sent the mail', ['postgres'], async (engine, t) => {
  const smtp = await startSmtpServer(t as TestContext)
  const { path, KEYWAY_MAIL_URL } = {
    path: join((await freshSettings('sqlite', t)).KEYWAY_DATA_DIR!, 'ca'),
    KEYWAY_MAIL_URL: `smtp://127.0.0.1:${smtp.port}?tls=off`,
  }
  writeFileSync(path, smtp.certificate)
  const server = await start(engine, t, { KEYWAY_MAIL_URL, KEYWAY_SUPPORT_EMAIL: 'help@example.com' })
  const statuses = []
  for (let n = 0; n < 6; n++)
    statuses.push((await command(server.settings, 'mail', 'test', 'ada@example.com')).status)
  await smtp.received(6)
  expectEqual([0], [...new Set(statuses)], 'exit statuses of six that arrived')
})

probe('15', 'a slow answer of the database does not push the clock forward', ['postgres'], async () => {
  const { createClock } = await moduleOf('clock.ts')
  const clock = createClock('database')
  let calls = 0
  let maxAheadMs = 0
  await clock.synchronize(async () => {
    maxAheadMs = Math.max(maxAheadMs, clock.now() - Date.now())
    if (calls++ === 0) await wait(1000) // The query is slow: the time that it returns is a second later than its start.
    return Date.now()
  })
  expectTrue(maxAheadMs < 200, `the clock was ${maxAheadMs} ms ahead`)
})

for (const [name, settings] of [
  ['PostgreSQL', { KEYWAY_DATABASE_URL: 'postgres://keyway:word@db.example.com/keyway' }],
  [
    'redis://',
    {
      KEYWAY_DATABASE_URL: 'postgres://keyway@127.0.0.1/keyway',
      KEYWAY_EVENTS_URL: 'redis://redis.example.com:6379',
    },
  ],
] as const)
  probe('16', `a remote ${name} without TLS causes a warning`, ['postgres'], async (_, t) => {
    const { KEYWAY_DATABASE_URL: __, ...base } = await freshSettings('sqlite', t)
    const warnings = await output({ ...base, ...settings }, 'check-config')
    expectTrue(/Warning: .*TLS/.test(warnings), `a warning in: ${warnings.replaceAll('\n', ' ')}`)
  })

/** A backup of a service with one account. */
async function backUpNewService(engine: EngineName, t: CleanUps) {
  const settings = await freshSettings(engine, t)
  const server = await startWith(settings, t)
  const token = await server.signIn('ann@example.com')
  const userId: string = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()).sub
  const file = await backupOf(settings)
  await server.end('SIGTERM')
  return { settings, file, userId }
}

async function backupOf(settings: Record<string, string>): Promise<string> {
  const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
  await output(settings, 'backup', file)
  return file
}

/** Restores a backup with the journal of its service into a new data folder; returns the new settings. */
async function restore(
  engine: EngineName,
  t: CleanUps,
  { KEYWAY_JOURNAL_DIR }: Record<string, string>,
  file: string,
) {
  const settings = await freshSettings(engine, t)
  await output(settings, 'restore', file, '--journal', KEYWAY_JOURNAL_DIR!)
  return settings
}
