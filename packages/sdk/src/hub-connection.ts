import type { AgentReady } from './agent-options.ts'
import type { SdkClock } from './clock.ts'
import { type AgentFrame, HUB_BEARER_PREFIX, HUB_PROTOCOL, type ServerFrame } from './protocol.ts'

/** The part of the standard WebSocket interface that is used; `ws` and native ones implement it. */
export interface WebSocketLike {
  readonly readyState: number
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  send(data: string): void
  close(code?: number, reason?: string): void
}

export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike

/** The close code and reason of a connection; `1006` if there was no close frame. */
export interface HubClose {
  code: number
  reason: string
}

export type ReadyFrame = Extract<ServerFrame, { type: 'ready' }>

export interface HubConnectionOptions {
  WebSocket: WebSocketConstructor
  url: string
  token: string
  /** Subprotocols to offer besides HUB_PROTOCOL and the token. */
  offer: string[]
  clock: SdkClock
  onReady(connection: HubConnection, frame: ReadyFrame): void
  onFrame(connection: HubConnection, frame: ServerFrame): void
  /** Called once, when the socket has closed or stays silent; never after `close` or `abandon`. */
  onClosed(connection: HubConnection, close: HubClose): void
}

/** After this much silence the agent sends a ping. */
const SILENCE_BEFORE_PING_MS = 25_000
/** If no frame follows a ping within this time, the connection counts as dead, even if TCP reports no error. */
const PONG_DEADLINE_MS = 10_000
const READY_STATE_OPEN = 1
const NORMAL_CLOSURE = 1000
const ABNORMAL_CLOSURE = 1006
/**
 * Close code of an abandoned socket, whose connection the agent may resume: the hub ends a connection for good only
 * after 1000 or a close without a code.
 */
const ABANDONED = 4000

/** One WebSocket to the hub, with detection of dead connections. Does not reconnect; the agent dials again. */
export class HubConnection {
  #socket: WebSocketLike
  #options: HubConnectionOptions
  #lastReceivedAt: number
  #ended = false
  #unansweredPings = 0
  #cancelSilenceTimer = () => {}

  constructor(options: HubConnectionOptions) {
    this.#options = options
    this.#lastReceivedAt = options.clock.now()
    // The token is sent as a subprotocol, since only some platforms let clients set headers.
    const offeredProtocols = [HUB_PROTOCOL, HUB_BEARER_PREFIX + options.token, ...options.offer]
    this.#socket = new options.WebSocket(options.url, offeredProtocols)
    this.#socket.onmessage = (event: { data: unknown }) => this.#received(event.data)
    this.#socket.onerror = () => {} // `onclose` follows, with all details
    this.#socket.onclose = (event: { code: number; reason: string }) =>
      this.#end({ code: event.code, reason: event.reason })
  }

  get isOpen(): boolean {
    return this.#socket.readyState === READY_STATE_OPEN
  }

  /** Whether a ping was sent that no pong has answered yet. */
  get awaitsPong(): boolean {
    return this.#unansweredPings > 0
  }

  /** Sends a frame; false if the socket is not open. */
  send(frame: AgentFrame): boolean {
    if (this.#ended || this.#socket.readyState !== READY_STATE_OPEN) return false
    try {
      this.#socket.send(JSON.stringify(frame))
      if (frame.type === 'ping') this.#unansweredPings++
      return true
    } catch {
      return false // The socket has just closed; `onclose` follows.
    }
  }

  /**
   * Ends the connection; with the default code for good, with another one so that it can be resumed. Ignores the socket
   * from now on, since a dead one may take minutes to close. No further events are reported.
   */
  close(code = NORMAL_CLOSURE): void {
    this.#ended = true
    this.#cancelSilenceTimer()
    this.#socket.onmessage = null
    this.#socket.onclose = null
    try {
      this.#socket.close(code)
    } catch {
      // Some platforms throw while the socket is connecting.
    }
  }

  /** Closes the socket with a code after which another socket can resume the connection. */
  abandon(): void {
    this.close(ABANDONED)
  }

  #received(data: unknown): void {
    if (this.#ended) return
    this.#lastReceivedAt = this.#options.clock.now()
    const frame = parseFrame(data)
    if (!frame) return
    if (frame.type === 'pong' && this.#unansweredPings > 0) this.#unansweredPings--
    if (frame.type === 'ready') {
      this.#watchSilence()
      this.#options.onReady(this, frame)
    } else {
      this.#options.onFrame(this, frame)
    }
  }

  #watchSilence(): void {
    const { clock } = this.#options
    const silentForMs = clock.now() - this.#lastReceivedAt
    this.#cancelSilenceTimer()
    this.#cancelSilenceTimer = clock.after(SILENCE_BEFORE_PING_MS - silentForMs, () => {
      if (clock.now() - this.#lastReceivedAt < SILENCE_BEFORE_PING_MS) return this.#watchSilence()
      this.#pingAndAwaitAnswer()
    })
  }

  #pingAndAwaitAnswer(): void {
    const lastReceivedAt = this.#lastReceivedAt
    this.send({ type: 'ping' })
    this.#cancelSilenceTimer = this.#options.clock.after(PONG_DEADLINE_MS, () => {
      if (this.#lastReceivedAt !== lastReceivedAt) return this.#watchSilence()
      this.abandon()
      this.#options.onClosed(this, { code: ABNORMAL_CLOSURE, reason: 'no answer to a ping' })
    })
  }

  #end(close: HubClose): void {
    if (this.#ended) return
    this.#ended = true
    this.#cancelSilenceTimer()
    this.#options.onClosed(this, close)
  }
}

/**
 * Parses a frame; undefined if it is invalid. Frames of unknown types are returned, and their receivers ignore them.
 */
function parseFrame(data: unknown): ServerFrame | undefined {
  if (typeof data !== 'string') return undefined
  try {
    const frame = JSON.parse(data) as ServerFrame | null
    return typeof frame === 'object' && typeof frame?.type === 'string' ? frame : undefined
  } catch {
    return undefined
  }
}

export function readyEvent(frame: ReadyFrame): AgentReady {
  return {
    connectionId: frame.connection_id,
    agentId: frame.agent_id,
    keyId: frame.key_id,
    keyName: frame.key_name,
    scopes: frame.scopes,
    expiresIn: frame.expires_in,
    resumed: frame.resumed === true,
  }
}
