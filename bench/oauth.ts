import {
  type BenchDatabase,
  benchId,
  benchKey,
  exchangeBodies,
  postgresDatabase,
  sqliteDatabase,
} from './support/databases.ts'
import { type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures the token endpoint with a key as client, and token exchange, compared with the plain exchange in the same
 * round.
 */

const KEYS = 1000
const ROUNDS = QUICK ? 3 : 7
const RUN_MS = QUICK ? 1000 : 2000
const CONNECTIONS = 32
/** Minimum throughput, as a fraction of the plain exchange's. */
const MIN_RATIO = 0.6

const FORM_HEADERS = { 'content-type': 'application/x-www-form-urlencoded' }
const plainExchange = { path: '/auth/agent-token', bodies: exchangeBodies(KEYS), headers: undefined }
const grants: Record<
  string,
  typeof plainExchange | { path: string; bodies: string[]; headers: typeof FORM_HEADERS }
> = {
  exchange: plainExchange,
  'client credentials': {
    path: '/oauth/token',
    headers: FORM_HEADERS,
    bodies: formsOf(n => ({
      grant_type: 'client_credentials',
      client_id: benchId(2, n),
      client_secret: benchKey(n),
    })),
  },
  'token exchange': {
    path: '/oauth/token',
    headers: FORM_HEADERS,
    bodies: formsOf(n => ({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: benchKey(n),
      subject_token_type: 'urn:keyway:token-type:api-key',
    })),
  },
}

pinBench()
await using sqlite = await sqliteDatabase(KEYS)
await using postgres = await postgresDatabase(KEYS)
await using load = await startLoad()
const databases: Record<string, BenchDatabase> = { sqlite, postgres }
const table: Row[] = []
const targets: Target[] = []
for (const [engine, database] of Object.entries(databases)) {
  await using keyway = await startKeyway(database.settings)
  const runs = await measureGrants(keyway)
  for (const name of Object.keys(grants)) {
    const medianOf = (pick: (run: Measurement) => number) => median(runs[name]!.map(pick))
    table.push({
      '': `${engine}, ${name}`,
      'requests/s': Math.round(medianOf(each => each.perSecond)),
      'of the exchange': spread(ratiosOf(runs, name)),
      'CPU µs': medianOf(each => each.cpuMicroseconds),
      'p50 ms': medianOf(each => each.p50),
      'p99 ms': medianOf(each => each.p99),
    })
  }
  const credentialRatios = ratiosOf(runs, 'client credentials')
  targets.push({
    what: `client credentials with a key on ${engine}, of the exchange, ${CONNECTIONS} connections`,
    wanted: `≥ ${MIN_RATIO}`,
    measured: spread(credentialRatios),
    reached: median(credentialRatios) >= MIN_RATIO,
  })
}
report('oauth', { 'Tokens for keys, 32 connections': table }, targets)

async function measureGrants(keyway: RunningProcess): Promise<Record<string, Measurement[]>> {
  for (const name of Object.keys(grants)) await run(keyway, name, QUICK ? 1500 : 4000)
  const runs: Record<string, Measurement[]> = Object.fromEntries(Object.keys(grants).map(name => [name, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const name of Object.keys(grants)) runs[name]!.push(await run(keyway, name))
  return runs
}

function run({ port, pid }: RunningProcess, name: string, durationMs = RUN_MS): Promise<Measurement> {
  const job = { port, connections: CONNECTIONS, method: 'POST', warmUpMs: 300, durationMs, rate: null }
  return load.run({ ...job, ...grants[name]! }, pid)
}

function ratiosOf(runs: Record<string, Measurement[]>, name: string): number[] {
  return runs[name]!.map((each, round) => each.perSecond / runs.exchange![round]!.perSecond)
}

/** Form bodies for all keys, in an order without locality, like `exchangeBodies`. */
function formsOf(fieldsOf: (n: number) => Record<string, string>): string[] {
  return Array.from({ length: KEYS }, (_, index) =>
    new URLSearchParams(fieldsOf((index * 7919) % KEYS)).toString(),
  )
}
