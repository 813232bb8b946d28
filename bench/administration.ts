import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startCluster } from '../packages/server/test/support/postgres.ts'
import { fillAdministration } from './support/administration-data.ts'
import { executeSql, postgresDatabase, SECRET } from './support/databases.ts'
import { pinBench } from './support/machine.ts'
import { accountId, addPeoplePostgres, pageCookieOf, refreshTokenOf } from './support/people.ts'
import { startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median } from './support/statistics.ts'

/**
 * Measures every list and search of administrators with very many people and keys on PostgreSQL, one request at a time.
 * Ten million people with twenty million keys need 25 GB in KEYWAY_BENCH_DIR and a quarter of an hour to create.
 * `--people=N` chooses another number, `--fill` only creates them and waits for SIGTERM, and `--database=URL` measures
 * a database that `--fill` created.
 */

const PEOPLE = Number(option('people') ?? (QUICK ? 100_000 : 10_000_000))
const KEYS_PER_PERSON = 2
const ROUNDS = 15
const MAX_MEDIAN_MS = 100
/** PostgreSQL's settings of a small server; `wal_level=minimal`, so that filling the tables writes no WAL. */
const SETTINGS = [
  ...['shared_buffers=1GB', 'maintenance_work_mem=1GB', 'work_mem=16MB'],
  ...['wal_level=minimal', 'max_wal_senders=0', 'max_wal_size=4GB'],
]
/** The number of the administrator's account, outside the range of the generated people. */
const ADMIN_NUMBER = 0xffff_ffff_ff

pinBench()
await using stack = new AsyncDisposableStack()
const url = option('database') ?? (await fill())
if (process.argv.includes('--fill')) {
  console.log(`node bench/administration.ts --people=${PEOPLE} --database=${url}`)
  // Keeps the process alive, and with it the database that it started.
  const keepAlive = setInterval(() => {}, 1000)
  await once(process, 'SIGTERM')
  clearInterval(keepAlive)
  process.exit()
}
// Each run of this program gets a new session, since a refresh token can be used once.
await executeSql(url, `delete from sessions where user_id = '${accountId(ADMIN_NUMBER)}'`)
await addPeoplePostgres(url, { from: ADMIN_NUMBER, to: ADMIN_NUMBER + 1, session: true, pageSession: true })
const sizes = await queryRow(
  `select pg_size_pretty(pg_total_relation_size('users')) as people, pg_size_pretty(pg_total_relation_size('api_keys')) as keys`,
)
console.log('tables with indexes', sizes)

