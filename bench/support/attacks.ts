import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * The attacks of one attacker. Each runs until it is stopped. Most write requests to sockets without an HTTP client, so
 * that one core of the attacker can load one core of the service.
 */

export interface AttackJob {
  attack: string
  port: number
  /** The attacker's free account. */
  account: Account
  /** Paths of every call that takes a body, from the service's OpenAPI document. */
  bodyPaths: { method: string; path: string }[]
}

export interface Account {
  key: string
  agentToken: string
  accessToken: string
  refreshToken: string
  /** Cookies of a browser that is signed in to another free account. */
  cookie: string
}

export interface AttackResult {
  /** Number of answers by status, close code or error. */
  answers: Record<string, number>
  opened: number
}

export interface Attack {
  job: AttackJob
  running: boolean
  stopped: Promise<void>
  count(what: string): void
  open(address: string, onOpen: (socket: Socket) => void): Socket
}

interface AttackDefinition {
  /** What the attack needs: nothing, a free account, or one whose agents are connected. */
  needs: 'nothing' | 'account' | 'agents'
  run(attack: Attack): Promise<void>
}

const FLOOD_SOCKETS = 64
const SLOW_SOCKETS = 1000
const NETWORKS = 1000
/** Number of hub connections that an attack keeps open, all of one free account. */
const AGENT_SOCKETS = 200

/** The first byte of an unfragmented close frame (RFC 6455 section 5.5.1). */
const CLOSE_FRAME = 0x88

