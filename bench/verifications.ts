import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BY_COMMAND_LINE } from '../packages/server/src/audit/audit.ts'
import { loadConfig } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { openServices } from '../packages/server/src/services.ts'
import { benchId, benchKey, sqliteDatabase } from './support/databases.ts'
import { type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { type RunningProcess, startKeyway, startProgram } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures verifications of keys with a request limit and a remaining quota, compared with better-auth's API-key plugin
 * on the same SQLite in the same round. Its packages are installed into bench/better-auth when they are missing.
 */

const KEYS = 100
const ROUNDS = QUICK ? 3 : 7
const RUN_MS = QUICK ? 1000 : 3000
const WARM_UP_MS = QUICK ? 3000 : 8000
const CONCURRENCY = 32
/** Keys in one request, as the SDK's `verifyKey` batches them at this load: it has four requests in progress. */
const KEYS_PER_REQUEST = 8
/** Minimum throughput, as a multiple of better-auth's. */
const MIN_RATIO = 30
const APP = 'console'
/** Limits that are never reached, since only the counting is measured. */
const LIMITS = {
  requests: [{ limit: 1_000_000_000, per: 'minute' as const }],
  spend: [],
  quota: { remaining: 1_000_000_000, refill: null },
}

pinBench()
installBetterAuth()
const folder = mkdtempSync(join(tmpdir(), 'better-auth-bench-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
await using sqlite = await sqliteDatabase(KEYS)
const secret = await setLimits(sqlite.settings)
await using load = await startLoad()
await using keyway = await startKeyway(sqlite.settings)
await using betterAuth = await startProgram('../better-auth/server.mjs', [folder, String(KEYS)])

interface Subject {
  process: RunningProcess
  path: string
  bodies: string[]
  headers?: Record<string, string>
  /** 1 by default. */
  verificationsPerRequest?: number
}

const keys = Array.from({ length: KEYS }, (_, n) => benchKey(n))
const betterAuthKeys = JSON.parse(readFileSync(join(folder, 'keys.json'), 'utf8')) as string[]
const basicHeaders = { authorization: `Basic ${Buffer.from(`${APP}:${secret}`).toString('base64')}` }
const subjects: Record<string, Subject> = {
  'better-auth, verifyApiKey': {
    process: betterAuth,
    path: '/',
    bodies: betterAuthKeys.map(key => JSON.stringify({ key })),
  },
  'Keyway, introspection with consume': {
    process: keyway,
    path: '/auth/introspect',
    bodies: keys.map(token => JSON.stringify({ token, consume: 1 })),
    headers: basicHeaders,
  },
  'Keyway, eight keys a request': {
    process: keyway,
    path: '/auth/introspections',
    bodies: Array.from({ length: KEYS }, (_, n) =>
      JSON.stringify({
        tokens: Array.from({ length: KEYS_PER_REQUEST }, (_, m) => ({
          token: keys[(n + m) % KEYS],
          consume: 1,
        })),
      }),
    ),
    headers: basicHeaders,
    verificationsPerRequest: KEYS_PER_REQUEST,
  },
  'Keyway, exchange': {
    process: keyway,
    path: '/auth/agent-token',
    bodies: keys.map(api_key => JSON.stringify({ api_key })),
  },
}

const runs = new Map<string, Measurement[]>(Object.keys(subjects).map(name => [name, []]))
// The first thousands of calls run in the interpreter.
for (const subject of Object.values(subjects)) await run(subject, WARM_UP_MS)
for (let round = 0; round < ROUNDS; round++)
  for (const [name, subject] of Object.entries(subjects)) runs.get(name)!.push(await run(subject))

const [betterAuthRuns, ...keywayRuns] = [...runs] as [[string, Measurement[]], ...[string, Measurement[]][]]
const table: Row[] = [...runs].map(([name, measured]) => ({
  '': name,
  'verifications/s': Math.round(median(measured.map(each => each.perSecond))),
  'CPU µs': median(measured.map(each => each.cpuMicroseconds)),
  'p99 ms': median(measured.map(each => each.p99)),
}))
const targets = keywayRuns.map(([name, measured]) => {
  const ratios = measured.map((each, round) => each.perSecond / betterAuthRuns[1][round]!.perSecond)
  return {
    what: `${name}, of better-auth's verifications a second`,
    wanted: `≥ ${MIN_RATIO}`,
    measured: spread(ratios),
    reached: median(ratios) >= MIN_RATIO,
  }
})
report(
  'verifications',
  { [`Verifications of keys with limits on SQLite, ${CONCURRENCY} at once`]: table },
  targets,
)

function installBetterAuth(): void {
  const betterAuthFolder = join(import.meta.dirname, 'better-auth')
  if (existsSync(join(betterAuthFolder, 'node_modules/better-auth'))) return
  const args = ['ci', '--ignore-scripts', '--omit=peer', '--no-audit', '--no-fund']
  const { status } = spawnSync('npm', args, { cwd: betterAuthFolder, stdio: 'inherit' })
  if (status !== 0) throw new Error('npm ci in bench/better-auth failed')
}

/** Gives the keys limits. Returns a new secret of `APP`. */
async function setLimits(settings: Record<string, string>): Promise<string> {
  const services = await openServices(loadConfig(settings), createLog('error'))
  for (let n = 0; n < KEYS; n++)
    await services.apiKeys.setOperatorLimits(benchId(2, n), LIMITS, BY_COMMAND_LINE)
  const { secret } = await services.apps.newSecret(APP)
  await services.close()
  return secret
}

async function run(
  { process, path, bodies, headers, verificationsPerRequest = 1 }: Subject,
  durationMs = RUN_MS,
): Promise<Measurement> {
  const job = {
    port: process.port,
    connections: CONCURRENCY / verificationsPerRequest,
    method: 'POST',
    path,
    bodies,
    headers,
  }
  const result = await load.run({ ...job, warmUpMs: 500, durationMs, rate: null }, process.pid)
  return {
    ...result,
    perSecond: result.perSecond * verificationsPerRequest,
    cpuMicroseconds: result.cpuMicroseconds / verificationsPerRequest,
  }
}
