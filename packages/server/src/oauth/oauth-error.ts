import type { ErrorCode } from '@keyway/sdk/protocol'
import { type ErrorExtras, KeywayError } from '../errors.ts'
import { PROBLEMS } from '../problems.ts'

/**
 * Error codes of RFC 6749 sections 4.1.2.1 and 5.2, RFC 6750 section 3.1, RFC 8628 section 3.5, RFC 8707 section 2,
 * RFC 7009 section 2.2.1, RFC 7591 section 3.2.2 and OpenID Connect Core section 3.1.2.6.
 */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_token_type'
  | 'access_denied'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'unsupported_response_type'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'
  | 'server_error'
  | 'temporarily_unavailable'

/** A refusal with an OAuth error code, `error`. The inherited `code` is for logs, metrics and failure limits. */
export class OAuthError extends KeywayError {
  readonly error: OAuthErrorCode

  constructor(
    error: OAuthErrorCode,
    description: string,
    code: ErrorCode = 'invalid_request',
    extras?: ErrorExtras,
  ) {
    super(code, description, extras)
    this.error = error
  }

  /** Converts a refusal to one with this OAuth code. */
  static of(error: OAuthErrorCode, refusal: KeywayError): OAuthError {
    return new OAuthError(error, refusal.message, refusal.code, refusal.extras)
  }
}

/**
 * The refusal of a client that failed to authenticate, or that may not use the endpoint. Unknown clients, removed
 * clients and wrong secrets must get the same description. It counts as a failed guess.
 */
export function invalidClient(description: string): OAuthError {
  return new OAuthError('invalid_client', description, 'authentication_required', { isGuess: true })
}

export interface OAuthRefusal {
  status: number
  body: { error: OAuthErrorCode; error_description: string }
}

/** The response to a refusal of any kind (RFC 6749 section 5.2). */
export function toOAuthRefusal(error: KeywayError): OAuthRefusal {
  const description = toPrintable(error.message)
  if (error instanceof OAuthError) {
    const status = error.error === 'invalid_client' ? 401 : 400
    return { status, body: { error: error.error, error_description: description } }
  }
  const { status } = PROBLEMS[error.code]
  return { status, body: { error: codeOf(error.code, status), error_description: description } }
}

function codeOf(code: ErrorCode, status: number): OAuthErrorCode {
  if (code === 'invalid_token' || code === 'insufficient_scope') return code
  // RFC 6750 section 3 has no error code for a request without a token, so it gets that of an invalid token.
  if (status === 401) return 'invalid_token'
  if (status === 500) return 'server_error'
  return status === 429 || status === 503 ? 'temporarily_unavailable' : 'invalid_request'
}

/** Replaces what RFC 6749 section 5.2 does not allow: quotation marks, backslashes, and what is not printable ASCII. */
function toPrintable(text: string): string {
  return text
    .replaceAll(/["“”]/g, "'")
    .replaceAll('’', "'")
    .replaceAll('…', '...')
    .replaceAll(/[^\x20-\x7e]|\\/g, '?')
}
