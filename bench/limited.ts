import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { BY_COMMAND_LINE } from '../packages/server/src/audit/audit.ts'
import { loadConfig } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { openServices } from '../packages/server/src/services.ts'
import { benchId, benchKey, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { type Measured, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures how a key that sends three times its limit affects others: their exchanges at a fixed rate, alternately with
 * and without it. On one node with SQLite, and on two nodes with PostgreSQL, both used by the key.
 */

const KEYS = 1000
const LIMITED_KEY = 0
/** Exchanges in a second. */
const LIMIT = 100
const SENT = 3 * LIMIT
const OTHERS = 500
const CONNECTIONS = 32
const ROUNDS = QUICK ? 3 : 9
const RUN_MS = QUICK ? 1500 : 4000
/** Largest allowed ratio of p99: on a quiet machine two equal runs differ by less than this. */
const WANTED = 1.25
/** A client in another network than the others, since refusals make a network noisy (http/connection-guard.ts). */
const ADDRESS = '127.1.0.1'

pinBench()
await using sqlite = await sqliteDatabase(KEYS)
await using postgres = await postgresDatabase(KEYS)
await using load = await startLoad()
for (const { settings } of [sqlite, postgres]) await limit(settings)
await using alone = await startKeyway(sqlite.settings)
await using first = await startKeyway(postgres.settings)
await using second = await startKeyway(postgres.settings)

interface Compared {
  without: Measured
  beside: Measured
  passed: number
}

const others = Array.from({ length: KEYS - 1 }, (_, n) => JSON.stringify({ api_key: benchKey(n + 1) }))
const places: [string, RunningProcess[]][] = [
  ['SQLite', [alone]],
  ['PostgreSQL, two nodes', [first, second]],
]
const rows: Row[] = []
const targets = []
for (const [place, nodes] of places) {
  await run(nodes[0]!, 2000)
  const rounds: Compared[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: 4, localAddress: ADDRESS })
  for (let n = 0; n < ROUNDS; n++) {
    const without = await run(nodes[0]!)
    const limited = startLimited(nodes, agent)
    const beside = await run(nodes[0]!)
    rounds.push({ without, beside, passed: await limited.stop() })
  }
  agent.destroy()
  const of = (pick: (round: Compared) => number) => median(rounds.map(pick))
  rows.push({
    '': place,
    'p50 ms without': of(({ without }) => without.p50),
    beside: of(({ beside }) => beside.p50),
    'p99 ms without': of(({ without }) => without.p99),
    'beside ': of(({ beside }) => beside.p99),
    'let through a second': of(({ passed }) => passed),
  })
  const ratios = rounds.map(({ without, beside }) => beside.p99 / without.p99)
  targets.push({
    what: `p99 of others beside a key at three times its limit, of that without, on ${place}`,
    wanted: `≤ ${WANTED}`,
    measured: spread(ratios),
    reached: median(ratios) <= WANTED,
  })
}
report(
  'limited',
  { [`${OTHERS} exchanges a second of others, ${SENT} of a key with ${LIMIT}`]: rows },
  targets,
)

async function limit(settings: Record<string, string>): Promise<void> {
  const services = await openServices(loadConfig(settings), createLog('error'))
  const limits = { requests: [{ limit: LIMIT, per: 'second' as const }], spend: [], quota: null }
  await services.apiKeys.setOperatorLimits(benchId(2, LIMITED_KEY), limits, BY_COMMAND_LINE)
  await services.close()
}

function run({ port, pid }: RunningProcess, durationMs = RUN_MS): Promise<Measured> {
  const order = { port, connections: CONNECTIONS, method: 'POST', path: '/auth/agent-token', bodies: others }
  return load.run({ ...order, warmUpMs: 500, durationMs, rate: OTHERS }, pid)
}

/** Sends the exchanges of the limited key until it is stopped, which resolves with how many a second were answered 200. */
function startLimited(nodes: readonly RunningProcess[], agent: Agent): { stop(): Promise<number> } {
  const began = performance.now()
  const pending = new Set<Promise<void>>()
  let sent = 0
  let passed = 0
  const exchange = async (port: number): Promise<void> => {
    const options = { port, path: '/auth/agent-token', method: 'POST', agent }
    const sending = request({ ...options, headers: { 'Content-Type': 'application/json' } })
    sending.end(JSON.stringify({ api_key: benchKey(LIMITED_KEY) }))
    const [answer] = (await once(sending, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    if (answer.statusCode === 200) passed++
    else if (answer.statusCode !== 429) throw new Error(`answered ${answer.statusCode}`)
  }
  const timer = setInterval(() => {
    for (; sent < ((performance.now() - began) / 1000) * SENT; sent++) {
      const exchanged = exchange(nodes[sent % nodes.length]!.port).finally(() => pending.delete(exchanged))
      pending.add(exchanged)
    }
  }, 1)
  return {
    async stop() {
      clearInterval(timer)
      const seconds = (performance.now() - began) / 1000
      await Promise.all(pending)
      return passed / seconds
    },
  }
}
