import { EventEmitter } from 'node:events'
import { HUB_BEARER_PREFIX, HUB_RESUME_PREFIX } from '@keyway/sdk/protocol'
import type { HubSocket } from '../../../src/hub/agent-connection.ts'
import { parseResume, type ResumeRequest } from '../../../src/hub/resume-token.ts'
import type { Random } from '../../support/random.ts'
import { textOf } from './raw-frames.ts'

const [CONNECTING, OPEN, CLOSING, CLOSED] = [0, 1, 2, 3] as const
/** How long a side awaits the answer to its close frame. */
const CLOSE_TIMEOUT_MS = 3000

/** The hub's end of a socket. */
export class ServerEnd extends EventEmitter {
  connection: unknown = null
  readyState: number = OPEN
  readonly stream = Object.assign(new EventEmitter(), { resume() {}, end() {}, cork() {}, uncork() {} })
  readonly #line: Line

  constructor(line: Line) {
    super()
    this.#line = line
  }

  get bufferedAmount(): number {
    return this.#line.unread
  }

  get socket(): HubSocket {
    return this as unknown as HubSocket
  }

  writeFrame(frame: Buffer): void {
    if (this.readyState === OPEN) this.#line.toAgent(textOf(frame))
  }

  ping(): void {
    this.#line.pingAgent()
  }

  pong(): void {}

  close(code = 1005, reason = ''): void {
    if (this.readyState !== OPEN) return
    this.readyState = CLOSING
    this.#line.closeToAgent(code, reason)
    setTimeout(() => this.ended(1006), CLOSE_TIMEOUT_MS)
  }

  terminate(): void {
    this.#line.cut(null, 0)
    this.ended(1006)
  }

  ended(code: number): void {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    this.emit('close', code)
  }
}

/** The agent's end of a socket, with the interface of the platform's WebSocket. */
export class AgentEnd {
  readyState: number = CONNECTING
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: never) => void) | null = null
  onerror: ((event: never) => void) | null = null
  onclose: ((event: never) => void) | null = null
  readonly line: Line

  constructor(line: Line) {
    this.line = line
  }

  send(data: string): void {
    if (this.readyState === OPEN) this.line.toServer(data)
  }

  close(code = 1005): void {
    if (this.readyState === CLOSED || this.readyState === CLOSING) return
    this.readyState = CLOSING
    this.line.closeToServer(code)
    setTimeout(() => this.ended(1006, ''), CLOSE_TIMEOUT_MS)
  }

  ended(code: number, reason: string): void {
    if (this.readyState === CLOSED) return
    this.readyState = CLOSED
    this.onclose?.({ code, reason } as never)
  }
}

/** What an agent sends in its handshake. */
export interface Offer {
  token: string
  resume: ResumeRequest | null
}

/** Calls back after some milliseconds, on behalf of one side of the line. */
export type CallAfter = (side: 'agent' | 'server', ms: number, callback: () => void) => void

/**
 * A connection between an agent and a node. It delays data, keeps its order, and can break with or without notice to
 * either side.
 */
export class Line {
  readonly server = new ServerEnd(this)
  readonly agent = new AgentEnd(this)
  /** Whether the agent got `ready`. */
  isEstablished = false
  isCut = false
  /** Until this time the agent reads nothing. */
  pausedUntil = 0
  /** The number of characters that the agent has not read, which the hub sees as buffered bytes. */
  unread = 0
  /** The id of the node that accepted the connection. */
  nodeId = ''
  readonly #random: Random
  readonly #now: () => number
  readonly #after: CallAfter
  #serverAt = 0
  #agentAt = 0

  constructor(
    random: Random,
    now: () => number,
    after: CallAfter = (_side, ms, callback) => void setTimeout(callback, ms),
  ) {
    this.#random = random
    this.#now = now
    this.#after = after
  }

  static read(protocols: readonly string[]): Offer {
    const valueAfter = (prefix: string) =>
      protocols.find(each => each.startsWith(prefix))?.slice(prefix.length)
    const resume = valueAfter(HUB_RESUME_PREFIX)
    return {
      token: valueAfter(HUB_BEARER_PREFIX) ?? '',
      resume: resume === undefined ? null : parseResume(resume),
    }
  }

  /** Performs the handshake. The server calls `accept`, or refuses the connection if it is null. */
  connect(accept: (() => void) | null): void {
    this.#later('server', () => {
      if (!accept) return this.#later('agent', () => this.agent.ended(1006, 'refused'))
      this.#later('agent', () => {
        if (this.agent.readyState === CONNECTING) this.agent.readyState = OPEN
      })
      accept()
    })
  }

  toAgent(data: string): void {
    this.unread += data.length
    this.#later('agent', () => {
      this.unread -= data.length
      if (data.startsWith('{"type":"ready"')) this.isEstablished = true
      if (this.agent.readyState === OPEN) this.agent.onmessage?.({ data } as never)
    })
  }

  toServer(data: string): void {
    this.#later('server', () => {
      if (this.server.readyState !== CLOSED) this.server.emit('message', Buffer.from(data), false)
    })
  }

  pingAgent(): void {
    this.#later('agent', () => this.#later('server', () => this.server.emit('pong', Buffer.alloc(0))))
  }

  closeToAgent(code: number, reason: string): void {
    this.#later('agent', () => {
      this.#later('server', () => this.server.ended(code))
      this.agent.ended(code, reason)
    })
  }

  closeToServer(code: number): void {
    this.#later('server', () => {
      this.server.ended(code)
      this.#later('agent', () => this.agent.ended(code, ''))
    })
  }

  /** Drops all data from now on. Each side notices after this many milliseconds; if null, only by its own timeouts. */
  cut(agentNoticeMs: number | null, serverNoticeMs: number | null): void {
    if (this.isCut) return
    this.isCut = true
    if (agentNoticeMs !== null) this.#after('agent', agentNoticeMs, () => this.agent.ended(1006, 'cut'))
    if (serverNoticeMs !== null) this.#after('server', serverNoticeMs, () => this.server.ended(1006))
  }

  #later(to: 'agent' | 'server', arrive: () => void): void {
    if (this.isCut) return
    const now = this.#now()
    const earliestArrival = Math.max(now + this.#random.between(1, 30), to === 'agent' ? this.pausedUntil : 0)
    const at = Math.max(earliestArrival, to === 'agent' ? this.#agentAt : this.#serverAt)
    if (to === 'agent') this.#agentAt = at
    else this.#serverAt = at
    this.#after(to, at - now, () => {
      if (!this.isCut) arrive()
    })
  }
}
