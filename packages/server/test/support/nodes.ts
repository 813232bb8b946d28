import type { TestContext } from 'node:test'
import { WebSocket } from 'ws'
import { loadConfig } from '../../src/config.ts'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { createLog } from '../../src/log.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createStorage } from '../../src/storage/database.ts'
import { postgresConfig } from './engines.ts'
import { freePort } from './free-port.ts'
import { inTime, patienceMs } from './patience.ts'
import { createDatabase } from './postgres.ts'
import { closeAtOnce } from './serve.ts'

/** The public URL of the service, the same for all nodes. */
export const SHARED_URL = 'http://localhost:9'
export const NODE_SECRET = Buffer.alloc(32, 5).toString('base64')

/** Long enough for another node to notice that one was killed, and to deliver the mail that the killed node leased. */
const MAIL_TIMEOUT_MS = 30_000

/** Settings of all nodes of a test: high limits, silent log. */
export const NODE_SETTINGS: Record<string, string> = {
  KEYWAY_PUBLIC_URL: SHARED_URL,
  KEYWAY_PORT: '0',
  KEYWAY_SECRET: NODE_SECRET,
  KEYWAY_LOG_LEVEL: 'silent',
  KEYWAY_MAGIC_LINK_LIMITS: '1000/minute',
  KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
  KEYWAY_FAILURE_LIMITS: '1000000/minute',
  KEYWAY_MAX_ACTIVE_KEYS: '10000',
  KEYWAY_KEY_CREATION_LIMITS: '100000/day',
  KEYWAY_EXCHANGE_LIMITS: '1000000/minute',
}

export interface TestNode extends RunningServer {
  origin: string
}

/** The sign-in links that the nodes of one test printed, by address. */
export interface PrintedLinks {
  announce(line: string): void
  /** Waits for a link to this address that was not returned yet, and returns its token. */
  next(email: string): Promise<string>
}

/** A fresh, migrated PostgreSQL database, dropped after the test. */
export async function freshPostgres(t: TestContext): Promise<string> {
  const database = await createDatabase(async url => {
    await (await createStorage(postgresConfig(url), createLog('silent'))).close()
  })
  t.after(database.drop)
  return database.url
}

/** A node in this process, closed after the test. */
export async function startNode(
  t: TestContext,
  settings: Record<string, string>,
  links?: PrintedLinks,
): Promise<TestNode> {
  const nodeSettings = { ...NODE_SETTINGS, KEYWAY_PORT: String(await freePort()), ...settings }
  const hub = { relayTimeoutMs: patienceMs(RELAY_TIMEOUT_MS) }
  const node = await startServer(loadConfig(nodeSettings), { announce: links?.announce, hub })
  t.after(() => closeAtOnce(node))
  return Object.assign(node, { origin: `http://127.0.0.1:${node.port}` })
}

export function createPrintedLinks(): PrintedLinks {
  const tokens = new Map<string, string[]>()
  const waitingReaders = new Map<string, ((token: string) => void)[]>()
  return {
    announce(line) {
      const [, email = '', token = ''] = /for (\S+): \S*[?&]token=([\w-]{43})/.exec(line) ?? []
      const resolveNext = waitingReaders.get(email)?.shift()
      if (resolveNext) resolveNext(token)
      else tokens.set(email, [...(tokens.get(email) ?? []), token])
    },
    next(email) {
      const token = tokens.get(email)?.shift()
      if (token) return Promise.resolve(token)
      const pendingToken = new Promise<string>(resolve =>
        waitingReaders.set(email, [...(waitingReaders.get(email) ?? []), resolve]),
      )
      return inTime(`a mail for ${email}`, pendingToken, MAIL_TIMEOUT_MS)
    },
  }
}

export interface CallResult {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: an answer is whatever the test says it must be
  body: any
}

