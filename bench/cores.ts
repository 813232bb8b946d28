import { exchangeBodies, postgresDatabase } from './support/databases.ts'
import { type Measured, startLoad } from './support/load.ts'
import { LOAD_CORE, pinBench, SERVER_CORE } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * One process a core on one PostgreSQL. Both processes get the same load as the one did before, by the clock: where
 * an exchange costs the same processor time beside a second process as alone, nothing is shared but the database,
 * and cores add up.
 */

const ROUNDS = QUICK ? 3 : 7
const RUN_MS = QUICK ? 1500 : 3000
/** Low enough that two processes, the load and PostgreSQL find room on two cores. */
const RATE = 1200

pinBench()
await using database = await postgresDatabase(1000)
await using first = await startKeyway(database.settings, { core: SERVER_CORE })
await using second = await startKeyway(database.settings, { core: LOAD_CORE })
await using toFirst = await startLoad()
await using toSecond = await startLoad()
const bodies = exchangeBodies(1000)

await exchanges(toFirst, first)
await exchanges(toSecond, second)
const alone: Measured[] = []
const together: Measured[] = []
for (let round = 0; round < ROUNDS; round++) {
  alone.push(await exchanges(toFirst, first))
  const [one] = await Promise.all([exchanges(toFirst, first), exchanges(toSecond, second)])
  together.push(one)
}

const ratios = together.map((both, round) => both.cpuMicroseconds / alone[round]!.cpuMicroseconds)
const change = median(ratios) - 1
report(
  'cores',
  {
    'CPU of one exchange on PostgreSQL': [
      {
        '': 'one process',
        'exchanges/s': Math.round(median(alone.map(run => run.perSecond))),
        'CPU µs': median(alone.map(run => run.cpuMicroseconds)),
      },
      {
        '': 'the same beside a second',
        'exchanges/s': Math.round(median(together.map(run => run.perSecond))),
        'CPU µs': median(together.map(run => run.cpuMicroseconds)),
      },
    ],
  },
  [
    {
      what: 'CPU of an exchange with two processes, of one process',
      wanted: '0.90–1.10',
      measured: spread(ratios),
      reached: Math.abs(change) <= 0.1,
    },
  ],
)

function exchanges(load: typeof toFirst, { port, pid }: RunningProcess): Promise<Measured> {
  const order = { port, connections: 32, method: 'POST', path: '/auth/agent-token', bodies }
  return load.run({ ...order, warmUpMs: 500, durationMs: RUN_MS, rate: RATE }, pid)
}