export const ATTACKS: Record<string, AttackDefinition> = {
  'slow forms of the pages': withoutAccount(attack => sendSlowly(attack, unfinishedFormHead)),
  'slow headers': withoutAccount(attack =>
    sendSlowly(attack, () => 'GET /v1/me HTTP/1.1\r\nHost: localhost\r\nX-A: '),
  ),
  'sockets that say nothing': withoutAccount(attack => sendSlowly(attack, () => '')),
  'sends over the limit of one address, pipelined': withoutAccount(attack =>
    flood(attack, { pipelined: 32, request: () => linkRequest('victim@example.com') }),
  ),
  'sends to many addresses': withoutAccount(attack =>
    flood(attack, {
      pipelined: 8,
      request: () => linkRequest(`${randomBytes(6).toString('hex')}@example.com`),
    }),
  ),
  'sends to one address from a thousand networks': withoutAccount(attack =>
    flood(attack, { pipelined: 4, networks: NETWORKS, request: () => linkRequest('someone@example.com') }),
  ),
  'wrong keys': withoutAccount(attack =>
    flood(attack, {
      pipelined: 16,
      request: () => postRequest('/auth/agent-token', { api_key: `svc_${randomBytes(16).toString('hex')}` }),
    }),
  ),
  'wrong bearers': withoutAccount(attack =>
    flood(attack, { pipelined: 16, request: () => getRequest('/v1/me', 'Authorization: Bearer svc_x') }),
  ),
  'forged tokens': withoutAccount(attack =>
    flood(attack, {
      pipelined: 16,
      request: n => getRequest('/v1/me', `Authorization: Bearer ${forgedToken(n)}`),
    }),
  ),
  'wrong links': withoutAccount(attack =>
    flood(attack, {
      pipelined: 16,
      request: () =>
        postRequest('/auth/verify-magic-link', { token: randomToken(), email: 'victim@example.com' }),
    }),
  ),
  'wrong refresh tokens': withoutAccount(attack =>
    flood(attack, {
      pipelined: 16,
      request: () => postRequest('/auth/refresh', { refresh_token: `svr_${randomToken()}${randomToken()}` }),
    }),
  ),
  'wrong codes from a thousand networks': withoutAccount(guessCodes),
  'large headers': withoutAccount(attack =>
    flood(attack, { pipelined: 2, request: () => getRequest('/v1/me', `X-Large: ${'a'.repeat(15_000)}`) }),
  ),
  'large queries': withoutAccount(attack =>
    flood(attack, { pipelined: 2, request: () => getRequest(`/v1/api-keys?cursor=${'eyJ'.repeat(5000)}`) }),
  ),
  'large queries at the hub': withoutAccount(attack =>
    flood(attack, { pipelined: 1, request: () => upgradeRequest(`/hub?a=${'eyJ'.repeat(5000)}`) }),
  ),
  'many headers': withoutAccount(attack =>
    flood(attack, {
      pipelined: 4,
      request: () => getRequest('/v1/me', ...Array.from({ length: 98 }, (_, n) => `X-${n}: ${n}`)),
    }),
  ),
  'large bodies, deeply nested': withoutAccount(attack =>
    flood(attack, {
      pipelined: 2,
      request: () => rawRequest('POST', '/auth/agent-token', '['.repeat(16_000)),
    }),
  ),
  'bodies over the limit': withoutAccount(attack =>
    flood(attack, {
      pipelined: 1,
      request: () => rawRequest('POST', '/auth/agent-token', 'a'.repeat(40_000)),
    }),
  ),
  'malformed requests': withoutAccount(attack =>
    flood(attack, { pipelined: 1, request: () => 'NONSENSE\r\n\r\n' }),
  ),
  'aborted requests': withoutAccount(attack =>
    abortRequests(attack, `${requestHead('POST', '/auth/send-magic-link', 100)}{`),
  ),
  'aborted forms': withoutAccount(attack => abortRequests(attack, `${unfinishedFormHead()}a`)),
  'upgrades without a token': withoutAccount(attack =>
    flood(attack, { pipelined: 1, request: () => upgradeRequest('/hub') }),
  ),
  'upgrades with forged tokens': withoutAccount(attack =>
    flood(attack, {
      pipelined: 1,
      request: n => upgradeRequest('/hub', `Authorization: Bearer ${forgedToken(n)}`),
    }),
  ),
  'forwarding headers': withoutAccount(attack =>
    flood(attack, {
      pipelined: 16,
      request: n => getRequest('/v1/me', `X-Forwarded-For: 203.0.113.${n % 250}`),
    }),
  ),
  'pages and documents': withoutAccount(attack =>
    flood(attack, {
      pipelined: 4,
      request: n => getRequest(['/sign-in', '/docs', '/openapi.json', '/sdk.tgz'][n % 4]!),
    }),
  ),
  'answers that are never read': withoutAccount(readNothing),
  'slow bodies on every call': withAccount(sendSlowBodies),
  'exchanges of one key': withAccount(attack =>
    flood(attack, {
      pipelined: 16,
      request: () => postRequest('/auth/agent-token', { api_key: attack.job.account.key }),
    }),
  ),
  'keys made and revoked': withAccount(createAndRevokeKeys),
  'lists of one account': withAccount(attack =>
    flood(attack, {
      pipelined: 8,
      request: n =>
        getRequest(
          LIST_PATHS[n % LIST_PATHS.length]!,
          `Authorization: Bearer ${attack.job.account.accessToken}`,
        ),
    }),
  ),
  'refreshes of one session': withAccount(attack =>
    flood(attack, {
      pipelined: 8,
      request: () => postRequest('/auth/refresh', { refresh_token: attack.job.account.refreshToken }),
    }),
  ),
  'streams of the pages': withAccount(attack =>
    sendSlowly(attack, () => getRequest('/agents/events', `Cookie: ${attack.job.account.cookie}`)),
  ),
  'connects and disconnects': withAccount(attack =>
    flood(attack, {
      pipelined: 1,
      closes: true,
      request: () => upgradeRequest('/hub', `Authorization: Bearer ${attack.job.account.agentToken}`),
    }),
  ),
  'connections up to the limit': withAccount(attack =>
    floodFrames(attack, { sockets: 1200, frame: () => null }),
  ),
  pings: withAgents(attack => floodFrames(attack, { frame: () => frame(9, '') })),
  pongs: withAgents(attack => floodFrames(attack, { frame: () => frame(10, '') })),
  'frames that are no JSON': withAgents(attack => floodFrames(attack, { frame: () => frame(1, '{') })),
  'frames of an unknown type': withAgents(attack =>
    floodFrames(attack, { frame: () => frame(1, '{"type":"x"}') }),
  ),
  'messages to all': withAgents(attack =>
    floodFrames(attack, {
      frame: n => frame(1, JSON.stringify({ type: 'send', id: `${n}`, to: 'all', data: n })),
    }),
  ),
  'large messages to all': withAgents(attack =>
    floodFrames(attack, {
      sockets: 50,
      frame: n => frame(1, JSON.stringify({ type: 'send', id: `${n}`, to: 'all', data: 'a'.repeat(60_000) })),
    }),
  ),
  'renewals with forged tokens': withAgents(attack =>
    floodFrames(attack, { frame: n => frame(1, JSON.stringify({ type: 'token', token: forgedToken(n) })) }),
  ),
}

const LIST_PATHS = ['/v1/api-keys', '/v1/agents', '/v1/sessions', '/v1/security-events', '/v1/me/ledger']

function withoutAccount(run: AttackDefinition['run']): AttackDefinition {
  return { needs: 'nothing', run }
}

