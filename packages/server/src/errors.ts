import type { ErrorCode, FieldError } from '@keyway/sdk/protocol'

/** One request limit in a sliding window, as it is reported to clients. */
export interface RateLimitState {
  /** The window, such as `minute`; `person-minute` for a limit over all keys of a person. */
  name: string
  limit: number
  windowSeconds: number
  /** How many more requests are accepted now, as far as this node knows. */
  remaining: number
  /** Whole seconds until the oldest counted request leaves the window; the whole window if none is counted. */
  resetSeconds: number
}

export interface ErrorExtras {
  errors?: FieldError[]
  /** Seconds. */
  retryAfter?: number
  window?: 'second' | 'minute' | 'hour' | 'day'
  /**
   * The states of all request limits of the key, of its owner, or of both, whichever had a full window; for the header
   * fields of the response.
   */
  limits?: readonly RateLimitState[]
  /** The setting that caused the refusal; shown only where the caller is the operator (`ProblemContext`). */
  setting?: string
  /** The missing scope of `insufficient_scope`, for the challenge (RFC 6750 section 3.1). */
  scope?: string
  /** Methods of the path, for `Allow`; only with `method_not_allowed`. */
  allow?: string
  /** Whether the refused request may be a failed guess of a credential; overrides `ProblemKind.isGuess` of the code. */
  isGuess?: boolean
  cause?: unknown
}

/**
 * An error for the client: a stable `code` and one sentence that says what to do. It has no stack trace, which would
 * not help to understand a refusal and would take an eighth of the time of a refused request (5 of 40 µs). Throw it
 * only *after* a transaction; inside one, return an outcome. Throwing would roll back security effects (ending the
 * session of a reused token, counting a wrong code).
 */
export class KeywayError extends Error {
  override readonly name = 'KeywayError'
  readonly code: ErrorCode
  readonly extras: ErrorExtras

  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(detail, { cause: extras.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.extras = extras
  }
}

/** A request with invalid fields; each message says what was expected, with an example. */
export function invalidRequest(errors: FieldError[]): KeywayError {
  const detail = errors.map(error => `${error.field}: ${error.message}`).join('; ')
  return new KeywayError('invalid_request', detail, { errors })
}

export function unavailable(cause: unknown, retryAfter = 1): KeywayError {
  return new KeywayError('unavailable', 'The service cannot reach its database right now. Try again.', {
    retryAfter,
    cause,
  })
}

/** Whether the database refused a write because its disk is full: SQLSTATE 53100 (disk_full), SQLITE_FULL. */
export function isDiskFull(error: unknown): boolean {
  const cause = error instanceof KeywayError ? error.extras.cause : error
  const { code, message = '' } = (cause ?? {}) as { code?: string; message?: string }
  return code === '53100' || /disk is full/.test(message)
}
