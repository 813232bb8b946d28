import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { clusterUrl } from '../packages/server/test/support/postgres.ts'
import { startAgents } from './support/agents.ts'
import { benchKey, exchangeBodies } from './support/databases.ts'
import { type Load, startLoad } from './support/load.ts'
import { cpuSeconds, pinBench, residentBytes } from './support/machine.ts'
import type { RunningProcess } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { mean, median, spread } from './support/statistics.ts'

/**
 * Compares this checkout with an earlier one (`node bench/against.ts FOLDER`, with its `node_modules`): start,
 * exchange, connects, messages and memory, in alternating rounds, so that a machine that changes its speed affects both
 * alike. `--hub` measures live connections only.
 */

const KEYS = 1000
const KEYS_PER_USER = 10
const ROUNDS = QUICK ? 5 : 41
const RUN_MS = 700
const CONNECTS_PER_ROUND = QUICK ? 500 : 1000
const IDLE_CONNECTIONS = QUICK ? 2000 : 8000
const START_ROUNDS = QUICK ? 3 : 15
const RECEIVERS = 999
const FAN_OUTS_PER_ROUND = 3
/** Pause after a start, before memory is read. */
const IDLE_BEFORE_READING_MS = 1500
/** Pause before memory of connections is read, for garbage collection. */
const SETTLE_MS = QUICK ? 4000 : 10_000

const earlierFolder = process.argv.slice(2).find(arg => !arg.startsWith('--'))
if (!earlierFolder) throw new Error('usage: node bench/against.ts FOLDER [--quick]')

pinBench()
process.env.KEYWAY_TEST_POSTGRES_URL = await clusterUrl()
await using stack = new AsyncDisposableStack()
const load = stack.use(await startLoad())
const agents = stack.use(await startAgents())
const versions = {
  now: await start(join(import.meta.dirname, '..')),
  before: await start(resolve(earlierFolder)),
}
type Version = (typeof versions)['now']

const rows: Row[] = []
const targets: Target[] = []
const bodies = exchangeBodies(KEYS)
if (!process.argv.includes('--hub')) await compareStarts()
await compareMemory()
if (!process.argv.includes('--hub')) await compareExchanges()
await compareConnects()
await compareFanOuts()
report('against', { 'This checkout and the earlier one': rows }, targets)

async function compareStarts(): Promise<void> {
  const startRounds = await alternate(version => version.measureStart(), START_ROUNDS)
  compare(
    'ms until ready',
    startRounds.map(r => [r.now.readyAfter, r.before.readyAfter]),
    { most: 1.05 },
  )
  compare(
    'CPU ms until ready',
    startRounds.map(r => [r.now.cpuMs, r.before.cpuMs]),
    { most: 1.05 },
  )
  compare(
    'MB at rest',
    startRounds.map(r => [r.now.megabytes, r.before.megabytes]),
    { most: 1.05 },
  )
}

async function compareMemory(): Promise<void> {
  // A few connects first, which load the code. With more work before, freed memory would be reused and not counted.
  for (const version of Object.values(versions)) await measureConnects(version, 300)
  const memory = {
    now: await measureIdleKilobytes(versions.now),
    before: await measureIdleKilobytes(versions.before),
  }
  compare('KB of an idle connection', [[memory.now, memory.before]], { most: 1.05 })
}

async function compareExchanges(): Promise<void> {
  for (const { sqlite, postgres } of Object.values(versions)) {
    for (const server of [sqlite, postgres]) await exchange(load, server, QUICK ? 1500 : 4000)
  }
  for (const engine of ['sqlite', 'postgres'] as const) {
    const rounds = await alternate(async version => {
      const run = await exchange(load, version[engine], RUN_MS)
      return { perSecond: run.perSecond, cpu: run.cpuMicroseconds }
    })
    compare(
      `exchanges a second, ${engine}`,
      rounds.map(r => [r.now.perSecond, r.before.perSecond]),
      { least: 0.97 },
    )
    compare(
      `CPU µs of an exchange, ${engine}`,
      rounds.map(r => [r.now.cpu, r.before.cpu]),
      { most: 1.03 },
    )
  }
}

async function compareConnects(): Promise<void> {
  const rounds = await alternate(version => measureConnects(version, CONNECTS_PER_ROUND))
  // Means instead of medians: a full garbage collection falls into some rounds of either version, and must count.
  const meanOf = (cost: (run: { perSecond: number; cpu: number }) => number): [number, number] => [
    mean(rounds.map(r => cost(r.now))),
    mean(rounds.map(r => cost(r.before))),
  ]
  compare('µs of a connect, mean of all rounds', [meanOf(run => 1e6 / run.perSecond)], { most: 1.03 })
  compare('CPU µs of a connect, mean of all rounds', [meanOf(run => run.cpu)], { most: 1.03 })
}

async function compareFanOuts(): Promise<void> {
  const rounds = await alternate(measureFanOuts)
  compare(
    `ms of a message to ${RECEIVERS}`,
    rounds.map(r => [r.now.milliseconds, r.before.milliseconds]),
    { most: 1.03 },
  )
  compare(
    `CPU ms of a message to ${RECEIVERS}`,
    rounds.map(r => [r.now.cpu, r.before.cpu]),
    { most: 1.03 },
  )
}

