import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  type ErrorCode,
  type FieldError,
  HUB_BEARER_PREFIX,
  HUB_PROTOCOL,
  type Problem,
} from '@keyway/sdk/protocol'
import { MAX_TOKEN_LENGTH } from './frames.ts'

type RefusalCode = Extract<
  ErrorCode,
  | 'invalid_request'
  | 'authentication_required'
  | 'invalid_token'
  | 'forbidden'
  | 'not_found'
  | 'upgrade_required'
  | 'rate_limited'
  | 'unavailable'
>

export interface Refusal {
  status: 400 | 401 | 403 | 404 | 426 | 429 | 503
  code: RefusalCode
  detail: string
  errors?: FieldError[]
  headers?: Record<string, string>
}

export interface Credential {
  token: string
  /** How it came decides how a bad one is answered: a browser sees no status of a handshake, but sees close codes. */
  way: 'header' | 'subprotocol'
}

const HUB_PATH = '/hub'
const TWO_WAYS = `Send the agent token as "Authorization: Bearer <token>", or, from a browser, as the second of two subprotocols: new WebSocket(url, ["${HUB_PROTOCOL}", "${HUB_BEARER_PREFIX}<token>"]).`
const CREDENTIAL_PARAMETERS =
  /(?:^|[?&])(?:[a-z_-]*token|api[_-]?key|key|bearer|jwt|auth(?:orization)?)=|svc_[0-9A-Za-z]{32}|eyJ[\w-]+\.eyJ/i
/** Why no credential is read from a URL, and where it belongs. */
export const CREDENTIAL_IN_URL = `A URL is written into logs, so no credential is taken from it. ${TWO_WAYS}`
const BEARER = /^bearer +([^\s,]+) *$/i

/** RFC 6455 section 4.2.1, as far as it is asked before any credential is looked at. */
export function upgradeProblem(request: IncomingMessage): Refusal | null {
  if (request.url?.split('?')[0] !== HUB_PATH) {
    return refusal(404, 'not_found', `The hub is at ${HUB_PATH}. /docs lists what there is.`)
  }
  if (request.headers.upgrade?.toLowerCase() !== 'websocket' || request.method !== 'GET') {
    return refusal(426, 'upgrade_required', 'Connect with a WebSocket client.', { Upgrade: 'websocket' })
  }
  if (request.headers['sec-websocket-version'] !== '13') {
    return refusal(426, 'upgrade_required', 'This hub speaks WebSocket version 13.', {
      'Sec-WebSocket-Version': '13',
    })
  }
  return null
}

/** The one agent token of a handshake, or why it is refused. */
export function readCredential(request: IncomingMessage): Credential | Refusal {
  const { authorization } = request.headers
  const query = request.url?.split('?')[1] ?? ''
  if (CREDENTIAL_PARAMETERS.test(query)) {
    return unauthorized('invalid_token', CREDENTIAL_IN_URL)
  }
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map(name => name.trim())
  const bearers = offered.filter(name => name.startsWith(HUB_BEARER_PREFIX))
  if (request.headers['sec-websocket-protocol'] !== undefined && !offered.includes(HUB_PROTOCOL)) {
    return badHeader('Sec-WebSocket-Protocol', `Offer the subprotocol ${HUB_PROTOCOL}, or none. ${TWO_WAYS}`)
  }
  if (bearers.length + (authorization === undefined ? 0 : 1) > 1) {
    return badHeader('Authorization', `Two credentials came at once. ${TWO_WAYS}`)
  }
  const credential = bearers[0]
    ? { token: bearers[0].slice(HUB_BEARER_PREFIX.length), way: 'subprotocol' as const }
    : { token: BEARER.exec(authorization ?? '')?.[1] ?? '', way: 'header' as const }
  if (!credential.token && credential.way === 'header') {
    return unauthorized('authentication_required', TWO_WAYS)
  }
  return credential.token.length > MAX_TOKEN_LENGTH ? { ...credential, token: '' } : credential
}

export function badToken(): Refusal {
  return unauthorized(
    'invalid_token',
    'The agent token is malformed, expired or not for this hub. Exchange the API key for a new one: POST /auth/agent-token.',
  )
}

/** Browsers say where the page came from; programs say nothing. `null` is no origin that can be listed. */
export function originProblem(request: IncomingMessage, allowed: ReadonlySet<string>): Refusal | null {
  const { origin } = request.headers
  if (origin === undefined || allowed.has(origin)) return null
  return refusal(403, 'forbidden', 'Pages of this origin may not open the hub; see KEYWAY_CORS_ORIGINS.')
}

/** 400: a header of the handshake that cannot be. */
export function badHeader(field: string, message: string): Refusal {
  return { ...refusal(400, 'invalid_request', message), errors: [{ field, message }] }
}

function unauthorized(code: 'authentication_required' | 'invalid_token', detail: string): Refusal {
  const challenge = code === 'invalid_token' ? 'Bearer error="invalid_token"' : 'Bearer'
  return refusal(401, code, detail, { 'WWW-Authenticate': challenge })
}

export function refusal(
  status: Refusal['status'],
  code: RefusalCode,
  detail: string,
  headers: Record<string, string> = {},
): Refusal {
  return { status, code, detail, headers }
}

/** A code has one title, wherever it is answered (RFC 9457 section 3.1.4): the API's own. */
const TITLES: Record<RefusalCode, string> = {
  invalid_request: 'The request is not valid',
  authentication_required: 'Authentication is required',
  invalid_token: 'The token is not valid',
  forbidden: 'This is not allowed',
  not_found: 'There is nothing here',
  upgrade_required: 'This address speaks WebSocket',
  rate_limited: 'Too many requests',
  unavailable: 'The service is not available',
}

/** Answers a handshake over HTTP and ends the socket. */
export function refuse(socket: Duplex, refused: Refusal, publicUrl: string, requestId: string): void {
  const retryAfter = refused.headers?.['Retry-After']
  const problem: Problem = {
    type: `${publicUrl}/errors/${refused.code}`,
    title: TITLES[refused.code],
    status: refused.status,
    detail: refused.detail,
    code: refused.code,
    request_id: requestId,
    ...(refused.errors && { errors: refused.errors }),
    ...(retryAfter ? { retry_after: Number(retryAfter) } : {}),
  }
  const body = JSON.stringify(problem)
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
    Connection: 'close',
    ...refused.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\n${lines.join('')}\r\n${body}`)
}
