import type { ErrorCode, FieldError } from '@keyway/sdk/protocol'

export interface ErrorExtras {
  errors?: FieldError[]
  /** Seconds. */
  retryAfter?: number
  window?: 'minute' | 'hour' | 'day'
  setting?: string
  /** What `insufficient_scope` lacks, for the challenge (RFC 6750 section 3.1). */
  scope?: string
  /** The methods that the path of `method_not_allowed` answers, as in `Allow`. */
  allow?: string
  cause?: unknown
}

/**
 * A refusal that the caller shall see: a stable `code` and one plain sentence that says what to do.
 *
 * Verbs throw it *after* their transaction. Inside one they return an outcome: throwing there would roll the
 * security effect back (the ended session of a reused token, the counted try of a wrong code).
 */
export class KeywayError extends Error {
  override readonly name = 'KeywayError'
  readonly code: ErrorCode
  readonly extras: ErrorExtras

  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    super(detail, { cause: extras.cause })
    this.code = code
    this.extras = extras
  }
}

/** A request whose fields were refused, each with what was expected and an example. */
export function invalidRequest(errors: FieldError[]): KeywayError {
  const detail = errors.map(error => `${error.field}: ${error.message}`).join('; ')
  return new KeywayError('invalid_request', detail, { errors })
}

/** A store or key that is needed cannot be reached; nothing was granted. */
export function unavailable(cause: unknown, retryAfter = 1): KeywayError {
  return new KeywayError('unavailable', 'The service cannot reach its database right now. Try again.', {
    retryAfter,
    cause,
  })
}
