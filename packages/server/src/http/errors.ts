import { KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import { OAuthError, toOAuthRefusal } from '../oauth/oauth-error.ts'
import { type ProblemContext, problemOf } from '../problems.ts'
import { SealError } from '../secrets.ts'
import type { Answer } from './answer.ts'
import { rateLimitFields } from './rate-limit-fields.ts'
import { type Challenge, challengeHeader, clientChallenge } from './www-authenticate.ts'

export interface ErrorContext extends ProblemContext {
  /** The kind of credential that the route accepts. */
  challenge: Challenge
}

/** The response to a refusal, as in section 2 of docs/contract.md. */
export function toProblem(error: KeywayError, context: ErrorContext): Answer {
  const body = problemOf(error, context)
  const { status, retry_after: retryAfter } = body
  const headers: Record<string, string> = {}
  if (retryAfter !== undefined) headers['Retry-After'] = String(retryAfter)
  const challenge = challengeHeader(error, status, context.challenge)
  if (challenge) headers['WWW-Authenticate'] = challenge
  if (error.extras.allow) headers.Allow = error.extras.allow
  if (error.extras.limits?.length) Object.assign(headers, rateLimitFields(error.extras.limits))
  if (status === 413) headers.Connection = 'close'
  if (status === 426) Object.assign(headers, { Upgrade: 'websocket', Connection: 'Upgrade' })
  return { status, type: 'application/problem+json', body, headers }
}

/** The response to a refusal for OAuth clients, which read `error` and `error_description` (RFC 6749 section 5.2). */
export function toOAuthAnswer(error: KeywayError): Answer {
  const { status, body } = toOAuthRefusal(error)
  const headers: Record<string, string> = {}
  if (error.extras.retryAfter !== undefined) headers['Retry-After'] = String(error.extras.retryAfter)
  if (error.extras.limits?.length) Object.assign(headers, rateLimitFields(error.extras.limits))
  const challenge =
    error instanceof OAuthError ? clientChallenge(status) : challengeHeader(error, status, 'bearer')
  if (challenge) headers['WWW-Authenticate'] = challenge
  if (status === 413) headers.Connection = 'close'
  return { status, body, headers }
}

/** Converts anything thrown to a KeywayError. Unexpected errors are logged in full and not shown to clients. */
export function toKeywayError(thrown: unknown, requestId: string, log: Log): KeywayError {
  if (thrown instanceof KeywayError) {
    if (thrown.code === 'unavailable') {
      log.warn({ request_id: requestId, cause: describe(thrown.cause) }, 'a dependency is unavailable')
      if (thrown.extras.retryAfter === undefined) return retryLater(thrown.message)
    }
    return thrown
  }
  log.error({ request_id: requestId, err: describe(thrown) }, 'request failed')
  if (thrown instanceof SealError) return retryLater('The service cannot decrypt a stored value.')
  return new KeywayError(
    'internal_error',
    'Something went wrong here. Report the request_id to the operator.',
  )
}

function retryLater(detail: string): KeywayError {
  return new KeywayError('unavailable', `${detail} Try again.`, { retryAfter: 1 })
}

function describe(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
}
