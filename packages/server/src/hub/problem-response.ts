import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode, FieldError } from '@keyway/sdk/protocol'
import { NO_STORE } from '../cache-control.ts'
import { KeywayError } from '../errors.ts'
import { problemOf } from '../problems.ts'
import { REQUEST_ID_HEADER } from '../request-id.ts'

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

export function badToken(): Refusal {
  return unauthorized(
    'invalid_token',
    'The agent token is malformed, expired or not for this hub. Exchange the API key for a new one: POST /auth/agent-token.',
  )
}

/** 400: a header of the handshake that cannot be. */
export function badHeader(field: string, message: string): Refusal {
  return { ...refusal(400, 'invalid_request', message), errors: [{ field, message }] }
}

export function unauthorized(code: 'authentication_required' | 'invalid_token', detail: string): Refusal {
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

/** Answers a handshake over HTTP and ends the socket. */
export function refuse(socket: Duplex, refused: Refusal, publicUrl: string, requestId: string): void {
  const retryAfter = refused.headers?.['Retry-After']
  const error = new KeywayError(refused.code, refused.detail, {
    ...(refused.errors && { errors: refused.errors }),
    ...(retryAfter && { retryAfter: Number(retryAfter) }),
  })
  const problem = problemOf(error, { publicUrl, requestId })
  const body = JSON.stringify(problem)
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': NO_STORE,
    'X-Content-Type-Options': 'nosniff',
    [REQUEST_ID_HEADER]: requestId,
    Connection: 'close',
    ...refused.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\n${lines.join('')}\r\n${body}`)
}

export function unavailable(detail: string): Refusal {
  return refusal(503, 'unavailable', detail, { 'Retry-After': '1' })
}
