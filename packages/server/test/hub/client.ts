import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { HUB_PROTOCOL, type Json, type ServerFrame } from '@keyway/sdk/protocol'
import WebSocket from 'ws'
import { inTime } from '../support/patience.ts'

export interface ConnectOptions {
  /** How the token is sent; `header` by default. */
  tokenIn?: 'header' | 'subprotocol'
  headers?: Record<string, string>
  protocols?: string[]
  path?: string
  /** If false, pings of the server are not answered. */
  autoPong?: boolean
}

/** The HTTP response of a refused handshake. */
export interface RefusedHandshake {
  status: number
  problem: { code: string; detail: string; title?: string; errors?: { field: string; message: string }[] }
  headers: IncomingHttpHeaders
}

/** A `ws` client that queues received frames until a test reads them. */
export class Client {
  readonly socket: WebSocket
  readonly received: ServerFrame[] = []
  closed: { code: number; reason: string } | null = null
  refused: RefusedHandshake | null = null
  #wake: (() => void)[] = []

  constructor(url: string, token: string | null, options: ConnectOptions = {}) {
    const tokenIn = options.tokenIn ?? 'header'
    const offeredProtocols =
      token !== null && tokenIn === 'subprotocol' ? [HUB_PROTOCOL, `bearer.${token}`] : [HUB_PROTOCOL]
    const bearer = token !== null && tokenIn === 'header' ? { authorization: `Bearer ${token}` } : {}
    this.socket = new WebSocket(url + (options.path ?? ''), options.protocols ?? offeredProtocols, {
      headers: { ...bearer, ...options.headers },
      perMessageDeflate: true,
      autoPong: options.autoPong ?? true,
    })
    this.socket.on('message', data => this.#note(() => this.received.push(JSON.parse(String(data)))))
    this.socket.on('error', () => {})
    this.socket.on('open', () => this.#note(() => {}))
    this.socket.on('close', (code, reason) =>
      this.#note(() => {
        this.closed = { code, reason: String(reason) }
      }),
    )
    this.socket.on('unexpected-response', (_request, response) => {
      let body = ''
      response.on('data', chunk => {
        body += chunk
      })
      response.on('end', () =>
        this.#note(() => {
          this.refused = {
            status: response.statusCode ?? 0,
            problem: parse(body),
            headers: response.headers,
          }
          this.socket.terminate()
        }),
      )
    })
  }

  /** Removes and returns the first frame of that type, received already or later. Rejects when the connection ends. */
  async next<Type extends ServerFrame['type']>(type: Type): Promise<Extract<ServerFrame, { type: Type }>> {
    return this.until(() => {
      const index = this.received.findIndex(frame => frame.type === type)
      if (index >= 0)
        return assertExplained(this.received.splice(index, 1)[0] as Extract<ServerFrame, { type: Type }>)
      if (this.closed || this.refused) {
        throw new Error(`closed before ${type}: ${JSON.stringify(this.closed ?? this.refused)}`)
      }
      return undefined
    })
  }

  /** Resolves with close code and reason, such as `4410 revoked`. */
  async end(): Promise<string> {
    const { code, reason } = await this.until(() => this.closed ?? undefined)
    return `${code} ${reason}`.trim()
  }

  async refusal(): Promise<RefusedHandshake> {
    return this.until(() => {
      if (this.socket.readyState === WebSocket.OPEN) throw new Error('the handshake was accepted')
      return this.refused ?? undefined
    })
  }

  send(frame: Json | Buffer): void {
    this.socket.send(Buffer.isBuffer(frame) ? frame : JSON.stringify(frame))
  }

  /** Sends `ping` and waits for `pong`: all frames sent before have been handled. */
  async flush(): Promise<void> {
    this.send({ type: 'ping' })
    await this.next('pong')
  }

  /**
   * Calls `find` now and after each frame or change of the connection's state until it returns a value. @throws what
   * `find` throws, or Error after a timeout
   */
  async until<Value>(find: () => Value | undefined): Promise<Value> {
    for (;;) {
      const value = find()
      if (value !== undefined) return value
      await inTime(`anything after ${this.#last()}`, new Promise<void>(resolve => this.#wake.push(resolve)))
    }
  }

  #last(): string {
    return JSON.stringify(this.closed ?? this.refused ?? this.received.at(-1) ?? null).slice(0, 200)
  }

  #note(update: () => void): void {
    update()
    for (const wake of this.#wake.splice(0)) wake()
  }
}

/** Asserts that an `error` frame has a sentence as its detail; returns the frame. */
function assertExplained<Frame extends ServerFrame>(frame: Frame): Frame {
  if (frame.type === 'error') assert.match(frame.detail, /\w.*\.$/s, frame.code)
  return frame
}

/** A hub of another implementation may refuse without a problem document. */
function parse(body: string): RefusedHandshake['problem'] {
  try {
    return JSON.parse(body)
  } catch {
    return { code: 'no_problem_document', detail: body }
  }
}
