import { freePort } from '../packages/server/test/support/free-port.ts'
import { exchangeBodies, postgresDatabase } from './support/databases.ts'
import { type Load, type Measured, startLoad } from './support/load.ts'
import { childrenOf, LOAD_CORE, pinBench, SERVER_CORE } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Scaling over cores: one process per core on one PostgreSQL. Each process gets the same open-loop load, once alone and
 * once concurrently with the other. If an exchange costs the same processor time both times, throughput scales with
 * cores. A process is compared with itself, since the second shares its core with PostgreSQL and the load generator. A
 * node of two processes on one port (`KEYWAY_PROCESSES=2`) gets the load of both; its supervisor's processor time is
 * included.
 */

/** The runs of the first and the second process in one round. */
type Pair = Measured[]
const NAMES = ['first', 'second'] as const
const ROUNDS = QUICK ? 5 : 9
const RUN_MS = QUICK ? 1500 : 3000
/** Requests a second per process, so that two processes, the load and PostgreSQL fit on two cores. */
const RATE = 1200

pinBench()
await using database = await postgresDatabase(1000)
await using first = await startKeyway(database.settings, { core: SERVER_CORE })
await using second = await startKeyway(database.settings, { core: LOAD_CORE })
const shared = { KEYWAY_PROCESSES: '2', KEYWAY_PORT: String(await freePort()) }
await using node = await startKeyway({ ...database.settings, ...shared }, { core: [SERVER_CORE, LOAD_CORE] })
await using loadOnFirst = await startLoad()
await using loadOnSecond = await startLoad()
const bodies = exchangeBodies(1000)

await Promise.all([exchanges(loadOnFirst, first), exchanges(loadOnSecond, second)])
const alone: Pair[] = []
const together: Pair[] = []
const nodeRuns: Measured[] = []
await exchangesOnNode()
for (let round = 0; round < ROUNDS; round++) {
  const before = await exchanges(loadOnFirst, first)
  const both = await Promise.all([exchanges(loadOnFirst, first), exchanges(loadOnSecond, second)])
  alone.push([before, await exchanges(loadOnSecond, second)])
  together.push(both)
  nodeRuns.push(await exchangesOnNode())
}
const nodeRatios = nodeRuns.map(({ cpuMicroseconds }, round) => cpuMicroseconds / mean(alone[round]!))
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
  return together.map(
    (both, round) => both[process]!.cpuMicroseconds / alone[round]![process]!.cpuMicroseconds,
  )
}

function row(process: number): Row {
  const medianOf = (runs: Pair[], pick: (run: Measured) => number) =>
    median(runs.map(run => pick(run[process]!)))
  return {
    '': `${NAMES[process]} process`,
    'exchanges/s alone': Math.round(medianOf(alone, run => run.perSecond)),
    'CPU µs alone': medianOf(alone, run => run.cpuMicroseconds),
    'exchanges/s together': Math.round(medianOf(together, run => run.perSecond)),
    'CPU µs together': medianOf(together, run => run.cpuMicroseconds),
  }
}

function rowOfNode(): Row {
  return {
    '': 'both on one port',
    'exchanges/s together': Math.round(median(nodeRuns.map(run => run.perSecond))),
    'CPU µs together': median(nodeRuns.map(run => run.cpuMicroseconds)),
  }
}

function mean(pair: Pair): number {
  return pair.reduce((sum, { cpuMicroseconds }) => sum + cpuMicroseconds, 0) / pair.length
}

function exchanges(load: Load, { port, pid }: RunningProcess): Promise<Measured> {
  return exchangesAt(load, port, pid, RATE)
}

function exchangesOnNode(): Promise<Measured> {
  return exchangesAt(loadOnFirst, node.port, [node.pid, ...childrenOf(node.pid)], 2 * RATE)
}

function exchangesAt(
  load: Load,
  port: number,
  pids: number | readonly number[],
  rate: number,
): Promise<Measured> {
  const job = { port, connections: 32, method: 'POST', path: '/auth/agent-token', bodies }
  return load.run({ ...job, warmUpMs: 500, durationMs: RUN_MS, rate }, pids)
}
