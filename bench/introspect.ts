import { BY_COMMAND_LINE } from '../packages/server/src/audit/audit.ts'
import { loadConfig } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { openServices } from '../packages/server/src/services.ts'
import {
  type BenchDatabase,
  benchId,
  benchKey,
  postgresDatabase,
  sqliteDatabase,
} from './support/databases.ts'
import { type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { type RunningProcess, startFloor, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures the introspection of a key by an app: plain, and with `consume` against a request limit and a quota,
 * compared in each round with the floor of an exchange, its unavoidable work (support/floor.ts).
 */

const KEYS = 1000
const LIMITED_KEYS = 100
const ROUNDS = QUICK ? 3 : 7
const RUN_MS = QUICK ? 1000 : 2000
const APP = 'console'
/** Limits that are never reached, since only the counting is measured. */
const LIMITS = {
  requests: [
    { limit: 1_000_000_000, per: 'minute' as const },
    { limit: 1_000_000_000, per: 'day' as const },
  ],
  spend: [],
  quota: { remaining: 1_000_000_000_000, refill: null },
}

pinBench()
await using sqlite = await sqliteDatabase(KEYS)
await using postgres = await postgresDatabase(KEYS)
const appSecrets = { sqlite: await prepare(sqlite), postgres: await prepare(postgres) }
await using load = await startLoad()
await using floor = await startFloor(sqlite.file)
await using keywayOnSqlite = await startKeyway(sqlite.settings)
await using keywayOnPostgres = await startKeyway(postgres.settings)

interface Subject {
  process: RunningProcess
  path: string
  bodies: string[]
  secret?: string
}
const exchangeBodies = bodiesOf(LIMITED_KEYS, KEYS, key => ({ api_key: key }))
const plainBodies = bodiesOf(LIMITED_KEYS, KEYS, token => ({ token }))
const consumingBodies = bodiesOf(0, LIMITED_KEYS, token => ({ token, consume: 1 }))
const introspection = { path: '/auth/introspect' }
const subjects: Record<string, Subject> = {
  floor: { process: floor, path: '/auth/agent-token', bodies: exchangeBodies },
  'sqlite, plain': {
    process: keywayOnSqlite,
    ...introspection,
    bodies: plainBodies,
    secret: appSecrets.sqlite,
  },
  'sqlite, consume': {
    process: keywayOnSqlite,
    ...introspection,
    bodies: consumingBodies,
    secret: appSecrets.sqlite,
  },
  'postgres, plain': {
    process: keywayOnPostgres,
    ...introspection,
    bodies: plainBodies,
    secret: appSecrets.postgres,
  },
  'postgres, consume': {
    process: keywayOnPostgres,
    ...introspection,
    bodies: consumingBodies,
    secret: appSecrets.postgres,
  },
}

for (const subject of Object.values(subjects)) await run(subject, QUICK ? 1500 : 4000)
const runs = new Map<string, Measurement[]>(Object.keys(subjects).map(name => [name, []]))
for (let round = 0; round < ROUNDS; round++)
  for (const [name, subject] of Object.entries(subjects)) runs.get(name)!.push(await run(subject))

const table: Row[] = Object.keys(subjects).map(name => ({ '': name, ...summary(name) }))
const targets: Target[] = ['sqlite', 'postgres'].map(engine => {
  const ratios = ratiosOf(`${engine}, consume`, `${engine}, plain`)
  return {
    what: `introspection with consume on ${engine}, of plain introspection`,
    wanted: '≥ 0.85',
    measured: spread(ratios),
    reached: median(ratios) >= 0.85,
  }
})
report('introspect', { 'Introspection of keys, 32 connections': table }, targets)

/** Sets limits of the first keys, and creates a secret of the app, which it returns. */
async function prepare(database: BenchDatabase): Promise<string> {
  const services = await openServices(loadConfig(database.settings), createLog('error'))
  for (let n = 0; n < LIMITED_KEYS; n++)
    await services.apiKeys.setOperatorLimits(benchId(2, n), LIMITS, BY_COMMAND_LINE)
  const { secret } = await services.apps.newSecret(APP)
  await services.close()
  return secret
}

function bodiesOf(from: number, to: number, body: (key: string) => object): string[] {
  return Array.from({ length: to - from }, (_, n) => JSON.stringify(body(benchKey(from + n))))
}

function run({ process, path, bodies, secret }: Subject, ms = RUN_MS): Promise<Measurement> {
  const authorization = `Basic ${Buffer.from(`${APP}:${secret}`).toString('base64')}`
  const headers = secret === undefined ? undefined : { authorization }
  return load.run(
    {
      port: process.port,
      connections: 32,
      method: 'POST',
      path,
      bodies,
      headers,
      warmUpMs: 300,
      durationMs: ms,
      rate: null,
    },
    process.pid,
  )
}

function ratiosOf(name: string, other: string): number[] {
  return runs.get(name)!.map((each, round) => each.perSecond / runs.get(other)![round]!.perSecond)
}

function summary(name: string): Row {
  const medianOf = (pick: (run: Measurement) => number) => median(runs.get(name)!.map(pick))
  return {
    'requests/s': Math.round(medianOf(each => each.perSecond)),
    'of the floor': spread(ratiosOf(name, 'floor')),
    'CPU µs': medianOf(each => each.cpuMicroseconds),
    'p50 ms': medianOf(each => each.p50),
    'p99 ms': medianOf(each => each.p99),
  }
}
