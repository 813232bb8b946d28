import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadConfig } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { openServices, type Services } from '../packages/server/src/services.ts'
import { address, caller } from '../packages/server/test/support/services.ts'
import { type BenchDatabase, exchangeBodies, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { type Load, type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import {
  addPeoplePostgres,
  addPeopleSqlite,
  addressOf,
  linkTokenHashOf,
  linkTokenOf,
  type People,
  refreshTokenOf,
} from './support/people.ts'
import { type RunningProcess, startKeyway, startProgram } from './support/processes.ts'
import { createReplayer, type RecordedStatement, recordPostgres, recordSqlite } from './support/recording.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { startSilentMail } from './support/silent-mail.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures each call of a sign-in, compared with the unavoidable work for it, mostly its SQL statements
 * (support/sql-floor.ts), and on SQLite the effect of shared commits.
 */

const ROUNDS = QUICK ? 3 : 5
const RUN_MS = QUICK ? 1000 : 2000
const WARM_UP_MS = 300
/** Upper bounds of calls a second, by kind. They decide how many users are created for each run. */
const MOST_PER_SECOND = { send: 8000, verify: 4000, refresh: 16_000 }
const UNLIMITED_SETTINGS = {
  KEYWAY_MAGIC_LINK_LIMITS: '1000000/minute',
  KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
}
const SLOW_COMMIT_MODULE = new URL('./support/slow-commit.mjs', import.meta.url).pathname
const SLOW_COMMIT_MS = 10
/** Milliseconds added to each commit: none, the time of a durable write to a local disk, and to a slow cloud volume. */
const ADDED_COMMIT_MS = [0, 5, SLOW_COMMIT_MS]
const CONCURRENCY = 64

interface Call {
  path: string
  /** What must exist for each user before the call: a link, an account or a session. */
  needs: Omit<People, 'from' | 'to'>
  body(n: number): unknown
  inProcess(services: Services, n: number): Promise<unknown>
  answerBytes: number
  mostPerSecond: number
}

const VERIFY = {
  path: '/auth/verify-magic-link',
  body: (n: number) => ({ token: linkTokenOf(n), email: addressOf(n) }),
  inProcess: (services: Services, n: number) =>
    services.magicLinks.verify({ token: linkTokenOf(n), email: address(addressOf(n)) }, 'api', caller()),
  answerBytes: 800,
  mostPerSecond: MOST_PER_SECOND.verify,
}
const CALLS: Record<string, Call> = {
  send: {
    path: '/auth/send-magic-link',
    needs: {},
    body: n => ({ email: addressOf(n) }),
    inProcess: (services, n) =>
      services.magicLinks.send({ email: address(addressOf(n)), appId: 'console' }, caller()),
    answerBytes: 80,
    mostPerSecond: MOST_PER_SECOND.send,
  },
  'verify, new account': { ...VERIFY, needs: { link: true } },
  'verify, known account': { ...VERIFY, needs: { link: true, account: true } },
  refresh: {
    path: '/auth/refresh',
    needs: { account: true, session: true },
    body: n => ({ refresh_token: refreshTokenOf(n) }),
    inProcess: (services, n) => services.sessions.refresh(refreshTokenOf(n), null, caller()),
    answerBytes: 800,
    mostPerSecond: MOST_PER_SECOND.refresh,
  },
}

pinBench()
await using mail = await startSilentMail()
await using load = await startLoad()
const targets: Target[] = []
const tables = { 'On PostgreSQL, 32 connections': await measureOnPostgres(), ...(await measureOnSqlite()) }
report('sign-in', tables, targets)

async function measureOnPostgres(): Promise<Row[]> {
  const rows: Row[] = []
  for (const [name, call] of Object.entries(CALLS)) {
    await using database = await postgresDatabase(100)
    await using floorDatabase = await postgresDatabase(100)
    const settings = { ...database.settings, ...UNLIMITED_SETTINGS, ...mail.settings }
    const people = numberGenerator()
    const number = people.next(1).from
    await addPeoplePostgres(urlOf(floorDatabase), { ...call.needs, from: number, to: number + 1 })
    const statements = await record(floorDatabase, call, number)
    await using floor = await startSqlFloor(floorDatabase, call, number, statements)
    await using server = await startKeyway(settings)

    const runs: { server: Measurement[]; floor: Measurement[] } = { server: [], floor: [] }
    for (let round = -1; round < ROUNDS; round++) {
      const range = people.next(peopleOf(call))
      await addPeoplePostgres(urlOf(database), { ...call.needs, ...range })
      await addPeoplePostgres(urlOf(floorDatabase), { ...call.needs, ...range })
      const floorRun = await run(
        load,
        floor,
        '/',
        bodiesOf(range, n => ({ n, pad: call.body(n) })),
        32,
      )
      const serverRun = await run(load, server, call.path, bodiesOf(range, call.body), 32)
      // The first round is the warm-up.
      if (round >= 0) {
        runs.floor.push(floorRun)
        runs.server.push(serverRun)
      }
    }
    const ratios = runs.server.map((serverRun, round) => serverRun.perSecond / runs.floor[round]!.perSecond)
    rows.push({
      '': name,
      statements: statements.length,
      'requests/s': Math.round(median(runs.server.map(each => each.perSecond))),
      'CPU µs': median(runs.server.map(each => each.cpuMicroseconds)),
      'p99 ms': median(runs.server.map(each => each.p99)),
      'floor, requests/s': Math.round(median(runs.floor.map(each => each.perSecond))),
      'floor, CPU µs': median(runs.floor.map(each => each.cpuMicroseconds)),
      'of the floor': spread(ratios),
    })
    if (name === 'verify, new account') {
      targets.push({
        what: 'verify of a new account on postgres, of the floor',
        wanted: '≥ 0.50',
        measured: spread(ratios),
        reached: median(ratios) >= 0.5,
      })
    }
  }
  return rows
}

/** Records the SQL statements of one call, made in this process. */
async function record(database: BenchDatabase, call: Call, number: number): Promise<RecordedStatement[]> {
  const services = await openServices(configOf(database), createLog('error'))
  try {
    // The call is made once before it is recorded, since the first call fills caches.
    const unrecordedNumber = number + 1_000_000_000
    await addPeoplePostgres(urlOf(database), {
      ...call.needs,
      from: unrecordedNumber,
      to: unrecordedNumber + 1,
    })
    await call.inProcess(services, unrecordedNumber)
    return await recordPostgres(() => call.inProcess(services, number))
  } finally {
    await services.close()
  }
}

async function startSqlFloor(
  database: BenchDatabase,
  call: Call,
  number: number,
  statements: RecordedStatement[],
): Promise<RunningProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-bench-plan-'))
  const file = join(folder, 'plan.json')
  writeFileSync(
    file,
    JSON.stringify({ url: urlOf(database), number, statements, answerBytes: call.answerBytes }),
  )
  const floor = await startProgram('./sql-floor.ts', [file])
  rmSync(folder, { recursive: true })
  return floor
}

async function measureOnSqlite(): Promise<Record<string, Row[]>> {
  const call = CALLS['verify, new account']!
  const rows: Row[] = []
  const latencies: Row[] = []
  for (const addedMs of ADDED_COMMIT_MS) {
    const result = await measureSharedCommits(call, addedMs)
    rows.push(result.row)
    latencies.push(...result.latencies)
  }
  return {
    'On SQLite, verify of a new account': rows,
    [`Exchanges at half load beside 100 verifies a second, commits of ${SLOW_COMMIT_MS} ms`]: latencies,
  }
}

async function measureSharedCommits(call: Call, commitMs: number) {
  await using database = await sqliteDatabase(1000)
  const people = numberGenerator()
  const bareRun = await measureBareCommits(database, call, people, commitMs)
  await using server = await startKeyway(
    {
      ...database.settings,
      ...UNLIMITED_SETTINGS,
      ...mail.settings,
      ...(commitMs ? { BENCH_COMMIT_MS: String(commitMs) } : {}),
    },
    { nodeOptions: commitMs ? ['--import', SLOW_COMMIT_MODULE] : [] },
  )
  const singleRuns: Measurement[] = []
  const concurrentRuns: Measurement[] = []
  for (let round = -1; round < ROUNDS; round++) {
    for (const connections of [1, CONCURRENCY]) {
      const range = people.next(peopleOf(call))
      addPeopleSqlite(database.file, { ...call.needs, ...range })
      const result = await run(load, server, call.path, bodiesOf(range, call.body), connections)
      if (round >= 0) (connections === 1 ? singleRuns : concurrentRuns).push(result)
    }
  }
  const medianOf = (runs: Measurement[]) => median(runs.map(each => each.perSecond))
  const ratios = concurrentRuns.map(each => each.perSecond / bareRun.oneByOne)
  const ratiosToSingle = concurrentRuns.map((each, round) => each.perSecond / singleRuns[round]!.perSecond)
  targets.push({
    what: `sqlite, 64 at once, of bare one-at-a-time durable commits${commitMs ? ` (${commitMs} ms each)` : ''}`,
    wanted: '≥ 5',
    measured: spread(ratios, 1),
    reached: median(ratios) >= 5,
  })
  const row: Row = {
    commit: commitMs ? `+ ${commitMs} ms` : 'this disk',
    'bare, one at a time': Math.round(bareRun.oneByOne),
    'bare, 64 a commit': Math.round(bareRun.together),
    'the same in CPU µs': bareRun.cpuMicroseconds,
    'service, 1 connection': Math.round(medianOf(singleRuns)),
    'service, 64 connections': Math.round(medianOf(concurrentRuns)),
    '64 of bare': spread(ratios, 1),
    '64 of 1': spread(ratiosToSingle, 1),
    'CPU µs at 64': median(concurrentRuns.map(each => each.cpuMicroseconds)),
  }
  return {
    row,
    latencies:
      commitMs === SLOW_COMMIT_MS ? await measureExchangesBeside(server, database, call, people) : [],
  }
}

interface BareCommits {
  /** Accounts a second, each durable before the next begins. */
  oneByOne: number
  /** As `oneByOne`, with `CONCURRENCY` accounts per commit: the upper bound of what shared commits can reach. */
  together: number
  /** Processor time per account with `CONCURRENCY` accounts per commit. */
  cpuMicroseconds: number
}

/** Runs the statements of verifications without the service: with one account per commit, then with `CONCURRENCY`. */
async function measureBareCommits(
  database: BenchDatabase,
  call: Call,
  people: ReturnType<typeof numberGenerator>,
  commitMs: number,
): Promise<BareCommits> {
  const number = people.next(1).from
  const unrecordedNumber = people.next(1).from
  addPeopleSqlite(database.file, { ...call.needs, from: number, to: unrecordedNumber + 1 })
  const services = await openServices(configOf(database), createLog('error'))
  await call.inProcess(services, unrecordedNumber)
  const recordedStatements = await recordSqlite(services.storage, () => call.inProcess(services, number))
  await services.close()
  const replay = createReplayer(recordedStatements, number, linkTokenHashOf)

  const connection = new DatabaseSync(database.file, { enableForeignKeyConstraints: true })
  connection.exec('pragma synchronous = full')
  const statements = new Map(recordedStatements.map(({ text }) => [text, connection.prepare(text)]))
  const sleepCell = new Int32Array(new SharedArrayBuffer(4))
  const replayAll = (perCommit: number, accounts: number) => {
    const range = people.next(accounts)
    addPeopleSqlite(database.file, { ...call.needs, ...range })
    const startedAt = performance.now()
    const cpuBefore = process.cpuUsage()
    for (let start = range.from; start < range.to; start += perCommit) {
      connection.exec('begin immediate')
      for (let n = start; n < start + perCommit; n++)
        for (const { text, values } of replay(n)) statements.get(text)!.all(...(values as string[]))
      if (commitMs) Atomics.wait(sleepCell, 0, 0, commitMs)
      connection.exec('commit')
    }
    const { user, system } = process.cpuUsage(cpuBefore)
    const perSecond = (accounts * 1000) / (performance.now() - startedAt)
    return { perSecond, cpuMicroseconds: Math.round((user + system) / accounts) }
  }
  replayAll(1, 100)
  const oneByOne = replayAll(1, QUICK ? 200 : 600)
  const together = replayAll(CONCURRENCY, CONCURRENCY * (QUICK ? 20 : 60))
  connection.close()
  return {
    oneByOne: oneByOne.perSecond,
    together: together.perSecond,
    cpuMicroseconds: together.cpuMicroseconds,
  }
}

/** Measures exchanges beside sign-ins, on a server whose commits take `SLOW_COMMIT_MS` longer. */
async function measureExchangesBeside(
  server: RunningProcess,
  database: BenchDatabase,
  call: Call,
  people: ReturnType<typeof numberGenerator>,
): Promise<Row[]> {
  await using writeLoad = await startLoad()
  const job = {
    port: server.port,
    connections: 32,
    method: 'POST',
    path: '/auth/agent-token',
    bodies: exchangeBodies(1000),
    warmUpMs: 500,
  }
  const seconds = QUICK ? 3 : 6
  const runs: { withoutWrites: Measurement; withWrites: Measurement; writes: Measurement }[] = []
  for (let round = 0; round < 3; round++) {
    const fullLoadRun = await load.run({ ...job, durationMs: RUN_MS, rate: null }, server.pid)
    const rate = Math.round(fullLoadRun.perSecond / 2)
    const halfLoadJob = { ...job, durationMs: seconds * 1000, rate }
    const withoutWrites = await load.run(halfLoadJob, server.pid)
    const range = people.next(100 * (seconds + 2))
    addPeopleSqlite(database.file, { ...call.needs, ...range })
    const [writes, withWrites] = await Promise.all([
      run(writeLoad, server, call.path, bodiesOf(range, call.body), 16, { rate: 100, ms: seconds * 1000 }),
      load.run(halfLoadJob, server.pid),
    ])
    runs.push({ withoutWrites, withWrites, writes })
  }
  const p99s = runs.map(each => each.withWrites.p99)
  targets.push({
    what: `p99 of exchanges at half load on sqlite, commits of ${SLOW_COMMIT_MS} ms`,
    wanted: '< 15 ms',
    measured: `${spread(p99s)} ms`,
    reached: median(p99s) < 15,
  })
  return [
    {
      'exchanges/s': Math.round(median(runs.map(each => each.withWrites.perSecond))),
      'p50 ms': spread(runs.map(each => each.withWrites.p50)),
      'p99 ms': spread(p99s),
      'p99 ms without writes': spread(runs.map(each => each.withoutWrites.p99)),
      'p50 ms of a verify': spread(
        runs.map(each => each.writes.p50),
        1,
      ),
    },
  ]
}

function run(
  generator: Load,
  { port, pid }: RunningProcess,
  path: string,
  bodies: string[],
  connections: number,
  { rate = null as number | null, ms = RUN_MS } = {},
): Promise<Measurement> {
  const job = {
    port,
    connections,
    method: 'POST',
    path,
    bodies,
    warmUpMs: WARM_UP_MS,
    durationMs: ms,
    rate,
  }
  return generator.run(job, pid)
}

function peopleOf({ mostPerSecond }: Call): number {
  return Math.ceil((mostPerSecond * (RUN_MS + WARM_UP_MS)) / 1000)
}

function bodiesOf({ from, to }: { from: number; to: number }, body: (n: number) => unknown): string[] {
  return Array.from({ length: to - from }, (_, index) => JSON.stringify(body(from + index)))
}

/**
 * Generates numbers of users. The first number is replaced in the recorded statements by those of other users, so it
 * must not occur in other values.
 */
function numberGenerator() {
  let nextNumber = 0xabcdef
  return {
    next(count: number) {
      const from = nextNumber
      nextNumber += count
      return { from, to: nextNumber }
    },
  }
}

function configOf(database: BenchDatabase) {
  return loadConfig({ ...database.settings, ...UNLIMITED_SETTINGS, ...mail.settings })
}

function urlOf(database: BenchDatabase): string {
  return database.settings.KEYWAY_DATABASE_URL!
}
