import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import type { ErrorCode } from '@keyway/sdk/protocol'
import { NO_STORE } from '../cache-control.ts'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import { problemOf } from '../problems.ts'
import { newRequestId, REQUEST_ID_HEADER } from '../request-id.ts'
import { toResponse, writeAnswer } from './answer.ts'
import type { HttpApp } from './app.ts'
import { guardConnections } from './connection-guard.ts'
import { drainHttp } from './drain.ts'
import { toKeywayError, toProblem } from './errors.ts'
import { limitSockets, SOCKET_LIMITS, type SocketLimits } from './sockets.ts'
import { overloaded } from './work-limit.ts'

export interface HttpTimeouts {
  /** Timeout for the head of a request. */
  headersMs: number
  /** Timeout for the whole request, however often parts of it arrive. */
  requestMs: number
  /** How often `headersMs` and `requestMs` are checked, and the limits of unread responses (sockets.ts). */
  checkMs: number
  /** Timeout of a request without any byte in either direction; longer than a page's silent event stream stays open. */
  inactivityMs: number
  /**
   * Timeout of an idle connection between requests. Longer than that of load balancers (60 s), so that the server never
   * closes first.
   */
  keepAliveMs: number
}

export const HTTP_TIMEOUTS: HttpTimeouts = {
  headersMs: 10_000,
  requestMs: 15_000,
  checkMs: 2_000,
  inactivityMs: 60_000,
  keepAliveMs: 65_000,
}
export interface HttpServer extends Server {
  /**
   * Stops listening and resolves when every connection is closed, those of agents included, which the hub closes.
   * Requests that are unanswered after DRAIN_REQUESTS_MS (drain.ts) are cut off.
   */
  drain(): Promise<void>
}

const MAX_HEADER_BYTES = 16 * 1024
const MAX_HEADERS = 100
/** Maximum number of pipelined requests of one connection that wait for an earlier response; few clients send any. */
const MAX_PIPELINED = 64
/** Maximum number of pipelined requests that wait on all connections together; each takes some kilobytes of memory. */
const MAX_PIPELINED_TOGETHER = 4_000

/**
 * @param upgrade takes over the socket of an upgrade request; resolves with false if the request counts as refused in
 *   the limits of the client's network; never rejects
 */
export function createHttpServer(
  app: Omit<HttpApp, 'routes'>,
  {
    publicUrl,
    clock,
    log,
    timeouts = HTTP_TIMEOUTS,
    socketLimits = SOCKET_LIMITS,
    upgrade,
  }: {
    publicUrl: string
    clock: Clock
    log: Log
    timeouts?: HttpTimeouts
    socketLimits?: SocketLimits
    upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<boolean>
  },
): HttpServer {
  const listener = getRequestListener((request, env) => serve(request, env as HttpBindings), {
    // Used for requests without Host (HTTP/1.0); no response depends on it.
    hostname: 'localhost',
    errorHandler: error => refuse(error),
  })
  const server: Server = createServer(
    {
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: timeouts.checkMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      maxHeaderSize: MAX_HEADER_BYTES,
      insecureHTTPParser: false,
      // `serve` refuses requests without Host, with a problem document as for all invalid requests.
      requireHostHeader: false,
      // Other upgrades that clients offer (`Upgrade: h2c`) are ignored.
      shouldUpgradeCallback: request =>
        upgrade !== undefined && request.headers.upgrade?.toLowerCase() === 'websocket',
    },
    onRequest,
  )
  const pipelinedCounts = createPipelinedCounts()
  server.maxHeadersCount = MAX_HEADERS
  server.timeout = timeouts.inactivityMs
  const limiter = limitSockets(server, socketLimits, timeouts.checkMs, app.countUnanswered)
  guardConnections(server, app.isNoisy, socketLimits.noisyRefusedAbove)
  // An expectation other than 100-continue is ignored (RFC 9110 section 10.1.1); Node would answer it by itself.
  server.on('checkExpectation', onRequest)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseConnection(error, socket))
  server.on('connect', (_request, socket) => refuseTunnel(socket))
  if (upgrade) server.on('upgrade', onUpgrade)
  return Object.assign(server, { drain: () => drainHttp(server, limiter) })

  function onRequest(incoming: IncomingMessage, outgoing: ServerResponse): void {
    // A response has no socket while an earlier response of its connection is unfinished: pipelined requests are
    // handled one after the other.
    if (outgoing.socket) admit(incoming, outgoing)
    else if (!pipelinedCounts.add(incoming.socket)) closeConnection(incoming)
    else
      outgoing.once('socket', () => {
        pipelinedCounts.remove(incoming.socket)
        limiter.resume(incoming.socket)
        admit(incoming, outgoing)
      })
  }

  /**
   * Closes the connection, and destroys the request here: otherwise Node would do so with an error and a stack trace
   * for each request, and a packet may hold hundreds of pipelined ones.
   */
  function closeConnection(incoming: IncomingMessage): void {
    incoming.socket.destroy()
    incoming.destroy()
  }

  function admit(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const begin = () => {
      if (!incoming.socket.destroyed) handle(incoming, outgoing)
    }
    // The second argument gets a `close` listener. It is the request, not the socket, where the listeners of all
    // requests on the connection would add up.
    app.admit(incoming, incoming, begin, () => refuseAsOverloaded(outgoing))
  }

  function refuseAsOverloaded(outgoing: ServerResponse): void {
    const requestId = newRequestId(clock.now())
    const problem = toProblem(overloaded(), { requestId, publicUrl, challenge: 'none' })
    writeAnswer(outgoing, problem, requestId, null)
  }

  function onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    // The connection may break while the upgrade is queued, before the hub listens for errors.
    socket.on('error', destroySocket)
    const begin = async () => {
      limiter.release(socket)
      if (!socket.destroyed && !(await upgrade!(request, socket, head))) app.countRefusal(request)
      // From here on the hub listens for errors itself.
      socket.off('error', destroySocket)
    }
    app.admit(request, socket, begin, () => void socket.destroy())
  }

  function handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (!namesOneHost(incoming) || !app.serveDirectly(incoming, outgoing)) void listener(incoming, outgoing)
  }

  function serve(request: Request, env: HttpBindings): Response | Promise<Response> {
    return namesOneHost(env.incoming)
      ? app.fetch(request, env)
      : refuse(new RequestError('not one Host header'))
  }

  /** Answers a request that Hono's adapter cannot represent (an invalid target or Host), or that failed in it. */
  function refuse(error: unknown): Response {
    const requestId = newRequestId(clock.now())
    const isUnreadable = error instanceof RequestError
    const refusal = isUnreadable
      ? new KeywayError('invalid_request', 'The request target or the Host header cannot be read.')
      : toKeywayError(error, requestId, log)
    const problem = toProblem(refusal, { requestId, publicUrl, challenge: 'none' })
    return toResponse({ ...problem, headers: { ...problem.headers, Connection: 'close' } }, requestId, null)
  }

  /**
   * Answers a request that the parser refused or that took too long to arrive. The bytes that follow cannot be trusted,
   * so this sends one response, unless the client has gone, and closes the connection.
   */
  function refuseConnection(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    endWith(socket, PARSER_REFUSALS[error.code ?? ''] ?? MALFORMED_REQUEST)
  }

  /**
   * Refuses CONNECT (RFC 9110 section 9.3.6). Without a listener Node would close the connection without a response.
   */
  function refuseTunnel(socket: Duplex): void {
    socket.on('error', destroySocket)
    endWith(socket, NO_TUNNEL)
  }

  function endWith(socket: Duplex, { status, detail, code, allow }: Refusal): void {
    const requestId = newRequestId(clock.now())
    const body = JSON.stringify(problemOf(new KeywayError(code, detail), { publicUrl, requestId, status }))
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/problem+json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `${REQUEST_ID_HEADER}: ${requestId}`,
      `Cache-Control: ${NO_STORE}`,
      'X-Content-Type-Options: nosniff',
      ...(allow ? [`Allow: ${allow}`] : []),
      'Connection: close',
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
  }
}