export async function call(
  origin: string,
  method: string,
  path: string,
  { body, token, headers }: { body?: object; token?: string; headers?: Record<string, string> } = {},
  withinMs = patienceMs(20_000),
): Promise<CallResult> {
  const response = await fetch(origin + path, {
    method,
    headers: {
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...headers,
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal: AbortSignal.timeout(withinMs),
  })
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

export const sendLink = (origin: string, email: string) =>
  call(origin, 'POST', '/auth/send-magic-link', { body: { email } })
export const verifyLink = (origin: string, email: string, token: string) =>
  call(origin, 'POST', '/auth/verify-magic-link', { body: { email, token } })
export const exchange = (origin: string, key: string) =>
  call(origin, 'POST', '/auth/agent-token', { body: { api_key: key } })
export const createKey = (origin: string, token: string) =>
  call(origin, 'POST', '/v1/api-keys', { token, body: {} })
export const revokeKey = (origin: string, token: string, id: string) =>
  call(origin, 'DELETE', `/v1/api-keys/${id}`, { token })
export const refresh = (origin: string, token: string, key?: string) =>
  call(origin, 'POST', '/auth/refresh', {
    body: { refresh_token: token },
    ...(key ? { headers: { 'Idempotency-Key': key } } : {}),
  })

export interface SignedIn {
  user: { id: string }
  access_token: string
  refresh_token: string
}

export async function signIn(origin: string, links: PrintedLinks, email: string): Promise<SignedIn> {
  await sendLink(origin, email)
  const answer = await verifyLink(origin, email, await links.next(email))
  if (answer.status !== 200) throw new Error(`the sign-in failed: ${JSON.stringify(answer.body)}`)
  return answer.body
}

export interface HubSocket {
  socket: WebSocket
  id: string
  /** Frames after `ready`. */
  // biome-ignore lint/suspicious/noExplicitAny: a frame is whatever the test says it must be
  frames: any[]
  /** Close code, and when it was received (`performance.now()`). */
  closed: Promise<{ code: number; at: number }>
  send(frame: object): void
  /** The first frame after `ready` that `matches` accepts, received already or later. Rejects after a timeout. */
  // biome-ignore lint/suspicious/noExplicitAny: see above
  next(matches: (frame: any) => boolean): Promise<any>
}

/** Connects to the hub of a node and waits for `ready`. */
export function connectHub(origin: string, agentToken: string): Promise<HubSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${origin.replace('http', 'ws')}/hub`, 'keyway.hub.v1', {
      headers: { authorization: `Bearer ${agentToken}` },
    })
    // biome-ignore lint/suspicious/noExplicitAny: see above
    const frames: any[] = []
    const checks = new Set<() => void>()
    const closed = new Promise<{ code: number; at: number }>(done =>
      socket.once('close', code => done({ code, at: performance.now() })),
    )
    void closed.then(({ code }) => reject(new Error(`the hub closed with ${code}`)))
    socket.on('error', reject)
    socket.on('message', data => {
      const frame = JSON.parse(String(data))
      if (frame.type === 'ready') {
        resolve({ socket, id: frame.connection_id, frames, closed, send, next })
        return
      }
      frames.push(frame)
      for (const check of [...checks]) check()
    })
    const send = (frame: object) => socket.send(JSON.stringify(frame))
    // biome-ignore lint/suspicious/noExplicitAny: see above
    const next = (matches: (frame: any) => boolean) =>
      inTime(
        `a frame that fits ${matches}`,
        // biome-ignore lint/suspicious/noExplicitAny: see above
        new Promise<any>(found => {
          const check = () => {
            const frame = frames.find(matches)
            if (!frame) return
            checks.delete(check)
            found(frame)
          }
          checks.add(check)
          check()
        }),
      )
  })
}

/** A quantile of the figures, for example the median for `at` 0.5; NaN if there are no figures. */
export function quantile(figures: readonly number[], at: number): number {
  const sorted = [...figures].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN
}
