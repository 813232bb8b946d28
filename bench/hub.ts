import { setTimeout as wait } from 'node:timers/promises'
import { startAgents } from './support/agents.ts'
import { benchKey, sqliteDatabase } from './support/databases.ts'
import type { AgentsResult } from './support/hub-agents.ts'
import { cpuSeconds, pinBench, residentBytes } from './support/machine.ts'
import { type RunningProcess, startKeyway, startProgram } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures live connections: memory, and the speed of connects, renewals, messages and revocations, compared with bare
 * `ws`.
 */

const KEYS = 1000
/** Each takes an open file in every process; machines often permit a process no more than 20,000. */
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

await using keyway = toSubject('keyway', await startKeywayWithTokens())
await using bareWs = toSubject('bare ws', {
  server: await startProgram('./bare-ws.ts'),
  tokens: ['none'],
})
const subjects = [keyway, bareWs]
for (const subject of subjects) await measureIdle(subject)
// Alternating, so that a machine that changes its speed affects both alike.
for (let round = 0; round < CONNECT_ROUNDS; round++) {
  for (const subject of subjects) await measureConnects(subject)
}
for (const subject of subjects) await measureFanOut(subject)
for (let round = 0; round < ROUNDS; round++) {
  for (const subject of subjects) await measureClosing(subject, round)
}

const connectRatio = keyway.connectsPerSecond.map((rate, round) => rate / bareWs.connectsPerSecond[round]!)
const memoryTarget: Target = {
  what: 'memory of an idle connection',
  wanted: '≤ 8 KB',
  measured: `${keyway.kilobytes.toFixed(1)} KB (bare ws ${bareWs.kilobytes.toFixed(1)} KB)`,
  reached: keyway.kilobytes <= 8,
}
const targets: Target[] = [
  // With few connections, most of the memory is the heap that grew during the connects.
  ...(QUICK ? [] : [memoryTarget]),
  {
    what: 'connects, of bare ws',
    wanted: '≥ 0.40',
    measured: spread(connectRatio),
    reached: median(connectRatio) >= 0.4,
  },
  {
    what: `${CONNECTIONS_OF_ONE_KEY} connections of a revoked key closed`,
    wanted: '≤ 500 ms',
    measured: `${spread(keyway.closingMs, 0)} ms (bare ws, closing all: ${spread(bareWs.closingMs, 0)} ms)`,
    reached: median(keyway.closingMs) <= 500,
  },
]
report('hub', { [`Hub, ${IDLE_CONNECTIONS} idle connections`]: subjects.map(toRow) }, targets)

interface HubSubject extends AsyncDisposable {
  name: string
  server: RunningProcess
  tokens: string[]
  kilobytes: number
  idleCpuPercent: number
  renewalsPerSecond: number
  connectsPerSecond: number[]
  connectCpuMicroseconds: number[]
  fanOutsMs: number[]
  closingMs: number[]
}

async function startKeywayWithTokens() {
  const server = await startKeyway({ ...database.settings, KEYWAY_HUB_MAX_CONNECTIONS: '20000' })
  const tokens: string[] = []
  for (let n = 0; n < KEYS; n++) tokens.push(await exchange(server, benchKey(n)))
  return { server, tokens }
}

function toSubject(
  name: string,
  { server, tokens }: { server: RunningProcess; tokens: string[] },
): HubSubject {
  return {
    name,
    server,
    tokens,
    kilobytes: 0,
    idleCpuPercent: 0,
    renewalsPerSecond: 0,
    connectsPerSecond: [],
    connectCpuMicroseconds: [],
    fanOutsMs: [],
    closingMs: [],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function connect({ server, tokens }: HubSubject, count: number, of = tokens): Promise<AgentsResult> {
  return agents.run({ do: 'connect', port: server.port, tokens: of, count, atOnce: CONCURRENCY })
}

async function measureIdle(subject: HubSubject): Promise<void> {
  const { pid } = subject.server
  // Called before the other measurements, so that the measured connections cannot reuse memory that those have freed. A
  // few connections come first, to exclude what only the first ones allocate.
  await connect(subject, WARM_UP_CONNECTIONS)
  await agents.run({ do: 'disconnect' })
  await wait(SETTLE_MS / 2)
  const bytesBefore = residentBytes(pid)
  await connect(subject, IDLE_CONNECTIONS)
  await wait(SETTLE_MS)
  subject.kilobytes = (residentBytes(pid) - bytesBefore) / 1024 / IDLE_CONNECTIONS
  const cpuBefore = cpuSeconds(pid)
  await wait(2000)
  subject.idleCpuPercent = ((cpuSeconds(pid) - cpuBefore) / 2) * 100
  const renewals = await agents.run({
    do: 'ask',
    frames: subject.tokens.map(token => JSON.stringify({ type: 'token', token })),
    answer: 'token_accepted',
    atOnce: CONCURRENCY,
    durationMs: RENEW_MS,
  })
  subject.renewalsPerSecond = renewals.count / renewals.seconds
  await agents.run({ do: 'disconnect' })
  await wait(1000)
}

async function measureConnects(subject: HubSubject): Promise<void> {
  const { pid } = subject.server
  const cpuBefore = cpuSeconds(pid)
  const { count, seconds } = await connect(subject, CONNECTS_PER_ROUND)
  subject.connectsPerSecond.push(count / seconds)
  subject.connectCpuMicroseconds.push(((cpuSeconds(pid) - cpuBefore) * 1e6) / count)
  await agents.run({ do: 'disconnect' })
  await wait(500)
}

async function measureFanOut(subject: HubSubject): Promise<void> {
  await connect(subject, RECEIVERS + 1, [subject.tokens[0]!])
  for (let round = 0; round < ROUNDS; round++) {
    const text = JSON.stringify({ type: 'send', id: `fan-${round}`, to: 'all', data: `round ${round}` })
    const { seconds } = await agents.run({
      do: 'fan-out',
      frame: text,
      answer: `round ${round}`,
      receivers: RECEIVERS,
    })
    subject.fanOutsMs.push(seconds * 1000)
  }
  await agents.run({ do: 'disconnect' })
}

async function measureClosing(subject: HubSubject, round: number): Promise<void> {
  await wait(1000)
  const closing = subject === keyway ? revoke(subject.server, round) : closeAll(subject.server)
  subject.closingMs.push(await closing)
}

function toRow(subject: HubSubject): Row {
  return {
    '': subject.name,
    'KB each': subject.kilobytes,
    'CPU % while idle': subject.idleCpuPercent,
    'connects/s': Math.round(median(subject.connectsPerSecond)),
    'CPU µs of a connect': median(subject.connectCpuMicroseconds),
    'renewals/s': Math.round(subject.renewalsPerSecond),
    [`fan-out to ${RECEIVERS}, ms`]: spread(subject.fanOutsMs, 0),
    [`closing ${CONNECTIONS_OF_ONE_KEY}, ms`]: spread(subject.closingMs, 0),
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
  const closeReport = agents.run({ do: 'await-close' })
  const startedAt = performance.now()
  await post(server, '/auth/revoke', { token: key })
  const { closes } = await closeReport
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
  const closeReport = agents.run({ do: 'await-close' })
  const startedAt = performance.now()
  await agents.start({ do: 'fan-out', frame: '{"type":"close"}', answer: '', receivers: 0 })
  await closeReport
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
