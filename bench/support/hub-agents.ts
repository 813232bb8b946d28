import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

/**
 * Very many minimal agents in one process: sockets that speak just enough WebSocket (RFC 6455) to connect, answer pings
 * and recognise text and close frames.
 */

export type AgentsJob =
  | { do: 'connect'; port: number; tokens: string[]; count: number; atOnce: number }
  /** The connections send a frame and wait for the answer, in turn and `atOnce` of them at a time, for `durationMs`. */
  | { do: 'ask'; frames: string[]; answer: string; atOnce: number; durationMs: number }
  /** The first connection sends one frame; done when `receivers` of the others have received a frame with `answer`. */
  | { do: 'fan-out'; frame: string; answer: string; receivers: number }
  /** Done when all connections have received a close frame. */
  | { do: 'await-close' }
  | { do: 'disconnect' }

export interface AgentsResult {
  count: number
  seconds: number
  /** Number of closes by code during the job; `cut` counts sockets that closed without a close frame. */
  closes: Record<string, number>
}

interface Agent {
  socket: Socket
  open: boolean
  onText: ((text: string) => void) | null
}

let agents: Agent[] = []
let closes: Record<string, number> = {}
let onClosed = () => {}

process.on('message', (job: AgentsJob) => {
  void execute(job).then(result => process.send!(result))
})
process.on('disconnect', () => process.exit())

async function execute(job: AgentsJob): Promise<AgentsResult> {
  closes = {}
  const startedAt = performance.now()
  const count = await runJob(job)
  return { count, seconds: (performance.now() - startedAt) / 1000, closes }
}

function runJob(job: AgentsJob): Promise<number> {
  switch (job.do) {
    case 'connect':
      return connectAll(job)
    case 'ask':
      return requestAll(job)
    case 'fan-out':
      return fanOut(job)
    case 'await-close':
      return awaitClose()
    case 'disconnect':
      return disconnect()
  }
}

async function connectAll({ port, tokens, count, atOnce }: Extract<AgentsJob, { do: 'connect' }>) {
  let startedCount = 0
  const connectRemaining = async () => {
    while (startedCount < count) {
      // Connections take the tokens in turn, and `ask` takes its frames in the same order, so that these can renew each
      // connection with a token of its owner.
      const index = startedCount++
      agents[index] = await open(port, tokens[index % tokens.length]!)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, connectRemaining))
  return count
}

/** Resolves when the first text frame has arrived, which is `ready`. */
function open(port: number, token: string): Promise<Agent> {
  return new Promise((resolve, reject) => {
    let isUpgraded = false
    let unreadBytes: Buffer = EMPTY
    const socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        // All connections share one buffer; incomplete frames are copied out of it.
        buffer: sharedBuffer,
        callback: (length: number) => {
          let bytes = Buffer.concat([unreadBytes, sharedBuffer.subarray(0, length)])
          if (!isUpgraded) {
            const end = bytes.indexOf('\r\n\r\n')
            if (end < 0) {
              unreadBytes = bytes
              return true
            }
            if (!bytes.subarray(0, 12).equals(SWITCHING_PROTOCOLS))
              reject(new Error(bytes.toString('latin1', 0, 2000)))
            isUpgraded = true
            bytes = bytes.subarray(end + 4)
          }
          unreadBytes = readFrames(agent, bytes)
          return true
        },
      },
    })
    const agent: Agent = { socket, open: true, onText: null }
    agent.onText = () => {
      agent.onText = null
      resolve(agent)
    }
    socket.once('error', reject)
    socket.once('close', () => recordClose(agent, 'cut'))
    socket.write(handshake(token))
  })
}

const EMPTY = Buffer.alloc(0)
const sharedBuffer = Buffer.alloc(64 * 1024)
const SWITCHING_PROTOCOLS = Buffer.from('HTTP/1.1 101')

function handshake(token: string): string {
  return [
    'GET /hub HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Protocol: keyway.hub.v1',
    `Authorization: Bearer ${token}`,
    '\r\n',
  ].join('\r\n')
}

