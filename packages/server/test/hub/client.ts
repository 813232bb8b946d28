import type { IncomingHttpHeaders } from 'node:http'
import { HUB_PROTOCOL, type Json, type ServerFrame } from '@keyway/sdk/protocol'
import WebSocket from 'ws'

export interface ConnectOptions {
  way?: 'header' | 'subprotocol'
  headers?: Record<string, string>
  protocols?: string[]
  path?: string
  /** False: the server's protocol pings stay unanswered. */
  autoPong?: boolean
}

/** How a handshake was refused. */
export interface Refused {
  status: number
  problem: { code: string; detail: string; title?: string; errors?: { field: string; message: string }[] }
  headers: IncomingHttpHeaders
}

/** A `ws` client that keeps what it heard until it is asked for. */
export class Client {
  readonly socket: WebSocket
  readonly heard: ServerFrame[] = []
  closed: { code: number; reason: string } | null = null
  refused: Refused | null = null
  #wake: (() => void)[] = []

  constructor(url: string, token: string | null, options: ConnectOptions = {}) {
    const way = options.way ?? 'header'
    const offered =
      token !== null && way === 'subprotocol' ? [HUB_PROTOCOL, `bearer.${token}`] : [HUB_PROTOCOL]
    const bearer = token !== null && way === 'header' ? { authorization: `Bearer ${token}` } : {}
    this.socket = new WebSocket(url + (options.path ?? ''), options.protocols ?? offered, {
      headers: { ...bearer, ...options.headers },
      perMessageDeflate: true,
      autoPong: options.autoPong ?? true,
    })
    this.socket.on('message', data => this.#note(() => this.heard.push(JSON.parse(String(data)))))
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

  /** The first frame of that type from now or before, taken out. Rejects when the connection is over. */
  async next<Type extends ServerFrame['type']>(type: Type): Promise<Extract<ServerFrame, { type: Type }>> {
    return this.until(() => {
      const index = this.heard.findIndex(frame => frame.type === type)
      if (index >= 0) return this.heard.splice(index, 1)[0] as Extract<ServerFrame, { type: Type }>
      if (this.closed || this.refused) {
        throw new Error(`closed before ${type}: ${JSON.stringify(this.closed ?? this.refused)}`)
      }
      return undefined
    })
  }

  /** `4410 revoked` */
  async end(): Promise<string> {
    const { code, reason } = await this.until(() => this.closed ?? undefined)
    return `${code} ${reason}`.trim()
  }

  async refusal(): Promise<Refused> {
    return this.until(() => {
      if (this.socket.readyState === WebSocket.OPEN) throw new Error('the handshake was accepted')
      return this.refused ?? undefined
    })
  }

  send(frame: Json | Buffer): void {
    this.socket.send(Buffer.isBuffer(frame) ? frame : JSON.stringify(frame))
  }

  /** Sends `ping` and waits for `pong`: everything sent before has been dealt with. */
  async flush(): Promise<void> {
    this.send({ type: 'ping' })
    await this.next('pong')
  }

  async until<Value>(look: () => Value | undefined): Promise<Value> {
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      await new Promise<void>(resolve => this.#wake.push(resolve))
    }
  }

  #note(what: () => void): void {
    what()
    for (const wake of this.#wake.splice(0)) wake()
  }
}

/** Other people's hubs may answer anything. */
function parse(body: string): Refused['problem'] {
  try {
    return JSON.parse(body)
  } catch {
    return { code: 'no_problem_document', detail: body }
  }
}
