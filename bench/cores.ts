import { freePort } from '../packages/server/test/support/free-port.ts'
import { exchangeBodies, postgresDatabase } from './support/databases.ts'
import { type Load, type Measurement, startLoad } from './support/load.ts'
import { childrenOf, LOAD_CORE, pinBench, SERVER_CORE } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures how throughput scales with cores: one process per core, on one PostgreSQL. Each process gets the same
 * open-loop load, once alone and once concurrently with the other. If an exchange costs the same processor time both
 * times, throughput scales with cores. A process is compared with itself, since the second shares its core with
 * PostgreSQL and the load generator. A node of two processes on one port (`KEYWAY_PROCESSES=2`) gets the load of both;
 * its supervisor's processor time is included.
 */

/** The runs of the first and the second process in one round. */
type Pair = Measurement[]
const NAMES = ['first', 'second'] as const
const ROUNDS = QUICK ? 5 : 9
const RUN_MS = QUICK ? 1500 : 3000
/** Requests a second per process, so that two processes, the load and PostgreSQL fit on two cores. */
const RATE = 1200

pinBench()
await using database = await postgresDatabase(1000)
await using firstProcess = await startKeyway(database.settings, { core: SERVER_CORE })
await using secondProcess = await startKeyway(database.settings, { core: LOAD_CORE })
const nodeSettings = { KEYWAY_PROCESSES: '2', KEYWAY_PORT: String(await freePort()) }
await using node = await startKeyway(
  { ...database.settings, ...nodeSettings },
  { core: [SERVER_CORE, LOAD_CORE] },
)
await using loadOnFirst = await startLoad()
await using loadOnSecond = await startLoad()
const bodies = exchangeBodies(1000)

await Promise.all([
  measureExchanges(loadOnFirst, firstProcess),
  measureExchanges(loadOnSecond, secondProcess),
])
const aloneRuns: Pair[] = []
const concurrentRuns: Pair[] = []
const nodeRuns: Measurement[] = []
await measureNode()
for (let round = 0; round < ROUNDS; round++) {
  const firstAlone = await measureExchanges(loadOnFirst, firstProcess)
  const concurrentPair = await Promise.all([
    measureExchanges(loadOnFirst, firstProcess),
    measureExchanges(loadOnSecond, secondProcess),
  ])
  aloneRuns.push([firstAlone, await measureExchanges(loadOnSecond, secondProcess)])
  concurrentRuns.push(concurrentPair)
  nodeRuns.push(await measureNode())
}
const nodeRatios = nodeRuns.map(({ cpuMicroseconds }, round) => cpuMicroseconds / meanCpu(aloneRuns[round]!))
report('cores', { 'CPU of one exchange on PostgreSQL': [...[0, 1].map(row), rowOfNode()] }, [
  ...[0, 1].map(process => {
    const ratios = ratiosOf(process)
    return {
      what: `CPU of an exchange in the ${NAMES[process]} of two processes, of the same process alone`,
      wanted: '0.90–1.10',
      measured: spread(ratios),
      reached: Math.abs(median(ratios) - 1) <= 0.1,
    }
  }),
  {
    what: 'CPU of an exchange in two processes on one port, of one alone',
    wanted: '≤ 1.10',
    measured: spread(nodeRatios),
    reached: median(nodeRatios) <= 1.1,
  },
])

function ratiosOf(process: number): number[] {
  return concurrentRuns.map(
    (both, round) => both[process]!.cpuMicroseconds / aloneRuns[round]![process]!.cpuMicroseconds,
  )
}

function row(process: number): Row {
  const medianOf = (runs: Pair[], pick: (run: Measurement) => number) =>
    median(runs.map(run => pick(run[process]!)))
  return {
    '': `${NAMES[process]} process`,
    'exchanges/s alone': Math.round(medianOf(aloneRuns, run => run.perSecond)),
    'CPU µs alone': medianOf(aloneRuns, run => run.cpuMicroseconds),
    'exchanges/s together': Math.round(medianOf(concurrentRuns, run => run.perSecond)),
    'CPU µs together': medianOf(concurrentRuns, run => run.cpuMicroseconds),
  }
}

function rowOfNode(): Row {
  return {
    '': 'both on one port',
    'exchanges/s together': Math.round(median(nodeRuns.map(run => run.perSecond))),
    'CPU µs together': median(nodeRuns.map(run => run.cpuMicroseconds)),
  }
}

function meanCpu(pair: Pair): number {
  return pair.reduce((sum, { cpuMicroseconds }) => sum + cpuMicroseconds, 0) / pair.length
}

function measureExchanges(load: Load, { port, pid }: RunningProcess): Promise<Measurement> {
  return runExchanges(load, port, pid, RATE)
}

function measureNode(): Promise<Measurement> {
  return runExchanges(loadOnFirst, node.port, [node.pid, ...childrenOf(node.pid)], 2 * RATE)
}

function runExchanges(
  load: Load,
  port: number,
  pids: number | readonly number[],
  rate: number,
): Promise<Measurement> {
  const job = { port, connections: 32, method: 'POST', path: '/auth/agent-token', bodies }
  return load.run({ ...job, warmUpMs: 500, durationMs: RUN_MS, rate }, pids)
}