/** Handles complete frames; returns the bytes of an incomplete one. */
function readFrames(agent: Agent, bytes: Buffer): Buffer {
  let offset = 0
  while (bytes.length - offset >= 2) {
    const shortLength = bytes[offset + 1]! & 127
    const headLength = shortLength < 126 ? 2 : shortLength === 126 ? 4 : 10
    if (bytes.length - offset < headLength) break
    const length =
      shortLength < 126
        ? shortLength
        : shortLength === 126
          ? bytes.readUInt16BE(offset + 2)
          : bytes.readUInt32BE(offset + 6)
    if (bytes.length - offset < headLength + length) break
    const payload = bytes.subarray(offset + headLength, offset + headLength + length)
    onFrame(agent, bytes[offset]! & 15, payload)
    offset += headLength + length
  }
  return offset === bytes.length ? EMPTY : Buffer.from(bytes.subarray(offset))
}

const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10]
/** Close code 1000. */
const NORMAL_CLOSURE = Buffer.from([0x03, 0xe8])

function onFrame(agent: Agent, opcode: number, payload: Buffer): void {
  if (opcode === TEXT) agent.onText?.(payload.toString())
  else if (opcode === PING) agent.socket.write(frame(PONG, payload))
  else if (opcode === CLOSE) {
    recordClose(agent, String(payload.readUInt16BE(0)))
    agent.socket.write(frame(CLOSE, payload.subarray(0, 2)))
  }
}

function recordClose(agent: Agent, code: string): void {
  if (!agent.open) return
  agent.open = false
  closes[code] = (closes[code] ?? 0) + 1
  onClosed()
}

/** A frame masked with zeros, which is allowed and needs no computation. */
function frame(opcode: number, payload: Buffer): Buffer {
  const isLong = payload.length > 125
  const head = Buffer.alloc(isLong ? 8 : 6)
  head[0] = 128 | opcode
  head[1] = 128 | (isLong ? 126 : payload.length)
  if (isLong) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, payload])
}

async function requestAll({ frames, answer, atOnce, durationMs }: Extract<AgentsJob, { do: 'ask' }>) {
  const bytes = frames.map(text => frame(TEXT, Buffer.from(text)))
  const endsAt = performance.now() + durationMs
  let nextIndex = 0
  let answeredCount = 0
  const requestNext = async () => {
    while (performance.now() < endsAt) {
      const index = nextIndex++ % agents.length
      await request(agents[index]!, bytes[index % bytes.length]!, answer)
      answeredCount++
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, agents.length) }, requestNext))
  return answeredCount
}

function request(agent: Agent, bytes: Buffer, answer: string): Promise<void> {
  return new Promise((resolve, reject) => {
    agent.onText = text => {
      agent.onText = null
      if (text.includes(answer)) resolve()
      else reject(new Error(text))
    }
    agent.socket.write(bytes)
  })
}

function fanOut({ frame: text, answer, receivers }: Extract<AgentsJob, { do: 'fan-out' }>): Promise<number> {
  return new Promise(resolve => {
    let receivedCount = 0
    for (const agent of agents.slice(1)) {
      agent.onText = message => {
        if (message.includes(answer) && ++receivedCount === receivers) resolve(receivedCount)
      }
    }
    agents[0]!.socket.write(frame(TEXT, Buffer.from(text)))
  })
}

function awaitClose(): Promise<number> {
  const count = agents.length
  let remaining = count
  return new Promise(resolve => {
    onClosed = () => {
      if (--remaining > 0) return
      for (const agent of agents) agent.socket.destroy()
      agents = []
      resolve(count)
    }
  })
}

/** Sends close frames, since the hub keeps a broken connection resumable for a while. */
async function disconnect(): Promise<number> {
  const count = agents.length
  for (const agent of agents) {
    agent.open = false
    agent.socket.end(frame(CLOSE, NORMAL_CLOSURE))
  }
  agents = []
  return count
}
