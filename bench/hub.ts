import { setTimeout as wait } from 'node:timers/promises'
import { startAgents } from './support/agents.ts'
import { benchKey, sqliteDatabase } from './support/databases.ts'
import type { AgentsResult } from './support/hub-agents.ts'
import { cpuSeconds, pinBench, residentBytes } from './support/machine.ts'
import { type RunningProcess, startKeyway, startProgram } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/** Live connections: memory, and the speed of connects, renewals, messages and revocations, compared with bare `ws`. */

const KEYS = 1000
/** Below the usual limit of 20,000 open files per process. */
const IDLE_CONNECTIONS = QUICK ? 5000 : 15_000
const CONNECTIONS_OF_ONE_KEY = QUICK ? 5000 : 10_000
const ROUNDS = 3
const CONNECT_ROUNDS = 11
const CONNECTS_PER_ROUND = QUICK ? 1000 : 3000
const WARM_UP_CONNECTIONS = 300
const CONCURRENCY = 64
const RENEW_MS = QUICK ? 1000 : 3000
const RECEIVERS = 999
/** Delay from the last connect to the measurement of memory, for garbage collection. */
const SETTLE_MS = QUICK ? 5000 : 12_000

pinBench()
await using database = await sqliteDatabase(KEYS)
await using agents = await startAgents()

await using keyway = toMeasured('keyway', await startKeywayWithTokens())
await using bare = toMeasured('bare ws', {
  server: await startProgram('./bare-ws.ts'),
  tokens: ['none'],
})
const both = [keyway, bare]
for (const measured of both) await measureIdle(measured)
// Alternating, so that a slower machine affects both alike.
for (let round = 0; round < CONNECT_ROUNDS; round++) {
  for (const measured of both) await measureConnects(measured)
}
for (const measured of both) await measureFanOut(measured)
for (let round = 0; round < ROUNDS; round++) {
  for (const measured of both) await measureClosing(measured, round)
}

const connectRatio = keyway.connects.map((rate, round) => rate / bare.connects[round]!)
const memory: Target = {
  what: 'memory of an idle connection',
  wanted: '≤ 8 KB',
  measured: `${keyway.kilobytes.toFixed(1)} KB (bare ws ${bare.kilobytes.toFixed(1)} KB)`,
  reached: keyway.kilobytes <= 8,
}
const targets: Target[] = [
  // With few connections, most of the memory is the heap that grew during the connects.
  ...(QUICK ? [] : [memory]),
  {
    what: 'connects, of bare ws',
    wanted: '≥ 0.40',
    measured: spread(connectRatio),
    reached: median(connectRatio) >= 0.4,
  },
  {
    what: `${CONNECTIONS_OF_ONE_KEY} connections of a revoked key closed`,
    wanted: '≤ 500 ms',
    measured: `${spread(keyway.closing, 0)} ms (bare ws, closing all: ${spread(bare.closing, 0)} ms)`,
    reached: median(keyway.closing) <= 500,
  },
]
report('hub', { [`Hub, ${IDLE_CONNECTIONS} idle connections`]: both.map(toRow) }, targets)

interface Measured extends AsyncDisposable {
  name: string
  server: RunningProcess
  tokens: string[]
  kilobytes: number
  idleCpu: number
  renewals: number
  connects: number[]
  /** Microseconds of processor time. */
  connectCpu: number[]
  /** Milliseconds. */
  fanOuts: number[]
  /** Milliseconds. */
  closing: number[]
}

async function startKeywayWithTokens() {
  const server = await startKeyway({ ...database.settings, KEYWAY_HUB_MAX_CONNECTIONS: '20000' })
  const tokens: string[] = []
  for (let n = 0; n < KEYS; n++) tokens.push(await exchange(server, benchKey(n)))
  return { server, tokens }
}

