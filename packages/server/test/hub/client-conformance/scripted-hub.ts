import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Json } from '@keyway/sdk/protocol'
import { WebSocketServer } from 'ws'
import { Queue } from '../../../../sdk/test/support/queue.ts'
import { freePort } from '../../support/free-port.ts'
import { ScriptedConnection } from './scripted-connection.ts'

/** The answer to an exchange, which is sent after `delayMs`. */
export interface ExchangeAnswer {
  status: number
  body: { [name: string]: Json }
  headers?: Record<string, string>
  delayMs?: number
}

/** The longest back-off (20 s) plus the time to connect. */
const LONGEST_BACKOFF_MS = 22_000

/** A service with only the exchange and the hub, over real sockets, with the answers that a check chooses. */
export class ScriptedHub {
  url = ''
  readonly apiKey = `svc_${randomUUID().replaceAll('-', '')}`
  /** When each exchange arrived, by `performance.now()`. */
  readonly exchanges: number[] = []
  readonly exchanged = new Queue<number>()
  /** Rejects at the first violation of the protocol. */
  readonly violation: Promise<never>
  /** Numbers of exchanges and connections above which another one is a violation. */
  maxCounts = { exchanges: Number.POSITIVE_INFINITY, connections: Number.POSITIVE_INFINITY }
  connectionCount = 0
  /** The answer to the nth exchange, from 1 on. */
  answer: (count: number) => ExchangeAnswer = count => this.token(count)
  /** The URL to which handshakes are redirected; null if they are not. */
  redirect: string | null = null
  #violate!: (problem: Error) => void
  #arrived = new Queue<ScriptedConnection>()
  #connections: ScriptedConnection[] = []
  #http = createServer((request, response) => void this.#serve(request, response))
  #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'keyway.hub.v1' })

  constructor() {
    this.violation = new Promise((_, reject) => {
      this.#violate = reject
    })
    this.violation.catch(() => {})
  }

  /** Call it when the client is stopped permanently: from then on an exchange or a connection is a violation. */
  expectsNoReturn(): void {
    this.maxCounts = { exchanges: this.exchanges.length, connections: this.connectionCount }
  }

  async start(): Promise<void> {
    this.#http.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
    this.#http.listen(await freePort(), '127.0.0.1')
    await once(this.#http, 'listening')
    const address = this.#http.address()
    if (typeof address !== 'object' || address === null) throw new Error('no address')
    this.url = `http://127.0.0.1:${address.port}`
  }

  async stop(): Promise<void> {
    for (const connection of this.#connections) connection.cut()
    const closed = once(this.#http, 'close')
    this.#http.close()
    this.#http.closeAllConnections()
    await closed
  }

  /** A successful answer to the nth exchange. */
  token(count: number, expiresIn = 900): ExchangeAnswer {
    return { status: 200, body: { token: `token-${count}`, agent_id: 'owner', expires_in: expiresIn } }
  }

  /** Resolves with the next connection, to which nothing was sent yet. */
  arrived(withinMs = LONGEST_BACKOFF_MS): Promise<ScriptedConnection> {
    return this.#arrived.next(withinMs)
  }

  /** Waits for the next connection, and sends it `ready`. */
  async connected(fields: { [name: string]: Json } = {}): Promise<ScriptedConnection> {
    const connection = await this.arrived()
    connection.ready(fields)
    return connection
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#inspectUrl(request)
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST' || request.url !== '/auth/agent-token') {
      this.#violated(`${request.method} ${request.url} is no call of an agent`)
      return void response.writeHead(404).end()
    }
    if ((JSON.parse(text || '{}') as { api_key?: Json }).api_key !== this.apiKey)
      this.#violated(`the exchange was sent ${text} instead of KEYWAY_API_KEY`)
    const count = this.exchanges.push(performance.now())
    if (count > this.maxCounts.exchanges) this.#violated(`exchange ${count} after a permanent end`)
    this.exchanged.push(count)
    const { status, body, headers, delayMs = 0 } = this.answer(count)
    setTimeout(() => {
      const type = status < 400 ? 'application/json' : 'application/problem+json'
      response.writeHead(status, { 'content-type': type, ...headers }).end(JSON.stringify(body))
    }, delayMs)
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {})
    this.#inspectUrl(request)
    if (this.redirect !== null || request.url !== '/hub') {
      if (request.url !== '/hub') this.#violated(`a WebSocket was opened to ${request.url}`)
      return void socket.end(
        `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${this.redirect}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
      )
    }
    this.#sockets.handleUpgrade(request, socket, head, ws => {
      const connection = new ScriptedConnection(
        ws,
        request,
        `connection-${++this.connectionCount}`,
        problem => this.#violated(problem),
      )
      if (this.connectionCount > this.maxCounts.connections)
        this.#violated('a connection after a permanent end')
      this.#connections.push(connection)
      this.#arrived.push(connection)
    })
  }

  #inspectUrl({ url = '' }: IncomingMessage): void {
    if (/token-|svc_/.test(url)) this.#violated(`a credential is in the URL ${url}`)
  }

  #violated(problem: string): void {
    this.#violate(new Error(problem))
  }
}

/** A refusal as the service sends it. */
export function refusal(status: number, code: string, retryAfter?: number): ExchangeAnswer {
  const body = {
    type: 'about:blank',
    title: code,
    status,
    code,
    detail: `Refused: ${code}.`,
    request_id: 'r',
  }
  if (retryAfter === undefined) return { status, body }
  return {
    status,
    body: { ...body, retry_after: retryAfter },
    headers: { 'retry-after': String(retryAfter) },
  }
}
