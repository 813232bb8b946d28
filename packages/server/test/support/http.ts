import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import type { TestContext } from 'node:test'
import { type AppOptions, createApp } from '../../src/http/app.ts'
import { createCallers } from '../../src/http/caller.ts'
import { createHttpServer, HTTP_TIMEOUTS, type HttpTimeouts } from '../../src/http/http-server.ts'
import { SOCKET_LIMITS, type SocketLimits } from '../../src/http/sockets.ts'
import type { EngineName } from './engines.ts'
import { openHttpPorts } from './http-ports.ts'
import type { ServiceOverrides } from './services.ts'

export interface ServerOverrides extends ServiceOverrides {
  trustedProxies?: string[]
  corsOrigins?: string[]
  failureLimits?: AppOptions['failureLimits']
  timeouts?: Partial<HttpTimeouts>
  socketLimits?: Partial<SocketLimits>
  pages?: AppOptions['pages']
  publicUrl?: string
  hasInbox?: boolean
  maxConcurrentCalls?: number
  intake?: AppOptions['intake']
}

export interface CallOptions {
  token?: string
  /** Sent as JSON, but a string is sent as it is. */
  body?: unknown
  headers?: Record<string, string>
  redirect?: RequestRedirect
}

export interface CallAnswer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: an answer is whatever the test says it must be
  body: any
}

/**
 * All clients of a test share one network, which a burst of refused requests would make noisy: new connections would be
 * reset at random. Tests of that rule set the limit themselves.
 */
const TEST_SOCKET_LIMITS: SocketLimits = { ...SOCKET_LIMITS, noisyRefusedAbove: Number.MAX_SAFE_INTEGER }

export const METRICS_TOKEN = 'a-token-for-prometheus-0123456789'

/** The HTTP layer on a real socket, with all services on a fresh database. */
export async function openServer(engine: EngineName, t: TestContext, overrides: ServerOverrides = {}) {
  const services = await openHttpPorts(engine, t, overrides)
  const { clock, log } = services
  const publicUrl = overrides.publicUrl ?? services.publicUrl
  const callers = createCallers({ trustedProxies: overrides.trustedProxies ?? [], host: '127.0.0.1', log })
  const app = createApp({
    services,
    callers,
    isKnownNetwork: services.knownNetworks.isKnown,
    clock,
    log,
    publicUrl,
    version: '0.0.0',
    lifetimes: services.lifetimes,
    corsOrigins: overrides.corsOrigins ?? [],
    failureLimits: overrides.failureLimits ?? [{ window: 'minute', limit: 60 }],
    hasInbox: overrides.hasInbox ?? true,
    observe: services.statistics.countResponse,
    metricsToken: METRICS_TOKEN,
    metrics: { render: async () => ({ type: 'text/plain', body: '' }) },
    pages: overrides.pages,
    maxConcurrentCalls: overrides.maxConcurrentCalls,
    intake: overrides.intake,
  })
  const timeouts = { ...HTTP_TIMEOUTS, ...overrides.timeouts }
  const socketLimits = { ...TEST_SOCKET_LIMITS, ...overrides.socketLimits }
  const server = createHttpServer(app, {
    publicUrl,
    clock,
    log,
    timeouts,
    socketLimits,
    upgrade: (request, socket, head) =>
      services.hub.handleUpgrade(request, socket, head, callers.of(request)),
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`

  async function call(method: string, path: string, options: CallOptions = {}): Promise<CallAnswer> {
    const headers = new Headers(options.headers)
    if (options.token) headers.set('Authorization', `Bearer ${options.token}`)
    if (options.body !== undefined && !headers.has('Content-Type'))
      headers.set('Content-Type', 'application/json')
    const body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body)
    const response = await fetch(url + path, {
      method,
      headers,
      body,
      redirect: options.redirect ?? 'manual',
    })
    const text = await response.text()
    const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '') && text !== ''
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    }
  }

  return {
    ...services,
    app,
    server,
    url,
    port,
    call,
    get: (path: string, options?: CallOptions) => call('GET', path, options),
    form: (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      call('POST', path, {
        body: new URLSearchParams(fields).toString(),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      }),
    post: (path: string, body?: unknown, options?: CallOptions) => call('POST', path, { ...options, body }),
    async createKey(token: string, body: object = {}): Promise<{ id: string; key: string }> {
      const answer = await call('POST', '/v1/api-keys', { token, body })
      if (answer.status !== 201) throw new Error(`creating a key failed: ${answer.text}`)
      return answer.body
    },
    raw: (bytes: string | Buffer) => sendRaw(port, bytes),
  }
}

/** Time without data after which `sendRaw` closes a connection that the server keeps open. */
const IDLE_MS = 20_000

/** Writes raw bytes; returns everything received until the peer closes or is silent for `idleMs`. */
export async function sendRaw(port: number, bytes: string | Buffer, idleMs = IDLE_MS): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.setTimeout(idleMs, () => socket.destroy())
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  return received
}

export function basicAuthorization(id: string, secret: string): Record<string, string> {
  return { Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` }
}
