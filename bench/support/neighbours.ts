import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import WebSocket from 'ws'
import { serveJobs } from './child.ts'
import {
  KINDS,
  type Kind,
  type NeighboursJob,
  type NeighboursResult,
  SIGN_INS_PER_SECOND,
  type UserLatencies,
} from './neighbours-protocol.ts'
import { percentile } from './statistics.ts'

/*
 * The users whom an attack must not affect: exchanges, sign-ins and messages at fixed rates, from other networks than
 * the attacker's. An open loop: latency counts from the time at which a request was due.
 */

const CALLS_PER_SECOND: Record<Kind, number> = {
  exchange: 200,
  send: SIGN_INS_PER_SECOND,
  verify: SIGN_INS_PER_SECOND,
  message: 50,
}
const TIMEOUT_MS = 5000

interface Tally {
  latencies: number[]
  failures: string[]
}

serveJobs(run)

async function run(job: NeighboursJob): Promise<NeighboursResult> {
  const tallies = Object.fromEntries(
    KINDS.map(kind => [kind, { latencies: [], failures: [] }]),
  ) as unknown as Record<Kind, Tally>
  const http = new Agent({ keepAlive: true, maxSockets: 64 })
  const post = (path: string, body: unknown, number: number) => call(http, job.port, path, body, number)
  const messages = await openMessages(job)
  const linksToSend = job.signIns.values()
  const linksToVerify = job.signIns.values()
  const work: Record<Kind, (n: number) => Promise<void>> = {
    exchange: n => post('/auth/agent-token', { api_key: job.keys[n % job.keys.length] }, n),
    send: n => post('/auth/send-magic-link', { email: linksToSend.next().value!.email }, n),
    verify: n => {
      const { email, token } = linksToVerify.next().value!
      return post('/auth/verify-magic-link', { email, token }, n)
    },
    message: n => messages.exchange(n),
  }
  const loops = KINDS.map(kind =>
    runOpenLoop(CALLS_PER_SECOND[kind], job.durationMs, work[kind], tallies[kind]),
  )
  await Promise.all(loops)
  messages.close()
  http.destroy()
  return Object.fromEntries(
    KINDS.map(kind => [kind, latenciesOf(tallies[kind])]),
  ) as unknown as NeighboursResult
}

/** Starts `work` at a fixed rate, independent of the answers, and waits until all have finished. */
async function runOpenLoop(
  perSecond: number,
  durationMs: number,
  work: (n: number) => Promise<void>,
  tally: Tally,
): Promise<void> {
  const startedAt = performance.now()
  const count = Math.floor((durationMs / 1000) * perSecond)
  const pendingWork: Promise<void>[] = []
  for (let n = 0; n < count; n++) {
    const dueAt = startedAt + (n * 1000) / perSecond
    const waitMs = dueAt - performance.now()
    if (waitMs > 0) await wait(waitMs)
    pendingWork.push(
      work(n).then(
        () => void tally.latencies.push(performance.now() - dueAt),
        error => void tally.failures.push(String(error)),
      ),
    )
  }
  await Promise.all(pendingWork)
}

function latenciesOf({ latencies, failures }: Tally): UserLatencies {
  const latenciesOrTimeout = latencies.length > 0 ? latencies : [TIMEOUT_MS]
  return {
    count: latencies.length + failures.length,
    errors: failures.length,
    ...(failures[0] ? { error: failures[0] } : {}),
    p50: percentile(latenciesOrTimeout, 50),
    p99: percentile(latenciesOrTimeout, 99),
  }
}

/** One of many addresses, 127.8.x.y, so that no limit of a network is reached. */
function addressOf(n: number): string {
  return `127.8.${(n >> 7) & 127}.${1 + (n & 127)}`
}

function call(httpAgent: Agent, port: number, path: string, body: unknown, number: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const clientRequest = request(
      {
        agent: httpAgent,
        host: '127.0.0.1',
        port,
        localAddress: addressOf(number % 64),
        path,
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        timeout: TIMEOUT_MS,
      },
      answer => {
        let text = ''
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('end', () => {
          if (answer.statusCode === 200) resolve()
          else reject(new Error(`${path}: ${answer.statusCode} ${text.slice(0, 300)}`))
        })
      },
    )
    clientRequest.on('timeout', () =>
      clientRequest.destroy(new Error(`${path}: no answer in ${TIMEOUT_MS} ms`)),
    )
    clientRequest.on('error', reject)
    clientRequest.end(JSON.stringify(body))
  })
}

async function openMessages({ port, agents }: NeighboursJob) {
  const sender = await openAgent(port, agents.fromToken)
  const receiver = await openAgent(port, agents.toToken)
  const pendingMessages = new Map<number, () => void>()
  receiver.socket.on('message', data => {
    const frame = JSON.parse(String(data)) as { type: string; data?: { n: number } }
    if (frame.type !== 'message' || !frame.data) return
    pendingMessages.get(frame.data.n)?.()
    pendingMessages.delete(frame.data.n)
  })
  return {
    exchange(n: number): Promise<void> {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`message lost (${describe(sender)}, ${describe(receiver)})`)),
          TIMEOUT_MS,
        )
        pendingMessages.set(n, () => {
          clearTimeout(timer)
          resolve()
        })
        sender.socket.send(
          JSON.stringify({ type: 'send', id: String(n), to: receiver.connectionId, data: { n } }),
          error => error && reject(error),
        )
      })
    },
    close() {
      sender.socket.close()
      receiver.socket.close()
    },
  }
}

interface OpenAgent {
  socket: WebSocket
  connectionId: string
  closed: string | null
}

function describe({ closed }: OpenAgent): string {
  return closed ?? 'open'
}

function openAgent(port: number, token: string): Promise<OpenAgent> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/hub`, 'keyway.hub.v1', {
      headers: { Authorization: `Bearer ${token}` },
      localAddress: addressOf(100),
      perMessageDeflate: false,
    })
    const agent: OpenAgent = { socket, connectionId: '', closed: null }
    socket.once('message', data => {
      agent.connectionId = (JSON.parse(String(data)) as { connection_id: string }).connection_id
      resolve(agent)
    })
    socket.on('error', reject)
    socket.on('close', code => {
      agent.closed = `closed with ${code}`
      reject(new Error(agent.closed))
    })
  })
}
