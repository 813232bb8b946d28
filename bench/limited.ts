import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { BY_COMMAND_LINE } from '../packages/server/src/audit/audit.ts'
import { loadConfig } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { openServices } from '../packages/server/src/services.ts'
import { benchId, benchKey, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures how a key that sends three times its limit affects other keys: their exchanges at a fixed rate, alternately
 * with and without the limited key. On one node with SQLite, and on two nodes with PostgreSQL, both of which the
 * limited key uses.
 */

const KEYS = 1000
const LIMITED_KEY = 0
/** The key's limit: exchanges in a second. */
const LIMIT = 100
const SENT_PER_SECOND = 3 * LIMIT
const SENT_BY_OTHERS_PER_SECOND = 500
const CONNECTIONS = 32
const ROUNDS = QUICK ? 3 : 9
const RUN_MS = QUICK ? 1500 : 4000
/** Largest allowed ratio of p99: on a quiet machine two equal runs differ by less than this. */
const MAX_P99_RATIO = 1.25
/**
 * The limited key is used from another network than the other keys, since its refusals may make the service close new
 * connections of that network (http/connection-guard.ts).
 */
const LIMITED_ADDRESS = '127.1.0.1'

pinBench()
await using sqlite = await sqliteDatabase(KEYS)
await using postgres = await postgresDatabase(KEYS)
await using load = await startLoad()
for (const { settings } of [sqlite, postgres]) await setLimit(settings)
await using sqliteNode = await startKeyway(sqlite.settings)
await using firstNode = await startKeyway(postgres.settings)
await using secondNode = await startKeyway(postgres.settings)

interface Round {
  withoutLimitedKey: Measurement
  besideLimitedKey: Measurement
  passed: number
}

const otherBodies = Array.from({ length: KEYS - 1 }, (_, n) => JSON.stringify({ api_key: benchKey(n + 1) }))
const deployments: [string, RunningProcess[]][] = [
  ['SQLite', [sqliteNode]],
  ['PostgreSQL, two nodes', [firstNode, secondNode]],
]
const rows: Row[] = []
const targets = []
for (const [deployment, nodes] of deployments) {
  await run(nodes[0]!, 2000)
  const rounds: Round[] = []
  const httpAgent = new Agent({ keepAlive: true, maxSockets: 4, localAddress: LIMITED_ADDRESS })
  for (let n = 0; n < ROUNDS; n++) {
    const withoutLimitedKey = await run(nodes[0]!)
    const limitedLoad = startLimited(nodes, httpAgent)
    const besideLimitedKey = await run(nodes[0]!)
    rounds.push({ withoutLimitedKey, besideLimitedKey, passed: await limitedLoad.stop() })
  }
  httpAgent.destroy()
  const medianOf = (pick: (round: Round) => number) => median(rounds.map(pick))
  rows.push({
    '': deployment,
    'p50 ms without': medianOf(({ withoutLimitedKey }) => withoutLimitedKey.p50),
    beside: medianOf(({ besideLimitedKey }) => besideLimitedKey.p50),
    'p99 ms without': medianOf(({ withoutLimitedKey }) => withoutLimitedKey.p99),
    'beside ': medianOf(({ besideLimitedKey }) => besideLimitedKey.p99),
    'let through a second': medianOf(({ passed }) => passed),
  })
  const ratios = rounds.map(
    ({ withoutLimitedKey, besideLimitedKey }) => besideLimitedKey.p99 / withoutLimitedKey.p99,
  )
  targets.push({
    what: `p99 of others beside a key at three times its limit, of that without, on ${deployment}`,
    wanted: `≤ ${MAX_P99_RATIO}`,
    measured: spread(ratios),
    reached: median(ratios) <= MAX_P99_RATIO,
  })
}
report(
  'limited',
  {
    [`${SENT_BY_OTHERS_PER_SECOND} exchanges a second of others, ${SENT_PER_SECOND} of a key with ${LIMIT}`]:
      rows,
  },
  targets,
)

async function setLimit(settings: Record<string, string>): Promise<void> {
  const services = await openServices(loadConfig(settings), createLog('error'))
  const limits = { requests: [{ limit: LIMIT, per: 'second' as const }], spend: [], quota: null }
  await services.apiKeys.setOperatorLimits(benchId(2, LIMITED_KEY), limits, BY_COMMAND_LINE)
  await services.close()
}

function run({ port, pid }: RunningProcess, durationMs = RUN_MS): Promise<Measurement> {
  const job = {
    port,
    connections: CONNECTIONS,
    method: 'POST',
    path: '/auth/agent-token',
    bodies: otherBodies,
  }
  return load.run({ ...job, warmUpMs: 500, durationMs, rate: SENT_BY_OTHERS_PER_SECOND }, pid)
}

/** Sends exchanges of the limited key until `stop`, which resolves with the number of answers 200 per second. */
function startLimited(nodes: readonly RunningProcess[], httpAgent: Agent): { stop(): Promise<number> } {
  const startedAt = performance.now()
  const pending = new Set<Promise<void>>()
  let sentCount = 0
  let passedCount = 0
  const exchange = async (port: number): Promise<void> => {
    const options = { port, path: '/auth/agent-token', method: 'POST', agent: httpAgent }
    const sending = request({ ...options, headers: { 'Content-Type': 'application/json' } })
    sending.end(JSON.stringify({ api_key: benchKey(LIMITED_KEY) }))
    const [answer] = (await once(sending, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    if (answer.statusCode === 200) passedCount++
    else if (answer.statusCode !== 429) throw new Error(`answered ${answer.statusCode}`)
  }
  const timer = setInterval(() => {
    for (; sentCount < ((performance.now() - startedAt) / 1000) * SENT_PER_SECOND; sentCount++) {
      const pendingExchange = exchange(nodes[sentCount % nodes.length]!.port).finally(() =>
        pending.delete(pendingExchange),
      )
      pending.add(pendingExchange)
    }
  }, 1)
  return {
    async stop() {
      clearInterval(timer)
      const seconds = (performance.now() - startedAt) / 1000
      await Promise.all(pending)
      return passedCount / seconds
    },
  }
}
