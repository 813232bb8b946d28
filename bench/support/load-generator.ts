import { connect, type Socket } from 'node:net'
import type { LoadJob, LoadResult } from './load-protocol.ts'
import { percentile } from './statistics.ts'

/*
 * The load generator, a process of its own. To cost less than the server, it prepares the bytes of requests, reads each
 * socket into one buffer, and delimits answers by their length only.
 */

process.on('message', (job: LoadJob) => {
  void run(job).then(result => process.send!(result))
})
process.on('disconnect', () => process.exit())

async function run(job: LoadJob): Promise<LoadResult> {
  const requests = job.bodies.map(body => toRequest(job, body))
  const tally: Tally = { measuring: false, latencies: [], failed: 0 }
  const idleConnections: Connection[] = []
  const dueTimes: number[] = []
  let nextIndex = 0
  let isRunning = true

  const start = (connection: Connection, dueAt: number) => {
    connection.send(requests[nextIndex++ % requests.length]!, dueAt)
  }
  const onAnswer = (connection: Connection, milliseconds: number, status: string) => {
    if (tally.measuring) countAnswer(tally, milliseconds, status, connection)
    if (!isRunning) return
    if (job.rate === null) start(connection, performance.now())
    else if (dueTimes.length > 0) start(connection, dueTimes.shift()!)
    else idleConnections.push(connection)
  }
  const connections = await Promise.all(
    Array.from({ length: job.connections }, () => openConnection(job.port, onAnswer)),
  )
  const stopSending = job.rate === null ? undefined : sendAtRate(job.rate, idleConnections, dueTimes, start)
  for (const connection of connections)
    job.rate === null ? start(connection, performance.now()) : idleConnections.push(connection)

  await wait(job.warmUpMs)
  tally.measuring = true
  process.send!('measuring')
  const startedAt = performance.now()
  await wait(job.durationMs)
  const seconds = (performance.now() - startedAt) / 1000
  tally.measuring = false
  isRunning = false
  stopSending?.()
  for (const connection of connections) connection.close()
  const { latencies, failed, failure } = tally
  const percentileOf = (p: number) => percentile(latencies, p)
  return {
    answered: latencies.length,
    failed,
    failure,
    seconds,
    p50: percentileOf(50),
    p99: percentileOf(99),
    p999: percentileOf(99.9),
  }
}

interface Tally {
  measuring: boolean
  latencies: number[]
  failed: number
  failure?: string
}

function countAnswer(tally: Tally, milliseconds: number, status: string, connection: Connection): void {
  if (status.startsWith('2')) tally.latencies.push(milliseconds)
  else {
    tally.failed++
    tally.failure ??= connection.lastAnswer()
  }
}

/** Sends requests at even intervals (open loop). Waiting for an idle connection counts as latency. */
function sendAtRate(
  rate: number,
  idleConnections: Connection[],
  dueTimes: number[],
  start: (connection: Connection, dueAt: number) => void,
): () => void {
  const startedAt = performance.now()
  let startedCount = 0
  const timer = setInterval(() => {
    const now = performance.now()
    for (let dueAt = startedAt + (startedCount * 1000) / rate; dueAt <= now; dueAt += 1000 / rate) {
      startedCount++
      const connection = idleConnections.pop()
      if (connection) start(connection, dueAt)
      else dueTimes.push(dueAt)
    }
  }, 1)
  return () => clearInterval(timer)
}

interface Connection {
  send(request: Buffer, dueAt: number): void
  lastAnswer(): string
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')

function openConnection(
  port: number,
  onAnswer: (connection: Connection, milliseconds: number, status: string) => void,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let sentAt = 0
    const answerBuffer = Buffer.alloc(64 * 1024)
    let filledBytes = 0
    const readBuffer = Buffer.alloc(64 * 1024)
    const socket: Socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (length: number) => {
          readBuffer.copy(answerBuffer, filledBytes, 0, length)
          filledBytes += length
          if (filledBytes < answerLength(answerBuffer, filledBytes)) return true
          const status = answerBuffer.toString('latin1', 9, 12)
          const shownBytes = Math.min(filledBytes, 2000)
          connection.lastAnswer = () => answerBuffer.toString('latin1', 0, shownBytes)
          filledBytes = 0
          onAnswer(connection, performance.now() - sentAt, status)
          return true
        },
      },
    })
    const connection: Connection = {
      send(request, dueAt) {
        sentAt = dueAt
        socket.write(request)
      },
      lastAnswer: () => '',
      close: () => socket.destroy(),
    }
    socket.once('connect', () => resolve(connection))
    socket.once('error', reject)
  })
}

/** Length in bytes of the answer at the start of the buffer; infinite until its header is complete. */
function answerLength(buffer: Buffer, filledBytes: number): number {
  const headEnd = buffer.subarray(0, filledBytes).indexOf(HEAD_END)
  if (headEnd < 0) return Number.POSITIVE_INFINITY
  const lengthMatch = /\r\ncontent-length: (\d+)/i.exec(buffer.toString('latin1', 0, headEnd))
  return headEnd + 4 + Number(lengthMatch?.[1] ?? 0)
}

function toRequest({ method, path, headers }: LoadJob, body: string): Buffer {
  const allHeaders = { 'content-type': 'application/json', ...headers }
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(allHeaders).map(([name, value]) => `${name}: ${value}`),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

function wait(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