function toMeasured(
  name: string,
  { server, tokens }: { server: RunningProcess; tokens: string[] },
): Measured {
  return {
    name,
    server,
    tokens,
    kilobytes: 0,
    idleCpu: 0,
    renewals: 0,
    connects: [],
    connectCpu: [],
    fanOuts: [],
    closing: [],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function connect({ server, tokens }: Measured, count: number, of = tokens): Promise<AgentsResult> {
  return agents.run({ do: 'connect', port: server.port, tokens: of, count, atOnce: CONCURRENCY })
}

async function measureIdle(measured: Measured): Promise<void> {
  const { pid } = measured.server
  // Memory is measured first, before freed memory of earlier connections could be reused.
  await connect(measured, WARM_UP_CONNECTIONS)
  await agents.run({ do: 'disconnect' })
  await wait(SETTLE_MS / 2)
  const empty = residentBytes(pid)
  await connect(measured, IDLE_CONNECTIONS)
  await wait(SETTLE_MS)
  measured.kilobytes = (residentBytes(pid) - empty) / 1024 / IDLE_CONNECTIONS
  const busyBefore = cpuSeconds(pid)
  await wait(2000)
  measured.idleCpu = ((cpuSeconds(pid) - busyBefore) / 2) * 100
  const renewed = await agents.run({
    do: 'ask',
    frames: measured.tokens.map(token => JSON.stringify({ type: 'token', token })),
    answer: 'token_accepted',
    atOnce: CONCURRENCY,
    durationMs: RENEW_MS,
  })
  measured.renewals = renewed.count / renewed.seconds
  await agents.run({ do: 'disconnect' })
  await wait(1000)
}

async function measureConnects(measured: Measured): Promise<void> {
  const { pid } = measured.server
  const before = cpuSeconds(pid)
  const { count, seconds } = await connect(measured, CONNECTS_PER_ROUND)
  measured.connects.push(count / seconds)
  measured.connectCpu.push(((cpuSeconds(pid) - before) * 1e6) / count)
  await agents.run({ do: 'disconnect' })
  await wait(500)
}

async function measureFanOut(measured: Measured): Promise<void> {
  await connect(measured, RECEIVERS + 1, [measured.tokens[0]!])
  for (let round = 0; round < ROUNDS; round++) {
    const text = JSON.stringify({ type: 'send', id: `fan-${round}`, to: 'all', data: `round ${round}` })
    const { seconds } = await agents.run({
      do: 'fan-out',
      frame: text,
      answer: `round ${round}`,
      receivers: RECEIVERS,
    })
    measured.fanOuts.push(seconds * 1000)
  }
  await agents.run({ do: 'disconnect' })
}

async function measureClosing(measured: Measured, round: number): Promise<void> {
  await wait(1000)
  const close = measured === keyway ? revoke(measured.server, round) : closeAll(measured.server)
  measured.closing.push(await close)
}

function toRow(measured: Measured): Row {
  return {
    '': measured.name,
    'KB each': measured.kilobytes,
    'CPU % while idle': measured.idleCpu,
    'connects/s': Math.round(median(measured.connects)),
    'CPU µs of a connect': median(measured.connectCpu),
    'renewals/s': Math.round(measured.renewals),
    [`fan-out to ${RECEIVERS}, ms`]: spread(measured.fanOuts, 0),
    [`closing ${CONNECTIONS_OF_ONE_KEY}, ms`]: spread(measured.closing, 0),
  }
}

/** Milliseconds from the revocation request until the last connection of the key got its close frame. */
async function revoke(server: RunningProcess, round: number): Promise<number> {
  const key = benchKey(500 + round)
  const token = await exchange(server, key)
  await agents.run({
    do: 'connect',
    port: server.port,
    tokens: [token],
    count: CONNECTIONS_OF_ONE_KEY,
    atOnce: CONCURRENCY,
  })
  const closed = agents.run({ do: 'await-close' })
  const startedAt = performance.now()
  await post(server, '/auth/revoke', { token: key })
  const { closes } = await closed
  if (closes['4410'] !== CONNECTIONS_OF_ONE_KEY) throw new Error(`other closes: ${JSON.stringify(closes)}`)
  return performance.now() - startedAt
}

async function closeAll(server: RunningProcess): Promise<number> {
  await agents.run({
    do: 'connect',
    port: server.port,
    tokens: ['none'],
    count: CONNECTIONS_OF_ONE_KEY,
    atOnce: CONCURRENCY,
  })
  const closed = agents.run({ do: 'await-close' })
  const startedAt = performance.now()
  await agents.request({ do: 'fan-out', frame: '{"type":"close"}', answer: '', receivers: 0 })
  await closed
  return performance.now() - startedAt
}

async function exchange(server: RunningProcess, key: string): Promise<string> {
  const answer = await post(server, '/auth/agent-token', { api_key: key })
  return ((await answer.json()) as { token: string }).token
}

async function post({ port }: RunningProcess, path: string, body: unknown): Promise<Response> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(await answer.text())
  return answer
}