function withAccount(run: AttackDefinition['run']): AttackDefinition {
  return { needs: 'account', run }
}

function withAgents(run: AttackDefinition['run']): AttackDefinition {
  return { needs: 'agents', run }
}

/** One of the attacker's addresses, 127.66.x.y, each of which counts as a network of its own. */
function addressOf(n: number): string {
  return `127.66.${(n >> 7) & 127}.${1 + (n & 127)}`
}

/** Sends requests in a closed loop over many sockets, each with `pipelined` pending requests. */
async function flood(
  attack: Attack,
  options: { pipelined: number; networks?: number; closes?: boolean; request(n: number): string },
): Promise<void> {
  const { pipelined, networks = 1, closes = false } = options
  let sentCount = 0
  const loop = async (index: number) => {
    while (attack.running) {
      await floodSocket(attack, addressOf((index + sentCount) % networks), pipelined, closes, () =>
        options.request(sentCount++),
      )
      // The service closed the socket: reconnect at once, in another turn of the event loop.
      await wait(1)
    }
  }
  await Promise.all(Array.from({ length: FLOOD_SOCKETS }, (_, index) => loop(index)))
}

const STATUS_PATTERN = /HTTP\/1\.1 (\d{3})/g

/**
 * Keeps `pipelined` requests pending on one socket, by one more request per answer. Resolves when the socket closes.
 */
function floodSocket(
  attack: Attack,
  address: string,
  pipelined: number,
  closes: boolean,
  next: () => string,
): Promise<void> {
  return new Promise(resolve => {
    const socket = attack.open(address, () => {
      let batch = ''
      for (let n = 0; n < pipelined; n++) batch += next()
      socket.write(batch)
    })
    socket.setEncoding('latin1')
    socket.on('data', (text: unknown) => {
      const statuses = [...(text as string).matchAll(STATUS_PATTERN)]
      let batch = ''
      for (const [, status] of statuses) {
        attack.count(status!)
        batch += next()
      }
      if (closes && statuses.length > 0) socket.destroy()
      else if (batch && socket.writable && attack.running) socket.write(batch)
    })
    socket.on('close', () => resolve())
  })
}

/** Opens many sockets that send one byte a second, and reconnects when they are closed. */
async function sendSlowly(attack: Attack, start: (n: number) => string): Promise<void> {
  const loop = async (index: number) => {
    while (attack.running) {
      await new Promise<void>(resolve => {
        const socket = attack.open(addressOf(index), () => {
          socket.write(start(index))
          const timer = setInterval(() => socket.write('a'), 1000)
          socket.on('close', () => clearInterval(timer))
        })
        socket.on('data', data => attack.count(statusOf(data as Buffer)))
        socket.on('close', () => resolve())
      })
      await wait(10)
    }
  }
  await Promise.all(Array.from({ length: SLOW_SOCKETS }, (_, index) => loop(index)))
}

function statusOf(data: Buffer): string {
  return /^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1', 0, 20))?.[1] ?? 'data'
}

function sendSlowBodies(attack: Attack): Promise<void> {
  const { bodyPaths } = attack.job
  return sendSlowly(attack, n => {
    const { method, path } = bodyPaths[n % bodyPaths.length]!
    return requestHead(method, path, 1000, `Authorization: Bearer ${attack.job.account.accessToken}`)
  })
}

function unfinishedFormHead(): string {
  return [
    'POST /sign-in HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/x-www-form-urlencoded',
    'Sec-Fetch-Site: same-origin',
    'Content-Length: 1000',
    '\r\n',
  ].join('\r\n')
}

async function abortRequests(attack: Attack, bytes: string): Promise<void> {
  const loop = async (index: number) => {
    while (attack.running) {
      await new Promise<void>(resolve => {
        const socket = attack.open(addressOf(index), () => {
          socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), 5))
        })
        socket.on('close', () => resolve())
      })
    }
  }
  await Promise.all(Array.from({ length: FLOOD_SOCKETS }, (_, index) => loop(index)))
}

/** Requests the largest answers and reads none. */
async function readNothing(attack: Attack): Promise<void> {
  for (let index = 0; index < SLOW_SOCKETS && attack.running; index++) {
    const socket = attack.open(addressOf(index), () => socket.write(getRequest('/openapi.json').repeat(50)))
    socket.pause()
    if (index % 50 === 0) await wait(10)
  }
  await attack.stopped
}

