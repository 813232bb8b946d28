import { exchangeBodies, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { type Load, type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { type RunningProcess, startFloor, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures the exchange of a key for a token, compared in each round with its floor: a server that does only the
 * unavoidable work (support/floor.ts).
 */

const KEYS = 1000
const ROUNDS = QUICK ? 3 : 7
const WARM_UP_MS = QUICK ? 300 : 500
const RUN_MS = QUICK ? 1000 : 2000
const CONNECTIONS = [1, 32, 256]
/** Duration of a run that measures latency, at half of the maximum throughput: the load at which a node should run. */
const LATENCY_RUN_MS = QUICK ? 2000 : 6000

pinBench()
await using sqlite = await sqliteDatabase(KEYS)
await using postgres = await postgresDatabase(KEYS)
await using load = await startLoad()
await using floor = await startFloor(sqlite.file)
await using keywayOnSqlite = await startKeyway(sqlite.settings)
await using keywayOnPostgres = await startKeyway(postgres.settings)
const subjects = { floor, sqlite: keywayOnSqlite, postgres: keywayOnPostgres }
type Name = keyof typeof subjects
const bodies = exchangeBodies(KEYS)

// Warm-up: the first thousands of calls run in the interpreter.
for (const subject of Object.values(subjects)) await exchange(load, subject, 32, { ms: QUICK ? 1500 : 4000 })

const table: Row[] = []
const targets: Target[] = []
for (const connections of CONNECTIONS) {
  const runs: Record<Name, Measurement[]> = { floor: [], sqlite: [], postgres: [] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, subject] of Object.entries(subjects)) {
      runs[name as Name].push(await exchange(load, subject, connections))
    }
  }
  for (const name of Object.keys(subjects) as Name[]) {
    table.push({ connections, '': name, ...summary(runs[name], runs.floor) })
  }
  if (connections === 32) targets.push(targetOf('sqlite', 0.75, runs), targetOf('postgres', 0.65, runs))
}

const latencyRows: Row[] = []
for (const name of Object.keys(subjects) as Name[]) {
  const runs: Measurement[] = []
  for (let round = 0; round < 3; round++) {
    const { perSecond } = await exchange(load, subjects[name], 32)
    const rate = Math.round(perSecond / 2)
    runs.push(await exchange(load, subjects[name], 32, { ms: LATENCY_RUN_MS, rate }))
  }
  const spreadOf = (pick: (run: Measurement) => number) => spread(runs.map(pick))
  latencyRows.push({
    '': name,
    'requests/s': Math.round(median(runs.map(run => run.perSecond))),
    'p50 ms': spreadOf(run => run.p50),
    'p99 ms': spreadOf(run => run.p99),
    'p99.9 ms': spreadOf(run => run.p999),
  })
  // The floor (support/floor.ts) has no target for latency: its slowest answers wait for other work on the core.
  if (name === 'floor') continue
  targets.push({
    what: `p99 at half of the load, ${name}`,
    wanted: '< 10 ms',
    measured: `${spreadOf(run => run.p99)} ms`,
    reached: median(runs.map(run => run.p99)) < 10,
  })
}

report('exchange', { Throughput: table, 'Latency at half of the load, open loop': latencyRows }, targets)

function exchange(
  load: Load,
  { port, pid }: RunningProcess,
  connections: number,
  { ms = RUN_MS, rate = null as number | null } = {},
): Promise<Measurement> {
  return load.run(
    {
      port,
      connections,
      method: 'POST',
      path: '/auth/agent-token',
      bodies,
      warmUpMs: WARM_UP_MS,
      durationMs: ms,
      rate,
    },
    pid,
  )
}

function summary(runs: Measurement[], floors: Measurement[]): Row {
  const medianOf = (pick: (run: Measurement) => number) => median(runs.map(pick))
  return {
    'requests/s': Math.round(medianOf(run => run.perSecond)),
    'of the floor': spread(runs.map((run, round) => run.perSecond / floors[round]!.perSecond)),
    'CPU µs': medianOf(run => run.cpuMicroseconds),
    'CPU of the floor': spread(
      runs.map((run, round) => floors[round]!.cpuMicroseconds / run.cpuMicroseconds),
    ),
    'p50 ms': medianOf(run => run.p50),
    'p99 ms': medianOf(run => run.p99),
    'p99.9 ms': medianOf(run => run.p999),
  }
}

function targetOf(name: Name, wanted: number, runs: Record<Name, Measurement[]>): Target {
  const ratios = runs[name].map((run, round) => run.perSecond / runs.floor[round]!.perSecond)
  return {
    what: `exchange on ${name}, of the floor, 32 connections`,
    wanted: `≥ ${wanted}`,
    measured: spread(ratios),
    reached: median(ratios) >= wanted,
  }
}
