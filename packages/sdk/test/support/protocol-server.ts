import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import { freePort } from '../../../server/test/support/free-port.ts'
import { type AgentFrame, HUB_PROTOCOL, type ServerFrame } from '../../src/protocol.ts'
import { Queue } from './queue.ts'

/** The answer to an exchange; `hang` never answers, `drop` resets the connection. */
export type ExchangeAnswer =
  | { status: number; body: unknown; headers?: Record<string, string> }
  | 'hang'
  | 'drop'

/** The server's end of one connection. */
export interface ServerEnd {
  id: string
  token: string
  /** What the client asks to resume: `<resume_token>.<last seq>`. */
  resume: string | undefined
  frames: Queue<AgentFrame>
  closed: Promise<number>
  send(frame: ServerFrame | Record<string, unknown>): void
  sendRaw(data: string | Buffer): void
  close(code: number, reason: string): void
  /** Breaks the connection without a close frame. */
  cut(): void
}

export interface ProtocolServer {
  url: string
  connections: Queue<ServerEnd>
  exchanges: Queue<string>
  exchangeCount: number
  connectionCount: number
  /** Returns the answer to an exchange; `count` is its number, from 1 on. */
  answer: (count: number) => ExchangeAnswer
  /** Called for each new connection; sends its first frames. */
  greet: (serverEnd: ServerEnd) => void
  expiresIn: unknown
  stop(): Promise<void>
  start(): Promise<void>
}

export const TEST_KEY = `svc_${'a'.repeat(32)}`

/**
 * A server with Keyway's protocol over real sockets, scripted by the test, including faults. It does not check keys or
 * scopes, which are tested against the real server.
 */
export async function startProtocolServer(t: {
  after(fn: () => Promise<void>): void
}): Promise<ProtocolServer> {
  const http = createServer((request, response) => void exchange(server, request, response))
  const hub = new WebSocketServer({ noServer: true, handleProtocols: () => HUB_PROTOCOL })
  // Reserved once, so that the server restarts on the same port.
  const port = await freePort()
  const server: ProtocolServer = {
    url: '',
    connections: new Queue(),
    exchanges: new Queue(),
    exchangeCount: 0,
    connectionCount: 0,
    expiresIn: 900,
    answer: count => ({
      status: 200,
      body: { token: `token-${count}`, agent_id: 'agent', expires_in: server.expiresIn },
    }),
    greet: serverEnd => serverEnd.send(readyFrame(serverEnd.id, server.expiresIn)),
    async start() {
      await new Promise<void>(resolve => http.listen(port, '127.0.0.1', resolve))
      server.url = `http://127.0.0.1:${port}`
    },
    async stop() {
      const closed = new Promise(resolve => http.close(resolve))
      for (const socket of hub.clients) socket.terminate()
      http.closeAllConnections()
      await closed
    },
  }
  http.on('upgrade', (request, socket, head) =>
    hub.handleUpgrade(request, socket, head, ws => accept(server, ws, request)),
  )
  await server.start()
  t.after(() => server.stop())
  return server
}

export function readyFrame(connectionId: string, expiresIn: unknown): Record<string, unknown> {
  return {
    type: 'ready',
    connection_id: connectionId,
    agent_id: 'agent',
    key_id: 'key',
    key_name: 'Robot',
    scopes: [],
    expires_at: '1970-01-01T00:00:00.000Z',
    expires_in: expiresIn,
    heartbeat_seconds: 25,
  }
}

export function problem(status: number, code: string, retry_after?: number): ExchangeAnswer {
  const body = {
    type: 'about:blank',
    title: code,
    status,
    detail: `Refused: ${code}.`,
    code,
    request_id: 'r-1',
  }
  return { status, body: { ...body, retry_after }, headers: { 'content-type': 'application/problem+json' } }
}

async function exchange(
  server: ProtocolServer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let text = ''
  for await (const chunk of request) text += chunk
  const answer = server.answer(++server.exchangeCount)
  server.exchanges.push(JSON.parse(text || '{}').api_key)
  if (answer === 'hang') return
  if (answer === 'drop') return void request.socket.destroy()
  response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
  response.end(JSON.stringify(answer.body))
}

function accept(server: ProtocolServer, socket: WebSocket, request: IncomingMessage): void {
  const offeredProtocols = request.headers['sec-websocket-protocol'] ?? ''
  const frames = new Queue<AgentFrame>()
  const serverEnd: ServerEnd = {
    id: `connection-${++server.connectionCount}`,
    token: /bearer\.([^,\s]+)/.exec(offeredProtocols)?.[1] ?? '',
    resume: /resume\.([^,\s]+)/.exec(offeredProtocols)?.[1],
    frames,
    closed: new Promise(resolve => socket.on('close', resolve)),
    send: frame => socket.send(JSON.stringify(frame)),
    sendRaw: data => socket.send(data),
    close: (code, reason) => socket.close(code, reason),
    cut: () => socket.terminate(),
  }
  socket.on('message', data => frames.push(JSON.parse(String(data))))
  socket.on('error', () => {})
  server.connections.push(serverEnd)
  server.greet(serverEnd)
}
