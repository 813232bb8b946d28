import { connect, type Socket } from 'node:net'
import type { LoadJob, LoadResult } from './load-protocol.ts'
import { percentile } from './statistics.ts'

/*
 * The load generator, a process of its own. To cost less than the server, it prepares the bytes of requests, reads each
 * socket into one buffer, and delimits answers by their length only.
 */

process.on('message', (order: LoadJob) => {
  void run(order).then(result => process.send!(result))
})
process.on('disconnect', () => process.exit())

async function run(order: LoadJob): Promise<LoadResult> {
  const requests = order.bodies.map(body => toRequest(order, body))
  const tally: Tally = { measuring: false, latencies: [], failed: 0 }
  const idle: Line[] = []
  const due: number[] = []
  let next = 0
  let running = true

  const start = (line: Line, intended: number) => {
    line.send(requests[next++ % requests.length]!, intended)
  }
  const onAnswer = (line: Line, milliseconds: number, status: string) => {
    if (tally.measuring) count(tally, milliseconds, status, line)
    if (!running) return
    if (order.rate === null) start(line, performance.now())
    else if (due.length > 0) start(line, due.shift()!)
    else idle.push(line)
  }
  const lines = await Promise.all(
    Array.from({ length: order.connections }, () => openLine(order.port, onAnswer)),
  )
  const stopClock = order.rate === null ? undefined : byTheClock(order.rate, idle, due, start)
  for (const line of lines) order.rate === null ? start(line, performance.now()) : idle.push(line)

  await wait(order.warmUpMs)
  tally.measuring = true
  process.send!('measuring')
  const began = performance.now()
  await wait(order.durationMs)
  const seconds = (performance.now() - began) / 1000
  tally.measuring = false
  running = false
  stopClock?.()
  for (const line of lines) line.close()
  const { latencies, failed, failure } = tally
  const at = (p: number) => percentile(latencies, p)
  return { answered: latencies.length, failed, failure, seconds, p50: at(50), p99: at(99), p999: at(99.9) }
}

interface Tally {
  measuring: boolean
  latencies: number[]
  failed: number
  failure?: string
}

function count(tally: Tally, milliseconds: number, status: string, line: Line): void {
  if (status.startsWith('2')) tally.latencies.push(milliseconds)
  else {
    tally.failed++
    tally.failure ??= line.lastAnswer()
  }
}

/** Sends requests at even intervals (open loop). Waiting for an idle connection counts as latency. */
function byTheClock(
  rate: number,
  idle: Line[],
  due: number[],
  start: (line: Line, intended: number) => void,
): () => void {
  const began = performance.now()
  let made = 0
  const timer = setInterval(() => {
    const now = performance.now()
    for (let intended = began + (made * 1000) / rate; intended <= now; intended += 1000 / rate) {
      made++
      const line = idle.pop()
      if (line) start(line, intended)
      else due.push(intended)
    }
  }, 1)
  return () => clearInterval(timer)
}

interface Line {
  send(request: Buffer, intended: number): void
  lastAnswer(): string
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')

function openLine(
  port: number,
  onAnswer: (line: Line, milliseconds: number, status: string) => void,
): Promise<Line> {
  return new Promise((resolve, reject) => {
    let sentAt = 0
    const buffer = Buffer.alloc(64 * 1024)
    let filled = 0
    const read = Buffer.alloc(64 * 1024)
    const socket: Socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: read,
        callback: (length: number) => {
          read.copy(buffer, filled, 0, length)
          filled += length
          if (filled < answerLength(buffer, filled)) return true
          const status = buffer.toString('latin1', 9, 12)
          line.lastAnswer = () => buffer.toString('latin1', 0, Math.min(filled || length, 2000))
          filled = 0
          onAnswer(line, performance.now() - sentAt, status)
          return true
        },
      },
    })
    const line: Line = {
      send(request, intended) {
        sentAt = intended
        socket.write(request)
      },
      lastAnswer: () => '',
      close: () => socket.destroy(),
    }
    socket.once('connect', () => resolve(line))
    socket.once('error', reject)
  })
}

/** Length in bytes of the answer at the start of the buffer; infinite until its header is complete. */
function answerLength(buffer: Buffer, filled: number): number {
  const headEnd = buffer.subarray(0, filled).indexOf(HEAD_END)
  if (headEnd < 0) return Number.POSITIVE_INFINITY
  const length = /\r\ncontent-length: (\d+)/i.exec(buffer.toString('latin1', 0, headEnd))
  return headEnd + 4 + Number(length?.[1] ?? 0)
}

function toRequest({ method, path, headers }: LoadJob, body: string): Buffer {
  const all = { 'content-type': 'application/json', ...headers }
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

function wait(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
