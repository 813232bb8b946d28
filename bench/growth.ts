import { exchangeBodies, sqliteDatabase } from './support/databases.ts'
import { type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures exchanges with few and with very many keys. Ten million keys need 5 GB in KEYWAY_BENCH_DIR (default: the
 * system's temporary folder) and some minutes to create.
 */

const SIZES = QUICK ? [1_000, 100_000, 1_000_000] : [1_000, 100_000, 10_000_000]
/** Number of keys used in turn in every database, spread evenly over all keys. */
const USED_KEYS = 1000
const ROUNDS = QUICK ? 3 : 7
const RUN_MS = QUICK ? 1000 : 2000

pinBench()
await using stack = new AsyncDisposableStack()
const load = stack.use(await startLoad())
const subjects = []
for (const keys of SIZES) {
  const startedAt = performance.now()
  const database = stack.use(await sqliteDatabase(keys))
  console.log(`${keys} keys made in ${Math.round((performance.now() - startedAt) / 1000)} s`)
  const server = stack.use(await startKeyway(database.settings))
  subjects.push({ keys, server, bodies: exchangeBodies(keys, USED_KEYS), runs: [] as Measurement[] })
}

for (let round = -1; round < ROUNDS; round++) {
  for (const { server, bodies, runs } of subjects) {
    const job = { port: server.port, connections: 32, method: 'POST', path: '/auth/agent-token', bodies }
    const run = await load.run({ ...job, warmUpMs: 500, durationMs: RUN_MS, rate: null }, server.pid)
    if (round >= 0) runs.push(run)
  }
}

const [smallestSubject] = subjects
const ratiosOf = (runs: Measurement[], pick: (run: Measurement) => number) =>
  runs.map((run, round) => pick(run) / pick(smallestSubject!.runs[round]!))
const rows: Row[] = subjects.map(({ keys, server, runs }) => ({
  keys: keys.toLocaleString('en'),
  'ready after ms': Math.round(server.readyAfter),
  'requests/s': Math.round(median(runs.map(run => run.perSecond))),
  [`of ${SIZES[0]}`]: spread(ratiosOf(runs, run => run.perSecond)),
  'CPU µs': median(runs.map(run => run.cpuMicroseconds)),
  [`CPU of ${SIZES[0]}`]: spread(
    runs.map((run, round) => smallestSubject!.runs[round]!.cpuMicroseconds / run.cpuMicroseconds),
  ),
  'p99 ms': median(runs.map(run => run.p99)),
}))
const ratios = ratiosOf(subjects.at(-1)!.runs, run => run.perSecond)
report('growth', { 'Exchanges on SQLite by the number of keys, 32 connections': rows }, [
  {
    what: `exchange with ${SIZES.at(-1)!.toLocaleString('en')} keys, of ${SIZES[0]!.toLocaleString('en')}`,
    wanted: '≥ 0.90',
    measured: spread(ratios),
    reached: median(ratios) >= 0.9,
  },
])