await using server = await startKeyway({
  KEYWAY_DATABASE_URL: url,
  KEYWAY_SECRET: SECRET,
  KEYWAY_DATA_DIR: mkdtempSync(join(tmpdir(), 'keyway-bench-')),
})
const origin = `http://127.0.0.1:${server.port}`
const headers = {
  authorization: `Bearer ${await accessToken()}`,
  cookie: `keyway_session=${pageCookieOf(ADMIN_NUMBER)}`,
  accept: 'application/json, text/html',
}
const rows: Row[] = []
const targets: Target[] = []
for (const [list, pathOf] of Object.entries(paths())) {
  const times: number[] = []
  for (let round = -1; round < ROUNDS; round++) {
    const startedAt = performance.now()
    const answer = await fetch(origin + pathOf(round + 1), { headers })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${pathOf(round + 1)}: ${answer.status} ${text.slice(0, 200)}`)
    if (round >= 0) times.push(performance.now() - startedAt)
  }
  rows.push({ list, 'median ms': median(times), 'slowest ms': Math.max(...times) })
  const isReached = median(times) < MAX_MEDIAN_MS
  targets.push({
    what: list,
    wanted: `< ${MAX_MEDIAN_MS} ms`,
    measured: `${median(times).toFixed(1)} ms`,
    reached: isReached,
  })
}
const size = `${PEOPLE.toLocaleString('en')} people and ${(PEOPLE * KEYS_PER_PERSON).toLocaleString('en')} keys`
report('administration', { [`Lists of administrators with ${size}, one at a time`]: rows }, targets)

async function fill(): Promise<string> {
  const cluster = await startCluster({ root: process.env.KEYWAY_BENCH_DIR, settings: SETTINGS })
  stack.defer(cluster.stop)
  process.env.KEYWAY_TEST_POSTGRES_URL = cluster.url
  const database = stack.use(await postgresDatabase(1))
  const databaseUrl = database.settings.KEYWAY_DATABASE_URL!
  await fillAdministration(databaseUrl, { people: PEOPLE, keysPerPerson: KEYS_PER_PERSON })
  await addPeoplePostgres(databaseUrl, { from: ADMIN_NUMBER, to: ADMIN_NUMBER + 1, account: true })
  await executeSql(databaseUrl, `update users set role = 'admin' where id = '${accountId(ADMIN_NUMBER)}'`)
  return databaseUrl
}

function option(name: string): string | undefined {
  return process.argv.find(each => each.startsWith(`--${name}=`))?.slice(name.length + 3)
}

/** The path of each list in its nth call. Most searches have another value in each call, so that none is cached. */
function paths(): Record<string, (n: number) => string> {
  const apiPath = (path: string) => (n: number) => `/v1/admin${path.replace('N', String(n))}`
  const person = (n: number) => accountId(1 + ((n * 7919) % PEOPLE))
  const daysFromNow = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  return {
    'people, newest first': apiPath('/users'),
    'people, oldest first': apiPath('/users?sort=created_at'),
    'people, by the beginning of the address': n => `/v1/admin/users?query=heidi.tanaka${n + 1}`,
    'people, by two characters': n => `/v1/admin/users?query=${'abcdefghijklmnop'[n]}e`,
    'people, by a rare part of the address': n => `/v1/admin/users?query=${4_000_001 + n}`,
    'people, by a common part of the address': apiPath('/users?query=smith'),
    'people, by a part that none has': n => `/v1/admin/users?query=zyx${n}q`,
    'people, by a domain': n => `/v1/admin/users?query=@company${n + 100}.example`,
    'people, by the domain of a third of them': apiPath('/users?query=@mail.example'),
    'people, by id': n => `/v1/admin/users?query=${person(n)}`,
    'people, by the prefix of a key': n => `/v1/admin/users?query=svc_${'abcdefghijklmnop'[n]}x`,
    'people, suspended': apiPath('/users?status=suspended'),
    'people, deleted': apiPath('/users?status=deleted'),
    'people, support': apiPath('/users?role=support'),
    'people, suspended, by address': apiPath('/users?status=suspended&query=ann'),
    'one person': n => `/v1/admin/users/${person(n)}`,
    "a person's keys": n => `/v1/admin/users/${person(n)}/api-keys`,
    'keys, newest first': apiPath('/api-keys'),
    'keys, by prefix': n => `/v1/admin/api-keys?prefix=svc_${'abcdefghijklmnop'[n]}bc`,
    'keys, by external id': n => `/v1/admin/api-keys?external_id=customer-${n * 999 + 1}`,
    'keys, unused for 90 days': () => `/v1/admin/api-keys?unused_since=${daysFromNow(-90)}`,
    'keys, never expiring': apiPath('/api-keys?never_expires=true'),
    'keys, expiring in 14 days': () => `/v1/admin/api-keys?expires_before=${daysFromNow(14)}`,
    'keys, never expiring and unused': () =>
      `/v1/admin/api-keys?never_expires=true&unused_since=${daysFromNow(-90)}`,
    'keys, against the policies': apiPath('/api-keys?violates_policy=true'),
    agents: apiPath('/agents'),
    apps: apiPath('/apps'),
    mails: apiPath('/mails'),
    'mails, failed': apiPath('/mails?state=failed'),
    audit: apiPath('/audit-events'),
    'audit, by type': apiPath('/audit-events?type=user.suspended'),
    'audit, by actor': n => `/v1/admin/audit-events?actor=${accountId(1 + n)}`,
    'audit, by subject': n => `/v1/admin/audit-events?subject=${person(n)}`,
    'audit, by time': () => `/v1/admin/audit-events?from=${daysFromNow(-300)}&to=${daysFromNow(-200)}`,
    statistics: apiPath('/statistics'),
    'page /admin': () => '/admin',
    'page /admin/users': () => '/admin/users',
    'page of a person': n => `/admin/users/${person(n)}`,
    'page /admin/keys': () => '/admin/keys?filter=unused',
    'page /admin/mails': () => '/admin/mails?state=failed',
    'page /admin/audit': () => '/admin/audit',
  }
}

async function queryRow(statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
    .query(statement)
    .then(({ rows: [row] }) => row)
    .finally(() => client.end())
}

async function accessToken(): Promise<string> {
  const answer = await fetch(`${origin}/auth/refresh`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: refreshTokenOf(ADMIN_NUMBER) }),
  })
  return ((await answer.json()) as { access_token: string }).access_token
}