/**
 * Not a closure, since a closure that listens on an agent's connection would retain the request and its credentials.
 */
function destroySocket(this: Duplex): void {
  this.destroy()
}

/** Counts the requests of each connection that wait for an earlier response. */
function createPipelinedCounts() {
  const waitingRequests = new Map<Socket, number>()
  let total = 0
  return {
    /** Counts a request. False if the connection, or all together, have too many: the connection must be closed. */
    add(socket: Socket): boolean {
      const count = waitingRequests.get(socket) ?? 0
      if (count >= MAX_PIPELINED || total >= MAX_PIPELINED_TOGETHER) return false
      if (count === 0) socket.once('close', removeSocket)
      waitingRequests.set(socket, count + 1)
      total++
      return true
    },
    remove(socket: Socket): void {
      const count = waitingRequests.get(socket)
      if (count === undefined) return
      total--
      waitingRequests.set(socket, count - 1)
      if (count === 1) removeSocket.call(socket)
    },
  }

  function removeSocket(this: Socket): void {
    this.off('close', removeSocket)
    total -= waitingRequests.get(this) ?? 0
    waitingRequests.delete(this)
  }
}

/**
 * Whether a request has exactly one Host header (RFC 9112 section 3.2); HTTP/1.0 needs none. Of two Host headers Node
 * keeps the first, and a proxy might have routed the request by the second.
 */
function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hostCount = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') hostCount++
  }
  return hostCount === 1 || (hostCount === 0 && httpVersion === '1.0')
}

/** A response written to the raw socket, for CONNECT and for requests that cannot be parsed or arrive too slowly. */
interface Refusal {
  status: number
  detail: string
  code: ErrorCode
  allow?: string
}

const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

const NO_TUNNEL: Refusal = {
  status: 405,
  detail: `This server is not a proxy and opens no tunnels. It supports ${ALLOWED_METHODS}.`,
  code: 'method_not_allowed',
  allow: ALLOWED_METHODS,
}

const MALFORMED_REQUEST: Refusal = {
  status: 400,
  detail: 'This is not a well-formed HTTP request.',
  code: 'invalid_request',
}

const PARSER_REFUSALS: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    detail: `The headers of a request have at most ${MAX_HEADER_BYTES} bytes.`,
    code: 'invalid_request',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    detail: 'The chunk extensions are too long.',
    code: 'payload_too_large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    detail: 'The request took too long to arrive.',
    code: 'invalid_request',
  },
}