/** Starts the checkout in a folder on both engines, with that checkout's bench programs and database schema. */
async function start(folder: string) {
  const support = join(folder, 'bench/support')
  const databases: typeof import('./support/databases.ts') = await import(join(support, 'databases.ts'))
  const processes: typeof import('./support/processes.ts') = await import(join(support, 'processes.ts'))
  const sqliteDatabase = stack.use(await databases.sqliteDatabase(KEYS))
  const postgresDatabase = stack.use(await databases.postgresDatabase(KEYS))
  const sqlite = stack.use(
    await processes.startKeyway({ ...sqliteDatabase.settings, KEYWAY_HUB_MAX_CONNECTIONS: '20000' }),
  )
  const postgres = stack.use(await processes.startKeyway(postgresDatabase.settings))
  const tokens: string[] = []
  for (let n = 0; n < KEYS; n++) tokens.push(await tokenOf(sqlite, benchKey(n)))
  const databaseForStarts = stack.use(await databases.sqliteDatabase(KEYS))
  const measureStart = async () => {
    await using server = await processes.startKeyway(databaseForStarts.settings)
    const cpuMs = cpuSeconds(server.pid) * 1000
    await wait(IDLE_BEFORE_READING_MS)
    return { readyAfter: server.readyAfter, cpuMs, megabytes: residentBytes(server.pid) / 1024 / 1024 }
  }
  return { sqlite, postgres, tokens, measureStart }
}

/** Measures both versions in alternating rounds; they take turns at being first. */
async function alternate<T>(
  measure: (version: Version, round: number) => Promise<T>,
  count = ROUNDS,
): Promise<Record<'now' | 'before', T>[]> {
  const rounds: Record<'now' | 'before', T>[] = []
  for (let round = 0; round < count; round++) {
    const names = round % 2 === 0 ? (['now', 'before'] as const) : (['before', 'now'] as const)
    const results = {} as Record<'now' | 'before', T>
    for (const name of names) results[name] = await measure(versions[name], round)
    rounds.push(results)
  }
  return rounds
}

function compare(
  what: string,
  pairs: [now: number, before: number][],
  wanted: { least?: number; most?: number },
): void {
  const ratios = pairs.map(([now, before]) => now / before)
  const ratio = median(ratios)
  rows.push({
    '': what,
    now: median(pairs.map(([now]) => now)),
    before: median(pairs.map(([, before]) => before)),
    ratio: spread(ratios),
  })
  targets.push({
    what,
    wanted: wanted.least ? `≥ ${wanted.least} of before` : `≤ ${wanted.most} of before`,
    measured: spread(ratios),
    reached: ratio >= (wanted.least ?? 0) && ratio <= (wanted.most ?? Number.POSITIVE_INFINITY),
  })
}

function exchange(load: Load, { port, pid }: RunningProcess, durationMs: number) {
  const path = '/auth/agent-token'
  return load.run(
    { port, connections: 32, method: 'POST', path, bodies, warmUpMs: 300, durationMs, rate: null },
    pid,
  )
}

async function measureConnects({ sqlite: { port, pid }, tokens }: Version, count: number) {
  const cpuBefore = cpuSeconds(pid)
  const { seconds } = await agents.run({ do: 'connect', port, tokens, count, atOnce: 64 })
  const cpu = ((cpuSeconds(pid) - cpuBefore) * 1e6) / count
  await agents.run({ do: 'disconnect' })
  await wait(300)
  return { perSecond: count / seconds, cpu }
}

/** Uses tokens of another owner in each round, since the sends of one owner are rate-limited. */
async function measureFanOuts({ sqlite: { port, pid }, tokens }: Version, round: number) {
  await agents.run({
    do: 'connect',
    port,
    tokens: [tokens[round * KEYS_PER_USER]!],
    count: RECEIVERS + 1,
    atOnce: 64,
  })
  const cpuBefore = cpuSeconds(pid)
  let seconds = 0
  for (let n = 0; n < FAN_OUTS_PER_ROUND; n++) {
    const frame = JSON.stringify({ type: 'send', id: `fan-${n}`, to: 'all', data: `message ${n}` })
    seconds += (await agents.run({ do: 'fan-out', frame, answer: `message ${n}`, receivers: RECEIVERS }))
      .seconds
  }
  const cpu = cpuSeconds(pid) - cpuBefore
  await agents.run({ do: 'disconnect' })
  await wait(300)
  return { milliseconds: (seconds * 1000) / FAN_OUTS_PER_ROUND, cpu: (cpu * 1000) / FAN_OUTS_PER_ROUND }
}

async function measureIdleKilobytes(version: Version): Promise<number> {
  const { port, pid } = version.sqlite
  await wait(SETTLE_MS)
  const bytesBefore = residentBytes(pid)
  await agents.run({ do: 'connect', port, tokens: version.tokens, count: IDLE_CONNECTIONS, atOnce: 64 })
  await wait(SETTLE_MS)
  const kilobytes = (residentBytes(pid) - bytesBefore) / 1024 / IDLE_CONNECTIONS
  await agents.run({ do: 'disconnect' })
  return kilobytes
}

async function tokenOf({ port }: RunningProcess, key: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/auth/agent-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ api_key: key }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  return ((await answer.json()) as { token: string }).token
}