/** Requests links for arbitrary addresses, and guesses their codes. */
async function guessCodes(attack: Attack): Promise<void> {
  const url = `http://127.0.0.1:${attack.job.port}`
  const logins: { login_id: string; email: string }[] = []
  for (let n = 0; n < 40; n++) {
    const email = `target${n}@example.com`
    const answer = await fetch(`${url}/auth/send-magic-link`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ email }),
    })
    if (answer.ok) logins.push({ ...((await answer.json()) as { login_id: string }), email })
  }
  await flood(attack, {
    pipelined: 4,
    networks: NETWORKS,
    request: n => {
      const { login_id, email } = logins[n % logins.length] ?? {
        login_id: 'none',
        email: 'a@example.com',
      }
      return postRequest('/auth/verify-magic-link', { login_id, email, code: String(n).padStart(8, '0') })
    },
  })
}

async function createAndRevokeKeys(attack: Attack): Promise<void> {
  const url = `http://127.0.0.1:${attack.job.port}/v1/api-keys`
  const headers = {
    Authorization: `Bearer ${attack.job.account.accessToken}`,
    'Content-Type': 'application/json',
  }
  const loop = async () => {
    while (attack.running) {
      const creation = await fetch(url, { method: 'POST', headers, body: '{"name":"again"}' })
      attack.count(String(creation.status))
      const { id } = (await creation.json()) as { id?: string }
      if (id) await fetch(`${url}/${id}`, { method: 'DELETE', headers }).then(answer => answer.arrayBuffer())
    }
  }
  await Promise.all(Array.from({ length: 32 }, loop))
}

/** Opens connections of one account, each of which sends frames as fast as the hub reads them. */
async function floodFrames(
  attack: Attack,
  { sockets = AGENT_SOCKETS, frame }: { sockets?: number; frame(n: number): Buffer | null },
): Promise<void> {
  const request = upgradeRequest('/hub', `Authorization: Bearer ${attack.job.account.agentToken}`)
  let sentCount = 0
  const loop = async (index: number) => {
    while (attack.running) {
      await new Promise<void>(resolve => {
        const socket = attack.open(addressOf(index % 8), () => socket.write(request))
        let isUpgraded = false
        const pump = () => {
          while (attack.running && socket.writable) {
            const bytes = frame(sentCount++)
            if (!bytes) return
            if (!socket.write(bytes)) break
          }
          socket.once('drain', pump)
        }
        socket.on('data', chunk => {
          const data = chunk as Buffer
          if (!isUpgraded) {
            attack.count(statusOf(data))
            isUpgraded = true
            pump()
          }
          if (data[0] === CLOSE_FRAME && data.length >= 4) attack.count(String(data.readUInt16BE(2)))
        })
        socket.on('close', () => resolve())
      })
      await wait(20)
    }
  }
  await Promise.all(Array.from({ length: sockets }, (_, index) => loop(index)))
}

/** A masked client frame (RFC 6455 section 5.2) with a mask of zeros. */
function frame(opcode: number, text: string): Buffer {
  const payload = Buffer.from(text)
  const isShort = payload.length < 126
  const headBytes = Buffer.alloc(isShort ? 6 : 8)
  headBytes[0] = 0x80 | opcode
  headBytes[1] = 0x80 | (isShort ? payload.length : 126)
  if (!isShort) headBytes.writeUInt16BE(payload.length, 2)
  return Buffer.concat([headBytes, payload])
}

function requestHead(method: string, path: string, length: number, ...headers: string[]): string {
  return [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    ...headers,
    '\r\n',
  ].join('\r\n')
}

function rawRequest(method: string, path: string, body: string): string {
  return requestHead(method, path, body.length) + body
}

function postRequest(path: string, body: unknown): string {
  return rawRequest('POST', path, JSON.stringify(body))
}

function linkRequest(email: string): string {
  return postRequest('/auth/send-magic-link', { email })
}

function getRequest(path: string, ...headers: string[]): string {
  return [`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '\r\n'].join('\r\n')
}

function upgradeRequest(path: string, ...headers: string[]): string {
  return getRequest(
    path,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol: keyway.hub.v1',
    ...headers,
  )
}

function randomToken(): string {
  return randomBytes(32).toString('base64url')
}

const HEADER = Buffer.from(
  JSON.stringify({ alg: 'EdDSA', typ: 'agent_ws', kid: '0198c9f2-0000-7000-8000-000000000000' }),
).toString('base64url')

/** A token in the service's format with an invalid signature, different for each `n`. */
function forgedToken(n: number): string {
  const claims = Buffer.from(
    JSON.stringify({ type: 'agent_ws', iss: 'http://localhost:8080', sub: `${n}`, exp: 4e9 }),
  ).toString('base64url')
  return `${HEADER}.${claims}.${'A'.repeat(86)}`
}
