import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { sha256 } from '../packages/server/src/secrets.ts'
import { benchKey, exchangeBodies, sqliteDatabase } from './support/databases.ts'
import { openExchangeSteps } from './support/exchange-steps.ts'
import { type Measurement, startLoad } from './support/load.ts'
import { LOAD_CORE, pinBench, SERVER_CORE } from './support/machine.ts'
import { startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures how much processor time of the event loop a second thread saves in exchanges. The first table has only the
 * read and the signature, done by the event loop itself, or by a thread in batches (one for each turn of the event
 * loop). The second table has whole exchanges: on one core the event loop signs, on two a thread does. The second core
 * also runs the load generator, so processor time is compared, not throughput.
 */

const KEYS = 1000
const BATCHES = [1, 4, 16, 64]
const EXCHANGES = QUICK ? 4_000 : 32_000
const ROUNDS = QUICK ? 3 : 9
/** Number of batches in flight, so that the thread always has work while the event loop handles the answers. */
const BATCHES_IN_FLIGHT = 2

const JOB = {
  connections: 32,
  method: 'POST',
  path: '/auth/agent-token',
  warmUpMs: 500,
  durationMs: QUICK ? 1000 : 2000,
  rate: null,
}

interface Cost {
  /** Microseconds of processor time of the event loop's thread, per exchange. */
  eventLoop: number
  /** Microseconds of processor time of all threads, per exchange. */
  allThreads: number
}

pinBench()
await using database = await sqliteDatabase(KEYS)
await using load = await startLoad()
const bodies = exchangeBodies(KEYS)
const keyHashes = Array.from({ length: KEYS }, (_, n) => sha256(benchKey(n)))
const steps = openExchangeSteps(database.file)
const thread = new Worker(new URL('./support/exchange-thread.ts', import.meta.url), {
  workerData: database.file,
})
await once(thread, 'message')

const inlineCosts: Cost[] = []
const threadCosts = new Map(BATCHES.map(size => [size, [] as Cost[]]))
for (let round = -1; round < ROUNDS; round++) {
  const costs = [await measure(issueInline)]
  for (const size of BATCHES) costs.push(await measure(() => issueOnThread(size)))
  if (round < 0) continue
  inlineCosts.push(costs[0]!)
  for (const [index, size] of BATCHES.entries()) threadCosts.get(size)!.push(costs[index + 1]!)
}
steps.close()
thread.postMessage(null)
await once(thread, 'exit')

report(
  'threads',
  {
    'Read and signature of one exchange, microseconds of processor time': stepRows(),
    'Whole exchanges, microseconds of processor time': await measureWholeExchanges(),
  },
  [],
)

async function measureWholeExchanges(): Promise<Row[]> {
  await using firstDatabase = await sqliteDatabase(KEYS)
  await using secondDatabase = await sqliteDatabase(KEYS)
  await using onOneCore = await startKeyway(firstDatabase.settings, { core: SERVER_CORE })
  await using onTwoCores = await startKeyway(secondDatabase.settings, { core: [SERVER_CORE, LOAD_CORE] })
  const runs: Measurement[][] = [[], []]
  for (let round = -1; round < ROUNDS; round++) {
    for (const [index, server] of [onOneCore, onTwoCores].entries()) {
      const run = await load.run({ ...JOB, port: server.port, bodies }, server.pid)
      if (round >= 0) runs[index]!.push(run)
    }
  }
  return ['one core', 'two cores'].map((cores, index) => ({
    '': cores,
    'event loop': spread(runs[index]!.map(({ eventLoopMicroseconds }) => eventLoopMicroseconds)),
    'all threads': spread(runs[index]!.map(({ cpuMicroseconds }) => cpuMicroseconds)),
    'event loop, of one core': median(
      runs[index]!.map(
        ({ eventLoopMicroseconds }, round) => eventLoopMicroseconds / runs[0]![round]!.eventLoopMicroseconds,
      ),
    ),
  }))
}

function stepRows(): Row[] {
  const rowOf = (where: string, costs: Cost[]): Row => ({
    where,
    'event loop': spread(costs.map(({ eventLoop }) => eventLoop)),
    'all threads': spread(costs.map(({ allThreads }) => allThreads)),
    'event loop, of inline': median(
      costs.map(({ eventLoop }, round) => eventLoop / inlineCosts[round]!.eventLoop),
    ),
  })
  return [
    rowOf('on the event loop', inlineCosts),
    ...[...threadCosts].map(([size, costs]) => rowOf(`on a thread, ${size} a message`, costs)),
  ]
}

async function measure(issue: () => Promise<void>): Promise<Cost> {
  const threadCpuBefore = process.threadCpuUsage()
  const processCpuBefore = process.cpuUsage()
  await issue()
  const threadCpu = process.threadCpuUsage(threadCpuBefore)
  const processCpu = process.cpuUsage(processCpuBefore)
  return {
    eventLoop: (threadCpu.user + threadCpu.system) / EXCHANGES,
    allThreads: (processCpu.user + processCpu.system) / EXCHANGES,
  }
}

async function issueInline(): Promise<void> {
  for (let n = 0; n < EXCHANGES; n++)
    if (!steps.issueToken(keyHashes[n % KEYS]!)) throw new Error('unknown key')
}

async function issueOnThread(size: number): Promise<void> {
  let sentCount = 0
  const send = () => {
    thread.postMessage(Array.from({ length: size }, (_, index) => keyHashes[(sentCount + index) % KEYS]!))
    sentCount += size
  }
  for (let n = 0; n < BATCHES_IN_FLIGHT; n++) send()
  for (let receivedCount = 0; receivedCount < EXCHANGES; receivedCount += size) {
    const [tokens] = (await once(thread, 'message')) as [string[]]
    if (tokens.length !== size || tokens.includes(null!)) throw new Error('unknown key')
    if (sentCount < EXCHANGES) send()
  }
}
