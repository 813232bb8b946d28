import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { NO_STORE } from '../cache-control.ts'
import { KeywayError } from '../errors.ts'
import { problemOf } from '../problems.ts'
import { REQUEST_ID_HEADER } from '../request-id.ts'

/** Answers a handshake over HTTP and ends the socket. */
export function refuse(socket: Duplex, refusal: KeywayError, publicUrl: string, requestId: string): void {
  const problem = problemOf(refusal, { publicUrl, requestId })
  const body = JSON.stringify(problem)
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': NO_STORE,
    'X-Content-Type-Options': 'nosniff',
    [REQUEST_ID_HEADER]: requestId,
    Connection: 'close',
    ...headersOf(refusal, problem.status),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`)
}

/**
 * Headers that the status requires: RFC 6750 section 3 for 401, RFC 6455 section 4.2.2 for 426. For other statuses
 * `Retry-After`, if the error has a time for it.
 */
function headersOf({ code, extras }: KeywayError, status: number): Record<string, string> {
  if (status === 401)
    return { 'WWW-Authenticate': code === 'invalid_token' ? 'Bearer error="invalid_token"' : 'Bearer' }
  if (status === 426) return { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' }
  return extras.retryAfter === undefined ? {} : { 'Retry-After': String(extras.retryAfter) }
}

export function badToken(): KeywayError {
  return new KeywayError(
    'invalid_token',
    'The agent token is malformed, expired or not for this hub. Exchange the API key for a new one: POST /auth/agent-token.',
  )
}

export function badHeader(field: string, message: string): KeywayError {
  return new KeywayError('invalid_request', message, { errors: [{ field, message }] })
}

export function unavailable(detail: string): KeywayError {
  return new KeywayError('unavailable', detail, { retryAfter: 1 })
}
